block A(x: [*]) -> [*] {
  y = x + 1
  return y

block B(x: [*]) -> [*] { return x }
# ! missing_brace.mt:5:1: error MT0101: '{' of 1:24 is not closed before this
# !      5 | block B(x: [*]) -> [*] { return x }
# !        | ^~~~~
