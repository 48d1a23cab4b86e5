fn A(x: [*]) -> [*] {
  return x ** 2
}
# ! power.mt:2:12: error MT0005: power is written ^
# !      2 |   return x ** 2
# !        |            ^~
