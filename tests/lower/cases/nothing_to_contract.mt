dim batch
dim seq = 4
dim vocab = 5
dim embed = 4
model M(x: [batch, seq]) -> (y: [batch, seq]) {
  param wte: [vocab, embed] ~ normal(0.02)
  y = x @ wte
}
# ! nothing_to_contract.mt:7:7: error MT0204: nothing to contract: the operands share no dim
# !      7 |   y = x @ wte
# !        |       ^~~~~~~
# !          x   is float[batch, seq]  (input)
# !          wte is float[vocab, embed]  (param, line 6)
# !          the outer product is x @[] wte
