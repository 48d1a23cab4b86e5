dim batch
dim expert = 2
dim ff = 2
dim embed = 4
model M(x: [batch, embed]) -> (y: [batch, expert, ff]) {
  param w1 as "experts.{exp}.w1": [expert, ff, embed] ~ normal(0.02)
  y = x @ w1
}
# ! template_hole.mt:6:15: error MT0260: "experts.{exp}.w1": 'exp' is neither a dim here nor a repeat index
# !      6 |   param w1 as "experts.{exp}.w1": [expert, ff, embed] ~ normal(0.02)
# !        |               ^~~~~~~~~~~~~~~~~~
