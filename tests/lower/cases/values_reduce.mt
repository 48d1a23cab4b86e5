# in x = 1 2 3 4 5 6
# in m = 1 0 1 0 0 0
# in r = 1 0
dim a = 2
dim b = 3
model M(x: [a, b], m: bool[a, b], r: bool[a]) -> (loss: f32[], s: [a], all: [], two: [], masked: [a], rows: [b], never: [a], always: [a], mean_b: [a], mean_m: [a], mean_r: [b],
                                                  mean_none: [], top: [a], top_m: [a], top_all: [], run: [a, b], run2: [a, b], ints: i32[a], int_top: i32[a], grand: [], mean_two: []) {
  s = sum[b](x)
  all = sum[a, b](x)
  two = sum[a](sum[b](x))
  masked = sum[b](x, where = m)
  rows = sum[a](x, r)
  never = sum[b](x, where = false)
  always = sum[b](x, where = true)
  mean_b = mean[b](x)
  mean_m = mean[b](x, where = m)
  mean_r = mean[a](x, where = r)
  mean_none = mean[a, b](x, where = false)
  top = max[b](x)
  top_m = max[b](x, where = m)
  top_all = max[a, b](-x)
  run = cumsum[b](x)
  run2 = cumsum[a, b](x)
  ints = sum[b](i32(x), where = m)
  int_top = max[b](i32(x), where = m)
  grand = mean[a, b](x)
  mean_two = mean[a, b](x, where = r)
  loss = mean[b](mean[a](x) ^ 2)
}
# > loss = 12.9167
# > s = 6 15
# > all = 21
# > two = 21
# > masked = 4 0
# > rows = 1 2 3
# > never = 0 0
# > always = 6 15
# > mean_b = 2 5
# > mean_m = 2 0
# > mean_r = 1 2 3
# > mean_none = 0
# > top = 3 6
# > top_m = 3 -inf
# > top_all = -1
# > run = 1 3 6 4 9 15
# > run2 = 1 3 6 10 15 21
# > ints = 4 0
# > int_top = 3 -2.14748e+09
# > grand = 3.5
# > mean_two = 2
