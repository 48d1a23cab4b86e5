dim batch
model M(x: [batch]) -> (loss: f32[], logits: [batch]) {
  loss = mean[batch](x)
}
# ! output_missing.mt:2:38: error MT0252: the model never assigns its output 'logits'
# !      2 | model M(x: [batch]) -> (loss: f32[], logits: [batch]) {
# !        |                                      ^~~~~~~~~~~~~~~
