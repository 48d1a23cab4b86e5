dim batch
model M(x: [batch]) -> (loss: f32[], other: f32[]) {
  param w: [] ~ ones
  loss = stepmean[batch](x, where = x > w)
  other = stepmean[batch](x, where = random(x) > 0.5)
}
# ! stepmean_of_a_parameter.mt:4:10: error MT0323: 'where' of stepmean depends on inputs only, and here on the parameter w
# !      4 |   loss = stepmean[batch](x, where = x > w)
# !        |          ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# !          its denominator is counted before the step begins
