# mtc --set 'train.decay="*.bias"'
# show var
dim batch
dim d = 2
dim e = 2
model M(x: [batch, d]) -> (loss: f32[]) {
  param t as "experts.{e:up,down}.w": [e, d] ~ normal(1)
  x = LayerNorm[d](x) as n
  y = Linear[d, e](x) as l
  loss = mean[batch](y @[e] (t @ x))
}
train { no_decay = "experts.down.*", "l.*"; decay = "n.*" }
# > var param @"experts.{e:up,down}.w" : float[e, d] = normal(1) ; decay_by_path.mt:7:3-56 "param t"
# > var param @n.weight : float[d] = ones ; decay_by_path.mt:8:7-15 "param g"
# > var param @n.bias : float[d] = zeros decay ; decay_by_path.mt:8:7-15 "param b"
# > var param @l.weight : float[e, d] = normal(0.02) ; decay_by_path.mt:9:7-12 "param w"
# > var param @l.bias : float[e] = zeros decay ; decay_by_path.mt:9:7-12 "param b"
