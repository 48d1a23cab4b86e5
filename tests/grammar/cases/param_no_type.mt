block A(x: [*, d]) -> [*] {
  param w ~ normal(0.02)
  return x * w
}
# ! param_no_type.mt:2:11: error MT0100: unexpected '~', expected 'as' or ':'
# !      2 |   param w ~ normal(0.02)
# !        |           ^
# !          it is written like this: param w as "weight": [o, i] ~ normal(0.02)
