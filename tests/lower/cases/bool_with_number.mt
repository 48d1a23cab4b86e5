dim batch
dim seq = 4
model M(mask: bool[batch, seq]) -> (a: i32[batch, seq], b: bool[batch, seq], c: bool[batch, seq], d: i32[batch]) {
  a = mask + 1
  b = not index(seq)
  c = mask and 1
  d = sum[seq](mask)
}
# ! bool_with_number.mt:4:7: error MT0212: '+' on bool
# !      4 |   a = mask + 1
# !        |       ^~~~~~~~
# !          mask is bool[batch, seq]  (input)
# !          write float(mask), i32(mask), or select(mask, …, …)
# ! bool_with_number.mt:5:7: error MT0212: 'not' wants bool, got i32[seq]
# !      5 |   b = not index(seq)
# !        |       ^~~~~~~~~~~~~~
# ! bool_with_number.mt:6:16: error MT0212: 1 does not mix with bool[batch, seq]
# !      6 |   c = mask and 1
# !        |                ^
# ! bool_with_number.mt:7:7: error MT0212: sum of a bool: mask is bool[batch, seq]
# !      7 |   d = sum[seq](mask)
# !        |       ^~~~~~~~~~~~~~
# !          write sum[…](i32(mask))
