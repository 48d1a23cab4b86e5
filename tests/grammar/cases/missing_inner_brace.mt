block A(x: [*]) -> [*] {
  repeat 3 as i {
    x = x + 1
  return x
}

block B(x: [*]) -> [*] { return x }
# ! missing_inner_brace.mt:7:1: error MT0101: '{' of 1:24 is not closed before this
# !      7 | block B(x: [*]) -> [*] { return x }
# !        | ^~~~~
