dim batch
dim seq = 4
fn scale(x: [batch, seq]) -> [batch, seq] {
  param g: [seq] ~ ones
  return x * g
}
model M(x: [batch, seq]) -> (y: [batch, seq]) {
  y = scale(x)
}
# ! param_in_a_fn.mt:4:3: error MT0244: scale is a fn and has no parameters; make it a block
# !      4 |   param g: [seq] ~ ones
# !        |   ^~~~~~~~~~~~~~~~~~~~~
# ! param_in_a_fn.mt:8:7: note: in scale, called here
