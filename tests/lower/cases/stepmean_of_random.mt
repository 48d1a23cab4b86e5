dim batch
model M(x: [batch]) -> (loss: f32[]) {
  loss = stepmean[batch](x, where = random(x) > 0.5)
}
# ! stepmean_of_random.mt:3:10: error MT0323: 'where' of stepmean depends on inputs only, and here on random numbers
# !      3 |   loss = stepmean[batch](x, where = random(x) > 0.5)
# !        |          ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# !          its denominator is counted before the step begins
