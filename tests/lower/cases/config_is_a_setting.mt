# mtc -D steps=3
config { layers = 1 }
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! (-D):1:1: error MT0301: no config 'steps'
# !      1 | steps=3
# !        | ^~~~~~~
# !          train.steps is a setting: --set train.steps=…
