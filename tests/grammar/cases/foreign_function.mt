def f(x):
  return x
# ! foreign_function.mt:1:1: error MT0108: expected import, config, preset, dim, fn, block, model, precision, parallel or train here (did you mean 'fn'?)
# !      1 | def f(x):
# !        | ^~~
