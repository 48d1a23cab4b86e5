fn f(x: [*]) -> [*] {
  if training
    x = x + 1
  return x
}
dim b
# ! if_no_brace.mt:2:14: error MT0100: unexpected end of the line, expected '{'
# !      2 |   if training
# !        |              ^
# !          it is written like this: if training and p > 0 { … } else { … }
