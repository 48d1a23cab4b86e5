dim batch
dim a = 1099511627776
dim b = a
model M(x: [batch, a, b]) -> (y: [batch]) { y = sum[a, b](x) }
# ! too_large_input.mt:4:9: error MT0306: x has more than 2^59 entries
# !      4 | model M(x: [batch, a, b]) -> (y: [batch]) { y = sum[a, b](x) }
# !        |         ^~~~~~~~~~~~~~~~
