dim batch
dim seq = 4
model M(x: [batch, seq]) -> (y: [batch, seq]) {
  y = x @ 2
}
# ! product_of_numbers.mt:4:11: error MT0216: '@' wants two tensors, got the number 2
# !      4 |   y = x @ 2
# !        |           ^
# !          to scale, write *
