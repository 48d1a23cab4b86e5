# show var
dim batch
dim d = 2
dim q = 3
dim heads = 2
dim hd = 2
block Inner[e](x: [*, e]) -> [*, e] {
  param w as "weight": [e] ~ ones
  param plain: [e] ~ uniform(-0.1, 0.1)
  return x * w + plain
}
block Outer[e](x: [*, e], name = 0) -> [*, e] {
  repeat 2 as k { x = Inner[e](x) as "in.{k}" }
  return Inner[e](x)
}
block Split[f](x: [*, d]) -> [*, f] {
  param w as "{f}.part": [f, d] ~ normal(0.02)
  return x @ w
}
model M(x: [batch, d]) -> (loss: f32[]) {
  param head as "lm_head.weight": [q, heads, d] ~ zeros
  x = Outer[d](x) as first
  repeat 2 as i { x = Outer[d](x) as "h.{i}" }
  y = Split[q](x) as "qkv.{q:a,b,c}.x"
  z = Linear[d, (heads, hd)](x) as lin
  loss = mean[batch, q](y) + mean[batch, heads, hd](z) + mean[batch](head_of(x))
}
fn head_of(x: [*, d]) -> [*] { return sum[d](x) }
# > var param @lm_head.weight : float[q, heads, d] = zeros ; paths.mt:21:3-55 "param head"
# > var param @first.in.0.weight : float[d] = ones ; paths.mt:8:3-33 "param w"
# > var param @first.in.0.plain : float[d] = uniform(-0.1, 0.1) decay ; paths.mt:9:3-39 "param plain"
# > var param @first.in.1.weight : float[d] = ones ; paths.mt:8:3-33 "param w"
# > var param @first.in.1.plain : float[d] = uniform(-0.1, 0.1) decay ; paths.mt:9:3-39 "param plain"
# > var param @first.weight : float[d] = ones ; paths.mt:8:3-33 "param w"
# > var param @first.plain : float[d] = uniform(-0.1, 0.1) decay ; paths.mt:9:3-39 "param plain"
# > var param @h.0.in.0.weight : float[d] = ones ; paths.mt:8:3-33 "param w"
# > var param @h.0.in.0.plain : float[d] = uniform(-0.1, 0.1) decay ; paths.mt:9:3-39 "param plain"
# > var param @h.0.in.1.weight : float[d] = ones ; paths.mt:8:3-33 "param w"
# > var param @h.0.in.1.plain : float[d] = uniform(-0.1, 0.1) decay ; paths.mt:9:3-39 "param plain"
# > var param @h.0.weight : float[d] = ones ; paths.mt:8:3-33 "param w"
# > var param @h.0.plain : float[d] = uniform(-0.1, 0.1) decay ; paths.mt:9:3-39 "param plain"
# > var param @h.1.in.0.weight : float[d] = ones ; paths.mt:8:3-33 "param w"
# > var param @h.1.in.0.plain : float[d] = uniform(-0.1, 0.1) decay ; paths.mt:9:3-39 "param plain"
# > var param @h.1.in.1.weight : float[d] = ones ; paths.mt:8:3-33 "param w"
# > var param @h.1.in.1.plain : float[d] = uniform(-0.1, 0.1) decay ; paths.mt:9:3-39 "param plain"
# > var param @h.1.weight : float[d] = ones ; paths.mt:8:3-33 "param w"
# > var param @h.1.plain : float[d] = uniform(-0.1, 0.1) decay ; paths.mt:9:3-39 "param plain"
# > var param @"qkv.{q:a,b,c}.x.{q}.part" : float[q, d] = normal(0.02) decay ; paths.mt:17:3-46 "param w"
# > var param @lin.weight : float[heads, hd, d] = normal(0.02) decay stored (0, 0, 1) ; paths.mt:25:7-12 "param w"
# > var param @lin.bias : float[heads, hd] = zeros stored (0, 0) ; paths.mt:25:7-12 "param b"
