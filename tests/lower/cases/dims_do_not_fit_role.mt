dim batch
dim seq = 4
dim kseq = seq
dim embed = 2
model M(x: [batch, seq, embed], k: [batch, kseq]) -> (y: [batch, seq, embed]) {
  y = k * x
}
# ! dims_do_not_fit_role.mt:6:7: error MT0201: dims do not fit: kseq is not in x
# !      6 |   y = k * x
# !        |       ^~~~~
# !          k is float[batch, kseq]  (input)
# !          x is float[batch, seq, embed]  (input)
# !          rename[kseq -> seq](k)?
