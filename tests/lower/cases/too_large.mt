config { big = 1099511627776 }
dim batch
dim a = big
dim b = big
dim c = big
model M(x: [batch, a]) -> (y: i32[a], z: [a, b], w: [a, b, c]) {
  y = index(a)
  z = expand[b, c](mean[batch](x))
  dim e = b pad 9007199254740992
  dim f = b pad 9007199254740991
  param p: [a, b, c] ~ zeros
}
# ! too_large.mt:7:7: error MT0306: index is an i32, and a is 1099511627776
# !      7 |   y = index(a)
# !        |       ^~~~~~~~
# ! too_large.mt:8:7: error MT0306: this value has more than 2^59 entries: float[b, c, a]
# !      8 |   z = expand[b, c](mean[batch](x))
# !        |       ^~~~~~~~~~~~~~~~~~~~~~~~~~~~
# ! too_large.mt:11:3: error MT0306: p has more than 2^59 entries
# !     11 |   param p: [a, b, c] ~ zeros
# !        |   ^~~~~~~~~~~~~~~~~~~~~~~~~~
