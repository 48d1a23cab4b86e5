dim batch
dim seq = 4
fn two(x: [*]) -> ([*], [*]) { return x, x + 1 }
fn one(x: [*]) -> ([*], [*]) { return x }
model M(x: [batch, seq]) -> (y: [batch, seq]) {
  a, b, c = x, x
  a, b, c = two(x)
  y = two(x) + 1
  y, z = one(x)
  y = x
}
# ! counts.mt:6:3: error MT0246: 3 names, 2 values
# !      6 |   a, b, c = x, x
# !        |   ^~~~~~~~~~~~~~
# ! counts.mt:7:3: error MT0246: 3 names, and two gives 2 values
# !      7 |   a, b, c = two(x)
# !        |   ^~~~~~~~~~~~~~~~
# ! counts.mt:8:7: error MT0246: one value is wanted here, and two gives 2
# !      8 |   y = two(x) + 1
# !        |       ^~~
# !          name them: a, b = two(…)
# ! counts.mt:4:32: error MT0246: one promises 2 values, returns 1
# !      4 | fn one(x: [*]) -> ([*], [*]) { return x }
# !        |                                ^~~~~~~~
# ! counts.mt:9:10: note: in one, called here
