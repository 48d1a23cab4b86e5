dim batch
dim hd = 64
dim two = 2
dim half = 31
dim whole = 62
model M(x: [batch, hd], y: [batch, two, half]) -> (a: [batch, two, half], b: [batch, hd]) {
  a = split[hd -> two, half](x)
  b = merge[two, half -> hd](y)
}
# ! split_does_not_multiply.mt:7:7: error MT0233: hd is 64, two · half is 2 · 31 = 62
# !      7 |   a = split[hd -> two, half](x)
# !        |       ^~~~~~~~~~~~~~~~~~~~~~~~~
# ! split_does_not_multiply.mt:8:7: error MT0233: hd is 64, two · half is 2 · 31 = 62
# !      8 |   b = merge[two, half -> hd](y)
# !        |       ^~~~~~~~~~~~~~~~~~~~~~~~~
