dim batch
dim seq = 4
model M(x: [batch, seq]) -> (y: [batch, seq]) {
  y = x
  if x > 0 { y = x } else { y = 0 }
  if 1 { y = x }
}
# ! condition_of_tensor.mt:5:6: error MT0250: a condition must be known at compile time, got bool[batch, seq]
# !      5 |   if x > 0 { y = x } else { y = 0 }
# !        |      ^~~~~
# !          to choose entry by entry, write select(x > 0, …, …)
# ! condition_of_tensor.mt:6:6: error MT0250: a condition is true or false, got 1
# !      6 |   if 1 { y = x }
# !        |      ^
