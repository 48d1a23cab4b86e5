fn A(x: [*]) -> [*] {
  y = x $ 2
  return y
}
# ! bad_char.mt:2:9: error MT0001: unexpected character '$'
# !      2 |   y = x $ 2
# !        |         ^
