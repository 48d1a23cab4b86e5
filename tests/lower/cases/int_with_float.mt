dim batch
dim seq = 4
model M(x: [batch, seq], freq: [seq]) -> (y: [seq]) {
  y = index(seq) * freq
}
# ! int_with_float.mt:4:7: error MT0210: integers and floats do not mix
# !      4 |   y = index(seq) * freq
# !        |       ^~~~~~~~~~~~~~~~~
# !          index(seq) is i32[seq]
# !          freq       is float[seq]  (input)
# !          write float(index(seq))
