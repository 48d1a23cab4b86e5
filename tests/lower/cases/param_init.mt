dim batch
dim seq = 4
model M(x: [batch, seq]) -> (y: [batch, seq]) {
  param a: [seq] ~ gaussian(0.02)
  param b: [seq] ~ normal
  param c: [seq] ~ uniform(0.1)
  param d: [seq] ~ normal(std = 0.1)
  param e: [seq] ~ normal(true)
  param f: [seq] ~ zero
  param g: [seq] ~ 0
  param h: [seq] ~ zeros(1)
  y = a + b + c + d + e + f + g + h
}
# ! param_init.mt:4:20: error MT0264: a parameter begins as zeros, ones, normal(std) or uniform(lo, hi), not as gaussian(0.02)
# !      4 |   param a: [seq] ~ gaussian(0.02)
# !        |                    ^~~~~~~~~~~~~~
# ! param_init.mt:5:20: error MT0264: normal takes 1 number: normal(std)
# !      5 |   param b: [seq] ~ normal
# !        |                    ^~~~~~
# ! param_init.mt:6:20: error MT0264: uniform takes 2 numbers: uniform(lo, hi)
# !      6 |   param c: [seq] ~ uniform(0.1)
# !        |                    ^~~~~~~~~~~~
# ! param_init.mt:7:27: error MT0264: normal takes numbers: normal(std); got std = 0.1
# !      7 |   param d: [seq] ~ normal(std = 0.1)
# !        |                           ^~~~~~~~~
# ! param_init.mt:8:27: error MT0264: normal takes numbers: normal(std); got true
# !      8 |   param e: [seq] ~ normal(true)
# !        |                           ^~~~
# ! param_init.mt:9:20: error MT0264: a parameter begins as zeros, ones, normal(std) or uniform(lo, hi), not as zero
# !      9 |   param f: [seq] ~ zero
# !        |                    ^~~~
# !          did you mean 'zeros'?
# ! param_init.mt:10:20: error MT0264: a parameter begins as zeros, ones, normal(std) or uniform(lo, hi), not as 0
# !     10 |   param g: [seq] ~ 0
# !        |                    ^
# ! param_init.mt:11:20: error MT0264: zeros takes 0 numbers: zeros
# !     11 |   param h: [seq] ~ zeros(1)
# !        |                    ^~~~~~~~
