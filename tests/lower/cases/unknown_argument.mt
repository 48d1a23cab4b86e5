dim batch
dim seq = 4
dim kseq = seq
dim hd = 4
model M(q: [batch, seq, hd], k: [batch, kseq, hd]) -> (y: [batch, seq, hd], z: [batch, seq, hd], w: [batch], v: [batch, seq, hd]) {
  y = attention[seq, kseq, hd](q, k, k, casual = true)
  z = gelu(q, q)
  w = sum[seq, hd](q, were = true)
  v = layernorm[hd](q, g = 1, b = 0, g = 2)
}
# ! unknown_argument.mt:6:41: error MT0242: attention has no argument 'casual'
# !      6 |   y = attention[seq, kseq, hd](q, k, k, casual = true)
# !        |                                         ^~~~~~~~~~~~~
# !          did you mean 'causal'?
# !          write attention[s, t, d](q, k, v, causal = …, where = …, window = …, dropout = …, scale = …)
# ! unknown_argument.mt:7:15: error MT0242: gelu takes 1 argument
# !      7 |   z = gelu(q, q)
# !        |               ^
# !          write gelu(x)
# ! unknown_argument.mt:8:23: error MT0242: sum has no argument 'were'
# !      8 |   w = sum[seq, hd](q, were = true)
# !        |                       ^~~~~~~~~~~
# !          did you mean 'where'?
# !          write sum[d](x, where = …)
# ! unknown_argument.mt:9:38: error MT0242: 'g' of layernorm is given twice
# !      9 |   v = layernorm[hd](q, g = 1, b = 0, g = 2)
# !        |                                      ^~~~~
# !          write layernorm[d](x, g, b, eps = …)
