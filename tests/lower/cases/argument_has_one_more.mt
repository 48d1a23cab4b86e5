dim batch
dim seq = 4
dim heads = 2
dim embed = 4
model M(x: [batch, heads, embed]) -> (y: [batch, heads]) {
  y = Linear[embed, heads](x) as proj
}
# ! argument_has_one_more.mt:6:28: error MT0207: Linear wants x: [*, embed], got float[batch, heads, embed], which also has heads
# !      6 |   y = Linear[embed, heads](x) as proj
# !        |                            ^
# !          Linear works along heads, so it may not be one of the other dims: rename it first
