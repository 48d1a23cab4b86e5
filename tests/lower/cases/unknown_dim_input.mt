dim batch
dim seq = 4
model M(x: [batch, sew]) -> (y: [batch]) {
  y = sum[seq](x)
}
# ! unknown_dim_input.mt:3:20: error MT0220: no dim 'sew'
# !      3 | model M(x: [batch, sew]) -> (y: [batch]) {
# !        |                    ^~~
# !          did you mean 'seq'?
