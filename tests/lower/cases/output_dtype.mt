dim batch
dim seq = 4
model M(x: [batch, seq]) -> (y: i32[batch, seq], z: [batch, seq], w: f32[], v: bool[seq]) {
  y = x
  z = 0
  w = true
  v = index(seq)
}
# ! output_dtype.mt:4:3: error MT0217: output y is i32, and it is given float[batch, seq]
# !      4 |   y = x
# !        |   ^
# ! output_dtype.mt:3:30: note: the header
# ! output_dtype.mt:5:3: error MT0217: output z is float[batch, seq], and it is given 0
# !      5 |   z = 0
# !        |   ^
# !          write expand[batch, seq](0)
# ! output_dtype.mt:6:3: error MT0217: output w is f32[], and it is given true
# !      6 |   w = true
# !        |   ^
# ! output_dtype.mt:7:3: error MT0217: output v is bool, and it is given i32[seq]
# !      7 |   v = index(seq)
# !        |   ^
# ! output_dtype.mt:3:77: note: the header
