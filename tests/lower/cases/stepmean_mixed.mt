dim batch
model M(x: [batch]) -> (loss: f32[], other: f32[], fine: f32[]) {
  a = stepmean[batch](x)
  loss = a + 0.1 * mean[batch](x)
  other = a ^ 2
  fine = 0.5 * -a + a / 3 - stepmean[batch](x * x)
}
# ! stepmean_mixed.mt:2:25: error MT0324: output loss mixes a stepmean with what is none
# !      2 | model M(x: [batch]) -> (loss: f32[], other: f32[], fine: f32[]) {
# !        |                         ^~~~~~~~~~~
# !          a stepmean is one mean over the step, the rest is averaged over microbatches: make them two outputs
# !          and add them in train { minimize = … }
# ! stepmean_mixed.mt:2:38: error MT0324: output other mixes a stepmean with what is none
# !      2 | model M(x: [batch]) -> (loss: f32[], other: f32[], fine: f32[]) {
# !        |                                      ^~~~~~~~~~~~
# !          a stepmean is one mean over the step, the rest is averaged over microbatches: make them two outputs
# !          and add them in train { minimize = … }
