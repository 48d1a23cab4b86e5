fn f(x: [*]) -> [*] {
  gelu(x)
  return x
}
# ! call_statement.mt:2:7: error MT0100: unexpected '(', expected '=' or ','
# !      2 |   gelu(x)
# !        |       ^
# !          a statement names what it computes: y = …
