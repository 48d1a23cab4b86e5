# in i = -7 -1 0 3 8
# in j = 4 -4 2 3 -3
# in x = -1.5 -0.5 0 0.5 2.5
dim a = 5
model M(i: i32[a], j: i64[a], x: [a]) -> (loss: f32[], add: i64[a], mod: i64[a], neg: i32[a], least: i64[a], most: i32[a], cut: i32[a], truth: bool[a], count: [], sums: [],
                                          peak: [], size: i32[a], flags: i32[a], mixed: bool[a], wide: i64[a]) {
  add = i + j
  mod = i % j
  neg = -i
  least = min(i, j)
  most = max(i, 2)
  cut = i32(x)
  truth = bool(i)
  count = float(sum[a](i32(x > 0)))
  sums = float(sum[a](i))
  peak = float(max[a](i))
  size = abs(i)
  flags = select(x > 0, 1, i)
  mixed = i == 3 or i < j
  wide = i64(i) * 1000000
  loss = mean[a](float(i))
}
# > loss = 0.6
# > add = -3 -5 2 6 5
# > mod = 1 -1 0 0 -1
# > neg = 7 1 0 -3 -8
# > least = -7 -4 0 3 -3
# > most = 2 2 2 3 8
# > cut = -1 0 0 0 2
# > truth = 1 1 0 1 1
# > count = 2
# > sums = 3
# > peak = 8
# > size = 7 1 0 3 8
# > flags = -7 -1 0 1 1
# > mixed = 1 0 1 1 0
# > wide = -7e+06 -1e+06 0 3e+06 8e+06
