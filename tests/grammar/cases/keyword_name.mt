fn A(x: [*]) -> [*] {
  map = x + 1
  return x
}
# ! keyword_name.mt:2:3: error MT0104: 'map' is a word of the language; choose another name
# !      2 |   map = x + 1
# !        |   ^~~
