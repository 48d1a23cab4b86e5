fn A(x: [*]) -> [*] {
  return x)
}
# ! stray_close.mt:2:11: error MT0107: ')' closes nothing
# !      2 |   return x)
# !        |           ^
