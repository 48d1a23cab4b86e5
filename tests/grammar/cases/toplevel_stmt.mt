x = 3
dim b = 4
# ! toplevel_stmt.mt:1:1: error MT0108: expected import, config, preset, dim, fn, block, model, precision, parallel or train here
# !      1 | x = 3
# !        | ^
