dim a = 2
dim b = 2
dim c = 2
dim d = 2
dim e = 2
dim f = 2
dim g = 2
dim h = 2
dim i = 2
model M(x: [a, b, c, d, e, f, g, h], y: [h, i]) -> (p: [a], q: [a], r: [a]) {
  p = x @ y
  q = expand[i](x)
  r = sum[a, b, c, d, e, f, g, h, i](x)
}
# ! too_many_dims.mt:12:7: error MT0215: the result would have 9 dims; at most 8 are possible
# !     12 |   q = expand[i](x)
# !        |       ^~~~~~~~~~~~
# ! too_many_dims.mt:13:35: error MT0215: more than 8 dims
# !     13 |   r = sum[a, b, c, d, e, f, g, h, i](x)
# !        |                                   ^
