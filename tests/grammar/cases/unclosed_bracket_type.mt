block A(x: [batch, embed) -> [*] {
  return x
}
fn B(x: [*]) -> [*] { return x }
# ! unclosed_bracket_type.mt:1:12: error MT0102: '[' is not closed before the ')' of 1:25
# !      1 | block A(x: [batch, embed) -> [*] {
# !        |            ^
