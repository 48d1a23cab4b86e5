dim batch
dim seq = 4
fn f(x: [batch, seq]) -> [batch, seq] { return x + residual }
model M(x: [batch, seq], k: [batch, seq]) -> (y: [batch, seq], z: [batch, seq]) {
  residual = x
  y = f(x)
  z = kk + kk * q + kk
}
# ! unknown_value.mt:3:52: error MT0221: no value 'residual' here
# !      3 | fn f(x: [batch, seq]) -> [batch, seq] { return x + residual }
# !        |                                                    ^~~~~~~~
# !          bodies do not see their caller's values: pass it
# ! unknown_value.mt:6:7: note: in f, called here
# ! unknown_value.mt:7:7: error MT0221: no value 'kk' here
# !      7 |   z = kk + kk * q + kk
# !        |       ^~
# !          did you mean 'k'?
# ! unknown_value.mt:7:17: error MT0221: no value 'q' here
# !      7 |   z = kk + kk * q + kk
# !        |                 ^
