dim batch
dim seq = 4
dim vocab = 5
fn count(m: bool[*]) -> i32[*] { return i32(m) }
model M(tokens: i32[batch, seq], x: [batch, seq]) -> (a: [batch, seq], b: [batch, seq], c: i32[batch, seq], d: i32[batch, seq], e: [batch, seq]) {
  a = gelu(tokens)
  b = one_hot[vocab](x)
  c = count(tokens)
  d = count(1)
  e = gelu(true)
}
# ! argument_dtype.mt:6:12: error MT0217: gelu wants x: float[*], got i32[batch, seq]
# !      6 |   a = gelu(tokens)
# !        |            ^~~~~~
# !          write float(tokens)
# ! argument_dtype.mt:7:22: error MT0217: one_hot wants i: i32[*], got float[batch, seq]
# !      7 |   b = one_hot[vocab](x)
# !        |                      ^
# !          write i32(x)
# ! argument_dtype.mt:8:13: error MT0217: count wants m: bool[*], got i32[batch, seq]
# !      8 |   c = count(tokens)
# !        |             ^~~~~~
# !          write bool(tokens)
# ! argument_dtype.mt:9:13: error MT0217: count wants m: bool[*], got 1
# !      9 |   d = count(1)
# !        |             ^
# ! argument_dtype.mt:10:12: error MT0217: gelu wants x: [*], got true
# !     10 |   e = gelu(true)
# !        |            ^~~~
