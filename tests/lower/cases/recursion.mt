dim batch
dim seq = 4
fn f(x: [*]) -> [*] { return g(x) }
fn g(x: [*]) -> [*] { return f(x) + 1 }
model M(x: [batch, seq]) -> (y: [batch, seq]) {
  y = f(x)
}
# ! recursion.mt:4:30: error MT0227: f calls itself: f → g → f
# !      4 | fn g(x: [*]) -> [*] { return f(x) + 1 }
# !        |                              ^
# ! recursion.mt:3:30: note: in g, called here
# ! recursion.mt:6:7: note: in f, called here
