fn A(x: [*]) {
  y = x
  return y
}
fn B(x: [*]) -> [*] { return x }
# ! missing_arrow.mt:1:14: error MT0100: unexpected '{', expected '->'
# !      1 | fn A(x: [*]) {
# !        |              ^
# !          it is written like this: fn f[d](x: [*, d], eps = 1e-5) -> [*, d] { … }
