# a dim parameter that stands for several dims, in every place where one may
# in x = 1 2 3 4 5 6
dim a = 2
dim b = 3
dim c = 6
dim n = 2
fn sums[d](x: [*, d]) -> ([*], [*], [*]) { return sum[d](x), mean[d](x, where = x > 2), max[d](x) }
fn places_of[d](x: [*, d], k = 0) -> [*, d] { return cumsum[d](x) + extent(d) + k }
fn wide[d](x: [*]) -> [*, d] { return expand[d](x) }
fn flat[d, e](x: [*, d]) -> [*, e] { return merge[d -> e](x) }
fn apart[d, e](x: [*, d]) -> [*, e] { return split[d -> e](x) }
fn moved[d, e](x: [*, d]) -> [*, e] { return rename[d -> e](x) }
fn inner[d](x: [*, d], y: [d]) -> [*] { return x @[d] y }
fn maybe[d](x: [*, d?]) -> [*, d?] { return x * 2 }
block Weighted[d](x: [*, d]) -> [*] {
  param w as "w": [d] ~ ones
  return x @[d] (w + 1)
}
dim p = 2
dim q = 3
model M(x: [a, b]) -> (loss: f32[], s: [], m: [], t: [], run: [a, b], w: [n, a, b], f: [c], g: [p, q], r: [p, q], i: [], soft: [a, b], norm: [a, b], lin: [n], some: [a, b], blk: []) {
  s, m, t = sums[(a, b)](x)
  run = places_of[(a, b)](x)
  w = wide[(n, a, b)](1.0)
  f = flat[(a, b), c](x)
  g = apart[c, (p, q)](f)
  r = moved[(a, b), (p, q)](x)
  i = inner[(a, b)](x, x)
  soft = softmax[(a, b)](x)
  norm = rmsnorm[(a, b)](x, x * 0 + 1, eps = 0)
  lin = Linear[(a, b), n](x) as l
  some = maybe[(a, b)](x)
  blk = Weighted[(a, b)](x) as weighted
  loss = s
}
# > loss = 21
# > s = 21
# > m = 4.5
# > t = 6
# > run = 7 9 12 16 21 27
# > w = 1 1 1 1 1 1 1 1 1 1 1 1
# > f = 1 2 3 4 5 6
# > g = 1 2 3 4 5 6
# > r = 1 2 3 4 5 6
# > i = 91
# > soft = 0.00426978 0.0116065 0.0315496 0.0857608 0.233122 0.633691
# > norm = 0.256776 0.513553 0.770329 1.02711 1.28388 1.54066
# > lin = 0 0
# > some = 2 4 6 8 10 12
# > blk = 21
