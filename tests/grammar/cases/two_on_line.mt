fn A(x: [*]) -> [*] {
  y = x z = x
  return y
}
# ! two_on_line.mt:2:9: error MT0100: unexpected 'z', expected the end of the line or ','
# !      2 |   y = x z = x
# !        |         ^
