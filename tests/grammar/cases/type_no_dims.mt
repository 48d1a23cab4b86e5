fn f(x: f32) -> [*] { return x }
# ! type_no_dims.mt:1:12: error MT0100: unexpected ')', expected '['
# !      1 | fn f(x: f32) -> [*] { return x }
# !        |            ^
# !          it is written like this: fn f[d](x: [*, d], eps = 1e-5) -> [*, d] { … }
