# mtc --set precision.loss_scale.window=3 --set parallel.recompute.every=2
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! (--set):1:22: error MT0333: precision.loss_scale is not set, so it has no argument 'window'
# !      1 | precision.loss_scale.window=3
# !        |                      ^~~~~~
# !          write precision.loss_scale=dynamic(window = 3)
# ! (--set):1:20: error MT0333: none takes no arguments by name
# !      1 | parallel.recompute.every=2
# !        |                    ^~~~~
# !          write parallel.recompute=full(every = 2)
