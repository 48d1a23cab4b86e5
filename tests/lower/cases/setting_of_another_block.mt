# mtc --set train.lr=3 --set precision.zero=1
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! (--set):1:1: error MT0330: no setting 'train.lr'
# !      1 | train.lr=3
# !        | ^~~~~~~~~~
# !          did you mean 'train.optimizer.lr'?
# ! (--set):1:1: error MT0330: no setting 'precision.zero'
# !      1 | precision.zero=1
# !        | ^~~~~~~~~~~~~~~~
# !          did you mean 'parallel.zero'?
