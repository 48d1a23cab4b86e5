dim batch
dim embed = 4
model M(x: [batch, embed], g: [embed]) -> (y: [batch, embed]) {
  y = RMSNorm[embed](x, g) as norm
}
# ! tensor_for_number.mt:4:25: error MT0245: 'eps' of RMSNorm is a number, got float[embed]
# !      4 |   y = RMSNorm[embed](x, g) as norm
# !        |                         ^
# !          write RMSNorm[d](x, eps = …) as name
