dim batch
dim embed = 4
block Layer(x: [batch, embed]) -> [batch, embed] {
  x = LayerNorm[embed](x) as ln
  return LayerNorm[embed](x) as ln
}
model M(x: [batch, embed]) -> (y: [batch, embed]) {
  y = Layer(x) as "h.0"
}
# ! same_path.mt:5:10: error MT0262: in LayerNorm: two parameters are called h.0.ln.weight
# !      5 |   return LayerNorm[embed](x) as ln
# !        |          ^~~~~~~~~
# ! same_path.mt:4:7: note: the first; give the calls different 'as'
# ! prelude.mt:129:3: note: here
# ! same_path.mt:8:7: note: in Layer, called here
