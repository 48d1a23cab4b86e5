dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
model N(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! two_models.mt:3:1: error MT0343: a second model; the first is 'M' at two_models.mt:2:1
# !      3 | model N(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# !        | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
