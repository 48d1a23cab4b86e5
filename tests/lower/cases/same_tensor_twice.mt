dim batch
dim expert = 2
model M(x: [batch, expert]) -> (loss: f32[]) {
  param a as "experts.{expert}.w": [expert] ~ ones
  param b as "experts.1.w": [] ~ ones
  loss = mean[batch, expert](x * a * b)
}
# ! same_tensor_twice.mt:5:3: error MT0262: two parameters have a tensor experts.1.w
# !      5 |   param b as "experts.1.w": [] ~ ones
# !        |   ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# ! same_tensor_twice.mt:4:3: note: the first; give the calls different 'as'
