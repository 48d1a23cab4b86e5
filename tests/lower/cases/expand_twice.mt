dim batch
dim seq = 4
model M(x: [batch, seq]) -> (y: [batch, seq]) {
  y = expand[seq](x)
}
# ! expand_twice.mt:4:14: error MT0232: x is float[batch, seq] and already has seq
# !      4 |   y = expand[seq](x)
# !        |              ^~~
