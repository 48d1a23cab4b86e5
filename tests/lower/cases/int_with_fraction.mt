dim batch
dim seq = 4
model M(tokens: i32[batch, seq]) -> (y: [batch, seq]) {
  y = tokens * 0.5
}
# ! int_with_fraction.mt:4:16: error MT0211: 0.5 is not an integer, and tokens is i32[batch, seq]
# !      4 |   y = tokens * 0.5
# !        |                ^~~
# !          write float(tokens)
