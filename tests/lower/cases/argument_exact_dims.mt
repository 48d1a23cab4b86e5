dim batch
dim seq = 4
dim embed = 4
fn f(x: [batch, embed]) -> [batch, embed] { return x }
model M(x: [batch, seq, embed]) -> (y: [batch, seq, embed]) {
  y = f(x)
}
# ! argument_exact_dims.mt:6:9: error MT0207: f wants x: [batch, embed], got float[batch, seq, embed], which also has seq
# !      6 |   y = f(x)
# !        |         ^
# !          [*, …] in the header of f would allow other dims
