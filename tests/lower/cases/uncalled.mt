config { n = 2; rate = 0.5 }
dim batch
dim seq = 4
dim kseq = seq
fn right[d](x: [*, d], k = n) -> [*] {
  y = sum[d](x) * rate + pi * extent(seq) + f32(index(seq))
  if training { z = max(y, 0) } else { z = y }
  repeat n as i { z = z + i }
  dim part = 2
  return other[d](z, scale = k) @[batch] expand[batch](z)
}
fn other[d](x: [*, d], scale, shift = 1.0) -> [*] { return x * scale + shift }
block Wrong[d](x: [*, d, sq?], k = m) -> [*, dd] {
  param w: [d, ff] ~ normal(stdd)
  a, b = split[d -> e, seq](x)
  c = gelue(a) + residual @[e] w
  c = other[d, seq](x, 1) + other[d](x) + other(x, scale = 2)
  c = other[d](x, 1, 2, 3) + other[d](x, 1, shft = 2)
  c = index(kseqq) + M(x) + right[d](c) as c
  return c + b
}
model M(x: [batch, seq]) -> (loss: f32[]) { loss = mean[batch, seq](used(x)) }
fn used(x: [*]) -> [*] { if training { return x } else { return deeper(x) } }
fn deeper(x: [*]) -> [*] { return x }
fn role[d](x: [*, d]) -> [*] { dim o = d; return sum[o](rename[d -> o](x)) }
# ! uncalled.mt:13:26: error MT0220: no dim 'sq'
# !     13 | block Wrong[d](x: [*, d, sq?], k = m) -> [*, dd] {
# !        |                          ^~~
# !          did you mean 'seq'?
# ! uncalled.mt:13:36: error MT0221: no value 'm' here
# !     13 | block Wrong[d](x: [*, d, sq?], k = m) -> [*, dd] {
# !        |                                    ^
# ! uncalled.mt:13:46: error MT0220: no dim 'dd'
# !     13 | block Wrong[d](x: [*, d, sq?], k = m) -> [*, dd] {
# !        |                                              ^~
# !          did you mean 'd'?
# ! uncalled.mt:14:16: error MT0220: no dim 'ff'
# !     14 |   param w: [d, ff] ~ normal(stdd)
# !        |                ^~
# ! uncalled.mt:14:29: error MT0221: no value 'stdd' here
# !     14 |   param w: [d, ff] ~ normal(stdd)
# !        |                             ^~~~
# ! uncalled.mt:15:21: error MT0220: no dim 'e'
# !     15 |   a, b = split[d -> e, seq](x)
# !        |                     ^
# ! uncalled.mt:16:7: error MT0222: no function 'gelue'
# !     16 |   c = gelue(a) + residual @[e] w
# !        |       ^~~~~
# !          did you mean 'gelu'?
# ! uncalled.mt:16:18: error MT0221: no value 'residual' here
# !     16 |   c = gelue(a) + residual @[e] w
# !        |                  ^~~~~~~~
# ! uncalled.mt:16:29: error MT0220: no dim 'e'
# !     16 |   c = gelue(a) + residual @[e] w
# !        |                             ^
# ! uncalled.mt:17:7: error MT0240: other takes 1 dim, got 2
# !     17 |   c = other[d, seq](x, 1) + other[d](x) + other(x, scale = 2)
# !        |       ^~~~~
# ! uncalled.mt:17:29: error MT0241: other needs 'scale'
# !     17 |   c = other[d, seq](x, 1) + other[d](x) + other(x, scale = 2)
# !        |                             ^~~~~
# ! uncalled.mt:17:43: error MT0240: other takes 1 dim, got 0
# !     17 |   c = other[d, seq](x, 1) + other[d](x) + other(x, scale = 2)
# !        |                                           ^~~~~
# ! uncalled.mt:18:7: error MT0242: other takes 3 arguments
# !     18 |   c = other[d](x, 1, 2, 3) + other[d](x, 1, shft = 2)
# !        |       ^~~~~
# ! uncalled.mt:18:45: error MT0242: other has no argument 'shft'
# !     18 |   c = other[d](x, 1, 2, 3) + other[d](x, 1, shft = 2)
# !        |                                             ^~~~~~~~
# ! uncalled.mt:19:13: error MT0220: no dim 'kseqq'
# !     19 |   c = index(kseqq) + M(x) + right[d](c) as c
# !        |             ^~~~~
# !          did you mean 'kseq'?
# ! uncalled.mt:19:22: error MT0222: M is a model and cannot be called
# !     19 |   c = index(kseqq) + M(x) + right[d](c) as c
# !        |                      ^
