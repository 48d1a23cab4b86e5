# local dims: roles, groups, pads, one per extent; a call's dims are its own
# show dim
dim batch
dim a = 4
dim b = 3
fn f[d](x: [*, d]) -> [*, d] {
  dim role = d
  dim half = extent(d) / extent(d)
  dim wide = extent(d) pad 8
  dim other = d pad 16
  y = sum[role](rename[d -> role](x))
  return x + y + extent(half) + extent(wide, other)
}
fn g[d](x: [*, d]) -> [*] {
  dim all = d
  return x @[d] x * extent(all)
}
model M(x: [batch, a, b]) -> (loss: f32[]) {
  y = f[a](x) + f[b](x) + f[a](x)
  loss = mean[batch](g[(a, b)](y))
}
# > dim batch = 1 sample
# > dim a = 4
# > dim b = 3
# > dim f.role = 4 of a
# > dim f.half = 1
# > dim f.wide = 4 size 8
# > dim f.other = 4 size 16 of a
# > dim f.role.2 = 3 of b
# > dim f.wide.2 = 3 size 8
# > dim f.other.2 = 3 size 16 of b
# > dim g.all = 12
