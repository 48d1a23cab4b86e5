# mtc --set zero=2 --set lr=1e-3 --set layers=3
config { layers = 1 }
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! (--set):1:1: error MT0330: 'zero' is no setting; a config is given by -D
# !      1 | zero=2
# !        | ^~~~~~
# !          did you mean 'parallel.zero'?
# ! (--set):1:1: error MT0330: 'lr' is no setting; a config is given by -D
# !      1 | lr=1e-3
# !        | ^~~~~~~
# !          did you mean 'train.optimizer.lr'?
# ! (--set):1:1: error MT0330: 'layers' is no setting; a config is given by -D
# !      1 | layers=3
# !        | ^~~~~~~~
