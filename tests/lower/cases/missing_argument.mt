dim batch
dim expert = 4
model M(p: [batch, expert]) -> (y: bool[batch, expert], z: [batch]) {
  y = topk[expert](p)
  z = gather[expert](p)
}
# ! missing_argument.mt:4:7: error MT0241: topk needs 'k'
# !      4 |   y = topk[expert](p)
# !        |       ^~~~
# !          write topk[d](x, k)
# ! missing_argument.mt:5:7: error MT0241: gather is written gather[d](x, index), got 1 argument
# !      5 |   z = gather[expert](p)
# !        |       ^~~~~~
