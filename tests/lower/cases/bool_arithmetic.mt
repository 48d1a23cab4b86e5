dim batch
dim seq = 4
model M(mask: bool[batch, seq], x: [batch, seq]) -> (y: [batch, seq]) {
  y = mask * x
}
# ! bool_arithmetic.mt:4:7: error MT0212: '*' on bool and float
# !      4 |   y = mask * x
# !        |       ^~~~~~~~
# !          mask is bool[batch, seq]  (input)
# !          x    is float[batch, seq]  (input)
# !          write select(mask, x, 0)
