# every primitive along padded dims gives what it gives without padding
# in x = 1 2 3 4 5 6
# in t = 2 0 -1
# in m = 1 0 1
dim a = 2 pad 4
dim b = 3 pad 8
dim c = 3 pad 8
dim e = 2 pad 4
dim a2 = a
dim b2 = b
model M(x: [a, b], t: i32[b], m: bool[b]) -> (loss: f32[], ex: [a, b], plus: [a, b], inv: [a, b], s: [a], mu: [b], top: [a], masked: [], run: [a, b], wide: [c, a, b], turned: [a, c],
                                              both: [e, a, b], one: [a, b], part: [a, e], right: [a, b], place: i32[b], prod: [a, e], got: [b, a], size: [], counts: [], logic: bool[b],
                                              soft: [a, b], same: [a, a2], ones: [], least: []) {
  ex = exp(x)
  plus = x + 1
  inv = 1 / x
  s = sum[b](x + 1)
  mu = mean[a](x)
  top = max[b](-x)
  masked = sum[a, b](exp(x), where = m)
  run = cumsum[b](x)
  wide = expand[c](x)
  turned = rename[b -> c](x)
  both = stack[e](x, x * 2)
  one, two = unstack[e](both)
  part = slice[b -> e](x, at = 1)
  right = shift[b](x, 1, fill = 5)
  place = index(b)
  index_of = float(index(b))
  prod = (x + 1) @ (expand[e](index_of) + 1)
  got = gather[b2](rename[b -> b2](x), t)
  size = extent(a, b) * mean[b](mean[a](x))
  counts = float(sum[b](i32(not m)))
  logic = not m
  soft = softmax[b](x)
  same = x @[b] rename[a -> a2](x)
  ones = sum[a, b, c](expand[a, b, c](1.0))
  least = max[a, b](cos(x))
  loss = mean[a, b](exp(x))
}
# > loss = 106.105
# > ex = 2.71828 7.38906 20.0855 54.5982 148.413 403.429
# > plus = 2 3 4 5 6 7
# > inv = 1 0.5 0.333333 0.25 0.2 0.166667
# > s = 9 18
# > mu = 2.5 3.5 4.5
# > top = -1 -4
# > masked = 480.831
# > run = 1 3 6 4 9 15
# > wide = 1 2 3 4 5 6 1 2 3 4 5 6 1 2 3 4 5 6
# > turned = 1 2 3 4 5 6
# > both = 1 2 3 4 5 6 2 4 6 8 10 12
# > one = 1 2 3 4 5 6
# > part = 2 3 5 6
# > right = 5 1 2 5 4 5
# > place = 0 1 2
# > prod = 20 20 38 38
# > got = 3 6 1 4 0 0
# > size = 21
# > counts = 1
# > logic = 0 1 0
# > soft = 0.0900306 0.244728 0.665241 0.0900306 0.244728 0.665241
# > same = 14 32 32 77
# > ones = 18
# > least = 0.96017
