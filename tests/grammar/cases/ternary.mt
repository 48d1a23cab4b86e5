fn A(x: [*]) -> [*] {
  y = training ? x : 0
  return y
}
# ! ternary.mt:2:16: error MT0100: unexpected '?', expected the end of the line or ','
# !      2 |   y = training ? x : 0
# !        |                ^
# !          a choice is written if c { … } else { … }, or select(c, a, b) for tensors
