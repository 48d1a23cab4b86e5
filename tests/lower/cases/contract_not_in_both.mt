dim batch
dim seq = 4
dim vocab = 5
dim embed = 4
model M(x: [batch, seq, embed]) -> (y: [batch, seq]) {
  param wte: [vocab, embed] ~ normal(0.02)
  y = x @[embed, seq] wte
}
# ! contract_not_in_both.mt:7:11: error MT0204: wte has no seq to contract
# !      7 |   y = x @[embed, seq] wte
# !        |           ^~~~~
# !          x   is float[batch, seq, embed]  (input)
# !          wte is float[vocab, embed]  (param, line 6)
