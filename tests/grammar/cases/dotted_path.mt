block A(x: [*]) -> [*] {
  x = Layer(x) as h.{i}
  return x
}
# ! dotted_path.mt:2:20: error MT0001: unexpected '.'; only settings have dots in their names, a path is a string
# !      2 |   x = Layer(x) as h.{i}
# !        |                    ^
