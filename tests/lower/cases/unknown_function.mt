dim batch
dim seq = 4
model M(x: [batch, seq]) -> (y: [batch, seq]) {
  y = gelu2(x)
}
# ! unknown_function.mt:4:7: error MT0222: no function 'gelu2'
# !      4 |   y = gelu2(x)
# !        |       ^~~~~
# !          did you mean 'gelu'?
