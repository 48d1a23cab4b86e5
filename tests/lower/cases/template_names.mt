dim batch
dim gate = 2
dim ff = 2
dim embed = 4
model M(x: [batch, embed]) -> (y: [batch, gate, ff]) {
  param w as "{gate:w1,w3,w2}": [gate, ff, embed] ~ normal(0.02)
  y = x @ w
}
# ! template_names.mt:6:14: error MT0261: {gate:w1,w3,w2} names 3, gate is 2
# !      6 |   param w as "{gate:w1,w3,w2}": [gate, ff, embed] ~ normal(0.02)
# !        |              ^~~~~~~~~~~~~~~~~
