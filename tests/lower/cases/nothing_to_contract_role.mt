dim batch
dim seq = 4
dim kseq = seq
dim embed = 4
model M(x: [batch, seq]) -> (y: [batch, embed]) {
  param w: [kseq, embed] ~ normal(0.02)
  y = x @ w
}
# ! nothing_to_contract_role.mt:7:7: error MT0204: nothing to contract: the operands share no dim
# !      7 |   y = x @ w
# !        |       ^~~~~
# !          x is float[batch, seq]  (input)
# !          w is float[kseq, embed]  (param, line 6)
# !          rename[seq -> kseq](x)?
# !          the outer product is x @[] w
