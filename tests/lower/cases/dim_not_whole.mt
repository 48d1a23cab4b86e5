# mtc -D hidden=770
config { hidden = 768; nheads = 12 }
dim batch
dim hd = hidden / nheads
dim zero = nheads - 12
dim text = "a"
dim v = 5 pad hidden / 7
model M(x: [batch, hd]) -> (y: [batch]) { y = sum[hd](x) }
# ! dim_not_whole.mt:4:10: error MT0305: dim hd = hidden / nheads is 64.16666666666667; it must be whole and positive
# !      4 | dim hd = hidden / nheads
# !        |          ^~~~~~~~~~~~~~~
# !          hidden is 770 (-D), nheads is 12 (dim_not_whole.mt:2:24)
# ! dim_not_whole.mt:5:12: error MT0305: dim zero = nheads - 12 is 0; it must be whole and positive
# !      5 | dim zero = nheads - 12
# !        |            ^~~~~~~~~~~
# !          nheads is 12 (dim_not_whole.mt:2:24)
# ! dim_not_whole.mt:6:12: error MT0305: dim text = "a" is "a"; it must be whole and positive
# !      6 | dim text = "a"
# !        |            ^~~
