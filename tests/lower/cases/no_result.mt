dim batch
dim seq = 4
block Layer(x: [batch, seq], twice = false) -> [batch, seq] {
  if twice { return x * 2 }
}
model M(x: [batch, seq]) -> (y: [batch, seq]) {
  y = Layer(x, true) as a
  y = Layer(x) as b
}
# ! no_result.mt:3:1: error MT0251: Layer does not return on this path
# !      3 | block Layer(x: [batch, seq], twice = false) -> [batch, seq] {
# !        | ^
# ! no_result.mt:8:7: note: in Layer, called here
