# mtc -D hidden=770
config { hidden = 768; nheads = 12; require hidden % nheads == 0; require hidden; require nheads > 20 and hidden > 0 }
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! require_fails.mt:2:45: error MT0303: require hidden % nheads == 0 fails
# !      2 | config { hidden = 768; nheads = 12; require hidden % nheads == 0; require hidden; require nheads > 2…
# !        |                                             ^~~~~~~~~~~~~~~~~~~~
# !          hidden is 770 (-D), nheads is 12 (require_fails.mt:2:24)
# ! require_fails.mt:2:75: error MT0250: a condition is true or false, got 770
# !      2 | …re hidden % nheads == 0; require hidden; require nheads > 20 and hidden > 0 }
# !        |                                   ^~~~~~
# ! require_fails.mt:2:91: error MT0303: require nheads > 20 and hidden > 0 fails
# !      2 | …ds == 0; require hidden; require nheads > 20 and hidden > 0 }
# !        |                                   ^~~~~~~~~~~~~~~~~~~~~~~~~~
# !          nheads is 12 (require_fails.mt:2:24), hidden is 770 (-D)
