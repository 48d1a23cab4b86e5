dim batch
model M(x: [batch]) -> (loss: f32[], y: [batch, k]) {
  dim k = 2
  y = expand[k](x)
  loss = mean[batch](x)
}
# ! output_local_dim.mt:2:49: error MT0220: no dim 'k'
# !      2 | model M(x: [batch]) -> (loss: f32[], y: [batch, k]) {
# !        |                                                 ^
