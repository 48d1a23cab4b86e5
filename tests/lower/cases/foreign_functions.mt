dim batch
dim seq = 4
model M(x: [batch, seq]) -> (y: [batch, seq]) {
  a = matmul(x, x)
  b = where(x > 0, x, 0)
  c = transpose(x)
  d = layer_norm(x)
  e = reshape(x)
}
# ! foreign_functions.mt:4:7: error MT0222: no function 'matmul'
# !      4 |   a = matmul(x, x)
# !        |       ^~~~~~
# !          here that is a @ b
# ! foreign_functions.mt:5:7: error MT0222: no function 'where'
# !      5 |   b = where(x > 0, x, 0)
# !        |       ^~~~~
# !          here that is select(condition, a, b)
# ! foreign_functions.mt:6:7: error MT0222: no function 'transpose'
# !      6 |   c = transpose(x)
# !        |       ^~~~~~~~~
# !          here that is nothing: the order of dims is no part of a type
# ! foreign_functions.mt:7:7: error MT0222: no function 'layer_norm'
# !      7 |   d = layer_norm(x)
# !        |       ^~~~~~~~~~
# !          here that is layernorm[d](x, g, b)
# ! foreign_functions.mt:8:7: error MT0222: no function 'reshape'
# !      8 |   e = reshape(x)
# !        |       ^~~~~~~
# !          here that is split[d -> a, b](x) or merge[a, b -> d](x)
