block A(x: [*]) -> [*] {
  y = gelu(x + 1
  return y
}
fn B(x: [*]) -> [*] { return x }
# ! unclosed_paren.mt:2:11: error MT0102: '(' is not closed
# !      2 |   y = gelu(x + 1
# !        |           ^
