dim batch
dim seq = 4
dim embed = 4
model M(x: [batch, seq, embed]) -> (a: [batch, seq, embed], b: [batch, seq, embed], c: [batch], d: [batch], e: [batch]) {
  a = LayerNorm(x) as ln_f
  b = gelu[embed](x)
  c = sum(x)
  d = exp[seq](x)
  e = rename[seq](x)
}
# ! dim_arguments.mt:5:7: error MT0240: LayerNorm takes 1 dim, got none
# !      5 |   a = LayerNorm(x) as ln_f
# !        |       ^~~~~~~~~
# !          write LayerNorm[d](x, eps = …) as name
# ! dim_arguments.mt:6:7: error MT0240: gelu takes no dims in brackets
# !      6 |   b = gelu[embed](x)
# !        |       ^~~~
# !          write gelu(x)
# ! dim_arguments.mt:7:7: error MT0240: sum is written sum[d](x, where = …)
# !      7 |   c = sum(x)
# !        |       ^~~
# ! dim_arguments.mt:8:7: error MT0240: exp is written exp(x)
# !      8 |   d = exp[seq](x)
# !        |       ^~~
# ! dim_arguments.mt:9:7: error MT0240: rename is written rename[a -> b](x)
# !      9 |   e = rename[seq](x)
# !        |       ^~~~~~
