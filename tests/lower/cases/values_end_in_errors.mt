# what an error leaves unknown is not told again
dim batch
dim seq = 4
model M(x: [batch, seq]) -> (loss: f32[]) {
  repeat 2 as i {
    y = nothing(x)
    z = y + 1
  }
  if x > 0 { w = x } else { w = 2 * x }
  a, b = missing(y, w)
  loss = mean[batch, seq](z * w + y + a - b)
}
# ! values_end_in_errors.mt:6:9: error MT0222: no function 'nothing'
# !      6 |     y = nothing(x)
# !        |         ^~~~~~~
# ! values_end_in_errors.mt:9:6: error MT0250: a condition must be known at compile time, got bool[batch, seq]
# !      9 |   if x > 0 { w = x } else { w = 2 * x }
# !        |      ^~~~~
# !          to choose entry by entry, write select(x > 0, …, …)
# ! values_end_in_errors.mt:10:10: error MT0222: no function 'missing'
# !     10 |   a, b = missing(y, w)
# !        |          ^~~~~~~
