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
# > var param @n.weight : float[d] = ones ; prelude.mt:122:3-33 "param g"
# > var param @n.bias : float[d] = zeros decay ; prelude.mt:123:3-34 "param b"
# > var param @l.weight : float[e, d] = normal(0.02) ; prelude.mt:134:3-43 "param w"
# > var param @l.bias : float[e] = zeros decay ; prelude.mt:137:5-34 "param b"
