dim batch
dim seq = 32
dim kseq = seq
dim pos = 64
dim p1 = 32 pad 64
model M(x: [batch, seq], y: [batch, seq, kseq]) -> (a: [batch, pos], b: [batch, kseq], c: [batch], d: [batch]) {
  a = rename[seq -> pos](x)
  b = rename[seq -> kseq](y)
  c = rename[seq -> p1](x)
  d = rename[seq, kseq -> pos](y)
}
# ! rename_wrong.mt:7:7: error MT0230: rename[seq -> pos]: seq is 32, pos is 64; extents must be equal
# !      7 |   a = rename[seq -> pos](x)
# !        |       ^~~~~~~~~~~~~~~~~~~~~
# ! rename_wrong.mt:8:27: error MT0230: rename[seq -> kseq]: y is float[batch, seq, kseq] and already has kseq
# !      8 |   b = rename[seq -> kseq](y)
# !        |                           ^
# ! rename_wrong.mt:9:7: error MT0230: rename[seq -> p1]: seq is stored as 32 entries, p1 as 64; give both the same pad
# !      9 |   c = rename[seq -> p1](x)
# !        |       ^~~~~~~~~~~~~~~~~~~~
# ! rename_wrong.mt:10:7: error MT0240: rename[a -> b] wants as many dims after -> as before, got 2 and 1
# !     10 |   d = rename[seq, kseq -> pos](y)
# !        |       ^~~~~~~~~~~~~~~~~~~~~~~~~~~
