dim batch
dim seq = 4
dim vocab = 5
dim embed = 4
model M(tokens: i32[batch, seq], x: [batch, seq], i: i32[batch, vocab]) -> (a: [batch, seq], b: [batch], c: [batch], d: [batch]) {
  param wte: [vocab, embed] ~ zeros
  param wpe: [seq, embed] ~ zeros
  a = gather[vocab](wpe, tokens)
  b = gather[vocab](wte, x)
  c = gather[vocab](wte, i)
  d = gather[vocab](wte, 3)
}
# ! gather_wrong.mt:8:21: error MT0235: gather[vocab]: wpe is float[seq, embed] and has no vocab
# !      8 |   a = gather[vocab](wpe, tokens)
# !        |                     ^~~
# ! gather_wrong.mt:9:26: error MT0235: the index of gather is an integer tensor, got float[batch, seq]
# !      9 |   b = gather[vocab](wte, x)
# !        |                          ^
# !          write i32(x), or change the places: gather[d](values, index)
# ! gather_wrong.mt:10:26: error MT0235: gather[vocab]: the index i is i32[batch, vocab] and has vocab too
# !     10 |   c = gather[vocab](wte, i)
# !        |                          ^
# ! gather_wrong.mt:11:26: error MT0235: the index of gather is an integer tensor, got 3
# !     11 |   d = gather[vocab](wte, 3)
# !        |                          ^
