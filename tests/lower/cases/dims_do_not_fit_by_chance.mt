dim batch
dim seq = 4
dim pos = 4
dim embed = 2
model M(x: [batch, seq, embed]) -> (y: [batch, seq, embed]) {
  param wpe: [pos, embed] ~ normal(0.01)
  y = x + wpe
}
# ! dims_do_not_fit_by_chance.mt:7:7: error MT0201: dims do not fit: pos is not in x
# !      7 |   y = x + wpe
# !        |       ^~~~~~~
# !          x   is float[batch, seq, embed]  (input)
# !          wpe is float[pos, embed]  (param, line 6)
