fn A(x: [*]) -> [*] {
  return x × 2
}
# ! utf8.mt:2:12: error MT0001: '×' can only be in a comment or a string
# !      2 |   return x × 2
# !        |            ^
