fn f(x: [*]) -> [*] {
  y = gelu(x
  z = y + 1
  return z
}
# ! unclosed_paren_next_statement.mt:2:11: error MT0102: '(' is not closed
# !      2 |   y = gelu(x
# !        |           ^
