dim batch
dim seq = 4
dim seq = 5
config { a = 1; a = 2 }
config { a = 3 }
fn f(x: [*]) -> [*] { return x }
block f(x: [*]) -> [*] { return x }
fn g[d, d](x: [*, d], x: [*, d]) -> [*] { return x }
model M(x: [batch, seq], x: [batch]) -> (y: [batch, seq], y: [batch, seq]) {
  y = g[seq, seq](x, x)
}
preset a { a = 1 }
preset a { a = 2 }
# ! defined_twice.mt:7:1: error MT0224: 'f' is already defined at defined_twice.mt:6:1
# !      7 | block f(x: [*]) -> [*] { return x }
# !        | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# ! defined_twice.mt:8:9: error MT0224: dim parameter 'd' is named twice
# !      8 | fn g[d, d](x: [*, d], x: [*, d]) -> [*] { return x }
# !        |         ^
# ! defined_twice.mt:8:23: error MT0224: argument 'x' is named twice
# !      8 | fn g[d, d](x: [*, d], x: [*, d]) -> [*] { return x }
# !        |                       ^~~~~~~~~
# ! defined_twice.mt:9:26: error MT0224: input 'x' is named twice
# !      9 | model M(x: [batch, seq], x: [batch]) -> (y: [batch, seq], y: [batch, seq]) {
# !        |                          ^~~~~~~~~~
# ! defined_twice.mt:9:59: error MT0224: output 'y' is named twice
# !      9 | model M(x: [batch, seq], x: [batch]) -> (y: [batch, seq], y: [batch, seq]) {
# !        |                                                           ^~~~~~~~~~~~~~~
# ! defined_twice.mt:13:1: error MT0224: preset 'a' is already defined
# !     13 | preset a { a = 2 }
# !        | ^~~~~~~~~~~~~~~~~~
# ! defined_twice.mt:3:1: error MT0224: dim 'seq' is already defined at defined_twice.mt:2:1
# !      3 | dim seq = 5
# !        | ^~~~~~~~~~~
