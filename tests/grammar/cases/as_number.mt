fn A(x: [*]) -> [*] {
  return Linear[a, b](x) as 3
}
# ! as_number.mt:2:29: error MT0100: unexpected '3', expected a name or a string
# !      2 |   return Linear[a, b](x) as 3
# !        |                             ^
