fn A(x: [*]) -> [*] {
  return select(0 < x < 1, x, 0)
}
# ! chain.mt:2:23: error MT0106: comparisons do not chain; write 'a < b and b < c'
# !      2 |   return select(0 < x < 1, x, 0)
# !        |                       ^
