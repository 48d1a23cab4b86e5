dim batch
dim seq = 4
dim twice = 2 * seq
model M(x: [batch, seq]) -> (y: [batch, seq]) {
  y = x / seq
}
# ! dim_as_value.mt:3:17: error MT0221: no value 'seq' here
# !      3 | dim twice = 2 * seq
# !        |                 ^~~
# !          seq is a dim; its length is extent(seq)
