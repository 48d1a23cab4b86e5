fn f(x: [*]) -> [*] {
  y = g(x,
    1
    2)
  return z
}
# ! missing_comma.mt:4:5: error MT0100: unexpected '2', expected ')' or ','
# !      4 |     2)
# !        |     ^
