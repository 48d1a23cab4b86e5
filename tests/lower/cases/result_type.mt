dim batch
dim seq = 4
dim embed = 4
dim ff = 8
block Layer(x: [batch, seq, embed]) -> [batch, seq, embed] {
  return Linear[embed, ff](x) as up
}
model M(x: [batch, seq, embed]) -> (y: [batch, seq, embed]) {
  y = Layer(x) as l
}
# ! result_type.mt:6:10: error MT0208: Layer promises [batch, seq, embed], returns float[batch, seq, ff]
# !      6 |   return Linear[embed, ff](x) as up
# !        |          ^~~~~~~~~~~~~~~~~~~~~~~~~~
# ! result_type.mt:5:40: note: the header
# ! result_type.mt:9:7: note: in Layer, called here
