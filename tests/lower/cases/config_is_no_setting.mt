# mtc --set layers=3
config { layers = 1 }
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! (--set):1:1: error MT0330: 'layers' is no setting; a config is given by -D
# !      1 | layers=3
# !        | ^~~~~~~~
