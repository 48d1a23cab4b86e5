fn A(x: [*]) -> [*] {
  y = * 2
  z = x + + 
  return y
}
dim q =
# ! two_errors.mt:2:7: error MT0100: unexpected '*', expected a value
# !      2 |   y = * 2
# !        |       ^
# ! two_errors.mt:3:11: error MT0100: unexpected '+', expected a value
# !      3 |   z = x + + 
# !        |           ^
# ! two_errors.mt:6:8: error MT0100: unexpected end of the line, expected a value
# !      6 | dim q =
# !        |        ^
