dim batch
dim seq = 4
dim pos = 8
dim embed = 2
model M(x: [batch, seq, embed]) -> (y: [batch, seq, embed]) {
  param wpe: [pos, embed] ~ normal(0.01)
  y = x + wpe
}
train { minimize = y }
# ! dims_do_not_fit.mt:7:7: error MT0201: dims do not fit: pos is not in x
# !      7 |   y = x + wpe
# !        |       ^~~~~~~
# !          x   is float[batch, seq, embed]  (input)
# !          wpe is float[pos, embed]  (param, line 6)
# !          slice[pos -> seq](wpe)?
