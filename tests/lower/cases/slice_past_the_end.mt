config { ctx = 2048; maxpos = 1024 }
dim batch
dim seq = ctx
dim pos = maxpos
model M(x: [batch, seq]) -> (y: [batch, seq]) {
  param wpe: [pos] ~ zeros
  y = x + slice[pos -> seq](wpe)
}
# ! slice_past_the_end.mt:7:11: error MT0231: slice[pos -> seq]: 0 + seq (2048) is past pos (1024)
# !      7 |   y = x + slice[pos -> seq](wpe)
# !        |           ^~~~~~~~~~~~~~~~~~~~~~
# !          raise maxpos, or lower ctx
