fn f(x: [*]) -> [*]
  y = x
  return y
}
fn g(x: [*]) -> [*] { return x }
# ! fn_no_brace.mt:1:20: error MT0100: unexpected end of the line, expected '{'
# !      1 | fn f(x: [*]) -> [*]
# !        |                    ^
# !          it is written like this: fn f[d](x: [*, d], eps = 1e-5) -> [*, d] { … }
