dim batch
dim seq = 4
dim embed = 4
dim ff = 8
model M(x: [batch, seq, embed]) -> (y: [batch, seq, ff]) {
  repeat 2 as i {
    h = gelu(x)
    x = Linear[embed, ff](h) as "up.{i}"
  }
  y = x
}
# ! carried_type_changes.mt:8:5: error MT0226: 'x' enters repeat as float[batch, seq, embed] and leaves as float[batch, seq, ff]
# !      8 |     x = Linear[embed, ff](h) as "up.{i}"
# !        |     ^
# ! carried_type_changes.mt:6:3: note: the repeat
