dim batch
model M(x: [batch]) -> (loss: f32[], n: i32[]) {
  loss = mean[batch](x)
  n = sum[batch](i32(x))
}
# ! output_int.mt:2:38: error MT0267: an output without dims is a float: it is logged; write f32(…)
# !      2 | model M(x: [batch]) -> (loss: f32[], n: i32[]) {
# !        |                                      ^~~~~~~~
