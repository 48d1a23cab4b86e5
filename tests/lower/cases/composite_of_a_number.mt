# a number where a function of the prelude has an operand: the call is its definition
# in x = 3 4
dim d = 2
model M(x: [d]) -> (loss: f32[], y: [d], z: [d], best: bool[d]) {
  y = rmsnorm[d](x, 2, 0.0)
  z = layernorm[d](x, 1, 0, 0.0)
  best = topk[d](9, 1)
  loss = sum[d](y)
}
# > loss = 3.9598
# > y = 1.69706 2.26274
# > z = -1 1
# > best = 1 0
