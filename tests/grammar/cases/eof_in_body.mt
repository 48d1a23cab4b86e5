fn A(x: [*]) -> [*] {
  return x
# ! eof_in_body.mt:1:21: error MT0101: '{' is not closed
# !      1 | fn A(x: [*]) -> [*] {
# !        |                     ^
