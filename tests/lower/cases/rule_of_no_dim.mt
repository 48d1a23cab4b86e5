dim batch
dim ff = 4
model M(x: [batch, ff]) -> (loss: f32[]) { loss = mean[batch, ff](x) }
parallel { map bach, ff -> dp }
# ! rule_of_no_dim.mt:4:12: error MT0220: no dim 'bach'
# !      4 | parallel { map bach, ff -> dp }
# !        |            ^~~~~~~~~~~~~~~~~~
# !          did you mean 'batch'?
