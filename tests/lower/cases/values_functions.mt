# a function of one's own, also under the name of one of the prelude's; numbers, defaults, several results, groups
# in x = -1 0 2
# in q = 1 2 3 4 5 6
config { scale = 3 }
dim a = 3
dim h = 2
fn gelu(x: [*]) -> [*] { return 100 * x }
fn relu(x: [*]) -> [*] { return max(x, 0) + inner(x) }
fn inner(x: [*], k = 2, twice = false) -> [*] {
  if twice { return k * 2 * x }
  return k * x
}
fn parts(x: [*], scale) -> ([*], [*], []) { return x + scale, x - scale, scale * 2 }
fn norm[d](x: [*, d], where: bool[*, d] = true) -> [*, d] { return x / sum[d](x, where = where) * extent(d) }
fn early(x: [*], n) -> [*] {
  repeat n as i {
    if i == 2 { return x * i }
    x = x + 1
  }
  return x
}
fn exp(x: [*]) -> [*] { return x + 1000 }
model M(x: [a], q: [h, a]) -> (loss: f32[], own: [a], prelude: [a], named: [a], p: [a], m: [a], two: [], all: [h, a], along: [h, a], masked: [h, a], soon: [a], late: [a], soft: [a], config_hidden: [a]) {
  own = gelu(x)
  prelude = relu(x)
  named = inner(x, twice = true) + inner(k = 5, x = x) + inner(x, 7)
  p, m, two = parts(x, 0.5)
  all = norm[(h, a)](q)
  along = norm[a](q)
  masked = norm[a](q, q > 1)
  soon = early(x, 4)
  late = early(x, 1)
  soft = softmax[a](x)
  config_hidden = exp(x) * scale
  loss = two
}
# > loss = 1
# > own = -100 0 200
# > prelude = -2 0 6
# > named = -16 0 32
# > p = -0.5 0.5 2.5
# > m = -1.5 -0.5 1.5
# > two = 1
# > all = 0.285714 0.571429 0.857143 1.14286 1.42857 1.71429
# > along = 0.5 1 1.5 0.8 1 1.2
# > masked = 0.6 1.2 1.8 0.8 1 1.2
# > soon = 2 4 8
# > late = 0 1 3
# > soft = 0.0420101 0.114195 0.843795
# > config_hidden = 2997 3000 3006
