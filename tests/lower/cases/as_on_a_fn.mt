dim batch
dim seq = 4
model M(x: [batch, seq]) -> (y: [batch, seq]) {
  y = gelu(x) as act
  y = exp(y) as e
}
# ! as_on_a_fn.mt:4:18: error MT0243: gelu is a fn and has no parameters; remove 'as act'
# !      4 |   y = gelu(x) as act
# !        |                  ^~~
# ! as_on_a_fn.mt:5:17: error MT0243: exp has no parameters; remove 'as e'
# !      5 |   y = exp(y) as e
# !        |                 ^
