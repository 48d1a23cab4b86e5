block A(x: [*]) -> [*] {
  param w as "a": [d]
    ~ normal(0.02)
  return x.w
}
# ! dotted_value.mt:4:10: error MT0100: unexpected 'x.w', expected a value
# !      4 |   return x.w
# !        |          ^~~
# !          only settings have dots in their names; a path is a string: as "h.{i}"
