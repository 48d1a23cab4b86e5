dim batch
dim seq = 4
fn f(x: [batch, sew]) -> [batch, seq] { return x }
model M(x: [batch, seq]) -> (y: [batch], z: i32[seq], w: [batch, seq]) {
  y = sum[sq](x)
  z = index(seg)
  w = f(x)
}
# ! unknown_dim.mt:5:11: error MT0220: no dim 'sq'
# !      5 |   y = sum[sq](x)
# !        |           ^~
# !          did you mean 'seq'?
# ! unknown_dim.mt:6:13: error MT0220: no dim 'seg'
# !      6 |   z = index(seg)
# !        |             ^~~
# !          did you mean 'seq'?
# ! unknown_dim.mt:3:17: error MT0220: no dim 'sew'
# !      3 | fn f(x: [batch, sew]) -> [batch, seq] { return x }
# !        |                 ^~~
# !          did you mean 'seq'?
# ! unknown_dim.mt:7:7: note: in f, called here
