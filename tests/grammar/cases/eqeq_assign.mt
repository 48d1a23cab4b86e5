fn A(x: [*]) -> [*] {
  y == x
  return y
}
# ! eqeq_assign.mt:2:5: error MT0105: '==' compares; '=' names a value
# !      2 |   y == x
# !        |     ^~
