fn A(x: [*]) -> [*] {
  x += 1
  return x
}
# ! plus_eq.mt:2:5: error MT0005: there is no '+='; write x = x + …
# !      2 |   x += 1
# !        |     ^~
