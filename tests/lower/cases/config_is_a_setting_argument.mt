# mtc -D lr=3
config { layers = 1 }
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! (-D):1:1: error MT0301: no config 'lr'
# !      1 | lr=3
# !        | ^~~~
# !          train.optimizer.lr is a setting: --set train.optimizer.lr=…
