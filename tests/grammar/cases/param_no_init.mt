block A(x: [*, d]) -> [*] {
  param w: [d]
  return x * w
}
# ! param_no_init.mt:2:15: error MT0100: unexpected end of the line, expected '~'
# !      2 |   param w: [d]
# !        |               ^
# !          it is written like this: param w as "weight": [o, i] ~ normal(0.02)
