dim batch
dim seq = 4
dim gate = 2
dim qkv = 3
model M(x: [batch, seq], y: [batch, seq, qkv]) -> (a: [batch, seq, gate], b: [batch, seq]) {
  a = stack[gate](x, x + 1, x + 2)
  q, k = unstack[qkv](y)
  b = q + k
}
# ! stack_count.mt:6:7: error MT0234: stack[gate] of 3 values, gate is 2
# !      6 |   a = stack[gate](x, x + 1, x + 2)
# !        |       ^~~~~~~~~~~~~~~~~~~~~~~~~~~~
# ! stack_count.mt:7:3: error MT0234: 2 names for unstack[qkv](y), which gives 3 values
# !      7 |   q, k = unstack[qkv](y)
# !        |   ^~~~~~~~~~~~~~~~~~~~~~
