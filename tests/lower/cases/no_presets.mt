# mtc --preset medium
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! (--preset):1:1: error MT0302: no preset 'medium'; the model has none
# !      1 | medium
# !        | ^~~~~~
