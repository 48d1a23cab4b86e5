dim batch
dim seq = 4
dim embed = 4
model M(x: [batch, seq, embed]) -> (y: [batch, embed]) {
  y = x + 1
}
# ! output_type.mt:5:3: error MT0208: output y is [batch, embed], and it is given float[batch, seq, embed]
# !      5 |   y = x + 1
# !        |   ^
# ! output_type.mt:4:37: note: the header
