dim batch
dim seq = 4
model M(x: [batch, seq]) -> (y: [batch, seq]) {
  param a: [*, seq] ~ ones
  param b: i32[seq] ~ ones
  param c: [batch, seq] ~ ones
  param d: [seq, seq] ~ ones
  param x: [seq] ~ ones
  y = a + b + c + d + x
}
# ! param_type.mt:4:13: error MT0265: a parameter's type names its dims, without * and ?
# !      4 |   param a: [*, seq] ~ ones
# !        |             ^
# ! param_type.mt:5:12: error MT0265: a parameter is a float, not i32
# !      5 |   param b: i32[seq] ~ ones
# !        |            ^~~~~~~~
# ! param_type.mt:6:12: error MT0265: a parameter has no batch: its size would depend on the number of samples
# !      6 |   param c: [batch, seq] ~ ones
# !        |            ^~~~~~~~~~~~
# ! param_type.mt:7:18: error MT0214: seq occurs twice
# !      7 |   param d: [seq, seq] ~ ones
# !        |                  ^~~
# !          declare a role, a second dim of the same extent: dim kseq = seq
# ! param_type.mt:8:3: error MT0224: 'x' is already a value here
# !      8 |   param x: [seq] ~ ones
# !        |   ^~~~~~~~~~~~~~~~~~~~~
