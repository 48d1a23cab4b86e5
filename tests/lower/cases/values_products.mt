# in x = 1 2 3 4 5 6
# in w = 1 0 2 1 -1 3
# in u = 1 2
# in v = 1 2 3 4
dim a = 2
dim b = 3
dim c = 2
dim h = 2
model M(x: [a, b], w: [c, b], u: [a], v: [a, h]) -> (loss: f32[], one: [a, c], two: [], outer: [a, h], batch: [a], rows: [a, b], scaled: [b], heads: [h, b], group: []) {
  one = x @ w
  two = x @[a, b] x
  outer = u @[] expand[h](1.0)
  batch = x @[b] x
  rows = (x @[b] w) @[c] w
  scaled = u @ x
  heads = v @[a] x
  group = dots[(a, b)](x, x)
  loss = u @ u
}
fn dots[d](x: [*, d], y: [*, d]) -> [*] { return x @[d] y }
# > loss = 5
# > one = 7 8 16 17
# > two = 91
# > outer = 1 1 2 2
# > batch = 14 77
# > rows = 15 -8 38 33 -17 83
# > scaled = 9 12 15
# > heads = 13 17 21 18 24 30
# > group = 91
