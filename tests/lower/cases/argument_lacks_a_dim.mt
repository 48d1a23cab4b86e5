dim batch
dim seq = 4
dim kseq = seq
dim heads = 2
dim hd = 2
model M(q: [batch, seq, heads, hd], k: [batch, seq, heads, hd], v: [batch, seq, heads, hd]) -> (a: [batch, seq, heads, hd]) {
  a = attention[seq, kseq, hd](q, k, v)
}
# ! argument_lacks_a_dim.mt:7:35: error MT0206: attention wants k: [*, kseq, hd], got float[batch, seq, heads, hd], which lacks kseq
# !      7 |   a = attention[seq, kseq, hd](q, k, v)
# !        |                                   ^
# !          rename[seq -> kseq](k)?
