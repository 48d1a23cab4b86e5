dim batch
dim embed = 4
model M(x: [batch, embed]) -> (y: [batch, embed]) {
  repeat 2 as i { x = LayerNorm[embed](x) as ln }
  y = x
}
# ! same_path_repeat.mt:4:23: error MT0262: in LayerNorm: two parameters are called ln.weight
# !      4 |   repeat 2 as i { x = LayerNorm[embed](x) as ln }
# !        |                       ^~~~~~~~~
# !          this place is reached twice: in a repeat, the path of a call holds the index: as "h.{i}"
# ! prelude.mt:129:3: note: here
