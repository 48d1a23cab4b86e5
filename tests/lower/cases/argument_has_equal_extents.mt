dim batch
dim seq = 4
dim embed = 4
dim ff = 8
model M(x: [batch, seq, embed]) -> (y: [batch, seq, embed]) {
  h = Linear[embed, ff](x) as up
  y = Linear[embed, ff](h) as down
}
# ! argument_has_equal_extents.mt:7:25: error MT0206: Linear wants x: [*, embed], got float[batch, seq, ff], which lacks embed
# !      7 |   y = Linear[embed, ff](h) as down
# !        |                         ^
