# in x = 1 2 3 4 5 6
# in y = 10 20
# in z = 1 2 3 4 5 6 7 8
dim a = 2
dim b = 3
dim c = 3
dim d = 6
dim e = 2
dim f = 4
dim g = 8
dim h = 2
model M(x: [a, b], y: [a], z: [g]) -> (loss: f32[], wide: [b, a], turned: [c, a], swapped: [a, e], apart: [a, b], whole: [d], other: [d], both: [e, a], first: [a], last: [a],
                                       part: [a, e], right: [a, b], left: [a, b], far: [a, b], ints: i32[a, b], place: i32[b], size: [a], back: [d], deep: [e, h, a], zs: [h, f], cut: [f]) {
  wide = expand[b](y)
  turned = rename[b -> c](x)
  swapped = rename[a, e -> e, a](expand[e](y) * (1 + float(index(e))))
  other = merge[b, a -> d](x)
  whole = merge[a, b -> d](x)
  apart = split[d -> a, b](whole)
  both = stack[e](y, y + 1)
  first, last = unstack[e](both)
  part = slice[b -> e](x, at = 1)
  right = shift[b](x, 1)
  left = shift[b](x, -1, fill = 9)
  far = shift[b](x, 5, fill = -1)
  ints = shift[b](i32(x), by = -2, fill = 7)
  place = index(b)
  size = y * extent(b) + extent(a, b)
  back = merge[a, b -> d](split[d -> a, b](whole))
  deep = split[f -> e, h](rename[f -> f](slice[g -> f](z))) + expand[h, a](rename[a -> e](y))
  zs = split[g -> h, f](z)
  cut = slice[g -> f](z, 3)
  loss = sum[d](whole)
}
# > loss = 21
# > wide = 10 20 10 20 10 20
# > turned = 1 4 2 5 3 6
# > swapped = 10 20 20 40
# > apart = 1 2 3 4 5 6
# > whole = 1 2 3 4 5 6
# > other = 1 4 2 5 3 6
# > both = 10 20 11 21
# > first = 10 20
# > last = 11 21
# > part = 2 3 5 6
# > right = 0 1 2 0 4 5
# > left = 2 3 9 5 6 9
# > far = -1 -1 -1 -1 -1 -1
# > ints = 3 7 7 6 7 7
# > place = 0 1 2
# > size = 36 66
# > back = 1 2 3 4 5 6
# > deep = 11 11 12 12 23 23 24 24
# > zs = 1 2 3 4 5 6 7 8
# > cut = 4 5 6 7
