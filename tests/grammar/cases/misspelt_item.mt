blok A(x: [*]) -> [*] {
  y = x
  return y
}
dim b = 4
# ! misspelt_item.mt:1:1: error MT0108: expected import, config, preset, dim, fn, block, model, precision, parallel or train here (did you mean 'block'?)
# !      1 | blok A(x: [*]) -> [*] {
# !        | ^~~~
