dim batch
dim seq = 4
dim embed = 4
dim heads = 2
dim hd = 2
block Attention(a: [batch, seq, heads, hd]) -> [batch, seq, embed] {
  param wo: [heads, hd, embed] ~ normal(0.02)
  param bo: [embed] ~ zeros
  return a @ wo + bo
}
model M(x: [batch, seq, heads, hd]) -> (y: [batch, seq, embed]) {
  y = Attention(x) as attn
}
# ! ambiguous_product.mt:9:10: error MT0203: 'a @ wo' is ambiguous: the operands share heads and hd
# !      9 |   return a @ wo + bo
# !        |          ^~~~~~
# !          a  is float[batch, seq, heads, hd]  (input)
# !          wo is float[heads, hd, embed]  (param, line 7)
# !          write a @[heads, hd] wo to contract both, or rename one of the dims
# ! ambiguous_product.mt:12:7: note: in Attention, called here
