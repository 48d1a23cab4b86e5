dim batch
dim seq = 4
fn f(x: [*]) -> i32[*] { return x }
fn g(x: [*]) -> i32[] { return 0.5 }
model M(x: [batch, seq]) -> (y: i32[batch, seq], z: i32[]) {
  y = f(x)
  z = g(x)
}
# ! result_dtype.mt:3:33: error MT0217: f promises i32[*], returns float[batch, seq]
# !      3 | fn f(x: [*]) -> i32[*] { return x }
# !        |                                 ^
# ! result_dtype.mt:3:17: note: the header
# ! result_dtype.mt:6:7: note: in f, called here
# ! result_dtype.mt:4:32: error MT0217: g promises i32[], returns 0.5
# !      4 | fn g(x: [*]) -> i32[] { return 0.5 }
# !        |                                ^~~
# ! result_dtype.mt:4:17: note: the header
# ! result_dtype.mt:7:7: note: in g, called here
