dim batch
dim seq = 4
model M(x: [batch, seq]) -> (y: [seq], z: [batch, seq], w: [seq]) {
  y = sum[batch](1)
  z = random(0.5)
  w = stack[seq](1, 2, 3, 4)
}
# ! tensor_wanted.mt:4:18: error MT0218: sum wants a tensor, got 1
# !      4 |   y = sum[batch](1)
# !        |                  ^
# ! tensor_wanted.mt:5:14: error MT0218: random wants a tensor, got 0.5
# !      5 |   z = random(0.5)
# !        |              ^~~
# ! tensor_wanted.mt:6:7: error MT0218: stack wants a tensor among its values
# !      6 |   w = stack[seq](1, 2, 3, 4)
# !        |       ^~~~~~~~~~~~~~~~~~~~~~
