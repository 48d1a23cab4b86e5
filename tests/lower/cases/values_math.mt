# in x = 0.25 1 2
dim a = 3
model M(x: [a]) -> (loss: f32[], e: [a], l: [a], s: [a], r: [a], t: [a], si: [a], co: [a], er: [a], folded: [a]) {
  e = exp(x)
  l = log(x)
  s = sqrt(x)
  r = rsqrt(x)
  t = tanh(x)
  si = sin(x)
  co = cos(x)
  er = erf(x)
  folded = x * (exp(1) + log(2) + sqrt(2) + rsqrt(4) + tanh(1) + sin(1) + cos(1) + erf(1) + abs(-1) + floor(1.5) + ceil(1.5) + min(1, 2) + max(1, 2) + select(1 < 2, 1, 2) + 7 % -4 + -7 % 4)
  loss = sum[a](detach(x))
}
# > loss = 3.25
# > e = 1.28403 2.71828 7.38906
# > l = -1.38629 0 0.693147
# > s = 0.5 1 1.41421
# > r = 2 1 0.707107
# > t = 0.244919 0.761594 0.964028
# > si = 0.247404 0.841471 0.909297
# > co = 0.968912 0.540302 -0.416147
# > er = 0.276326 0.842701 0.995322
# > folded = 4.07793 16.3117 32.6234
