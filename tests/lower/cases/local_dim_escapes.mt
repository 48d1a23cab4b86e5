dim batch
dim hd = 4
fn halves[d](x: [*, d]) -> [*] {
  dim two  = 2
  dim half = extent(d) / 2
  return split[d -> two, half](x)
}
model M(x: [batch, hd]) -> (y: [batch]) {
  y = sum[hd](halves[hd](x))
}
# ! local_dim_escapes.mt:6:10: error MT0209: the result is float[batch, two, half], and 'two' exists only inside halves
# !      6 |   return split[d -> two, half](x)
# !        |          ^~~~~~~~~~~~~~~~~~~~~~~~
# !          merge or reduce it, or make it a dim parameter of halves
# ! local_dim_escapes.mt:9:15: note: in halves, called here
