
dim batch
model M(x: [batch]) -> (loss: f32[], x: [batch]) {
  loss = mean[batch](x)
}
# ! output_is_input.mt:3:38: error MT0224: output 'x' is an input, too
# !      3 | model M(x: [batch]) -> (loss: f32[], x: [batch]) {
# !        |                                      ^~~~~~~~~~
