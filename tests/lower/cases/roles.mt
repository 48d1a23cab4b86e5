# in x = 1 2 3 4
dim seq = 2
dim kseq = seq
dim k3 = kseq
model M(x: [seq, kseq]) -> (loss: f32[], y: [seq, k3], z: [k3, kseq], w: [seq, kseq]) {
  y = rename[kseq -> k3](x)
  z = rename[seq -> k3](x) + float(index(k3)) * 10
  w = rename[seq, kseq -> kseq, seq](x)
  loss = sum[seq, k3](y)
}
# > loss = 10
# > y = 1 2 3 4
# > z = 1 2 13 14
# > w = 1 3 2 4
