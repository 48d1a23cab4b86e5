fn A(x: [*]) -> [*] {
  y = x +
  return y
}
# ! missing_rhs.mt:2:10: error MT0100: unexpected end of the line, expected a value
# !      2 |   y = x +
# !        |          ^
