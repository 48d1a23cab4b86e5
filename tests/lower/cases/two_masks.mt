dim batch
dim seq = 4
dim kseq = seq
model M(valid: bool[batch, kseq], x: [batch, seq, kseq]) -> (y: [batch, seq, kseq]) {
  causal = expand[seq](index(kseq)) <= index(seq)
  y = select(valid and causal, x, 0)
}
# ! two_masks.mt:6:14: error MT0202: neither operand has all dims of the other
# !      6 |   y = select(valid and causal, x, 0)
# !        |              ^~~~~~~~~~~~~~~~
# !          valid  is bool[batch, kseq]  (input)
# !          causal is bool[seq, kseq]  (line 5)
# !          expand[seq](valid) or expand[batch](causal) gives one of them all
