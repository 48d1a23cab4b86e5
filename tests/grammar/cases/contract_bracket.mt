fn A(x: [*]) -> [*] {
  return x @[a b] y
}
# ! contract_bracket.mt:2:16: error MT0100: unexpected 'b', expected ',' or ']'
# !      2 |   return x @[a b] y
# !        |                ^
