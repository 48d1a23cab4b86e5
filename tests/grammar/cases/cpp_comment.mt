fn A(x: [*]) -> [*] {
  y = x   // a comment
  return y
}
# ! cpp_comment.mt:2:11: error MT0004: a comment starts with #
# !      2 |   y = x   // a comment
# !        |           ^~~~~~~~~~~~
