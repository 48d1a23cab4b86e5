# the three spaces do not meet: a dim, a function and a value of one name
# in x = 1 2 3 4 5 6
config { k = 2 }
dim topk = 3
dim sum = 2
fn f[x](y: [*, x], k = 1) -> [*] { return max[x](y) * k }
model M(x: [sum, topk]) -> (loss: f32[], best: bool[sum, topk], k2: [sum]) {
  best = topk[topk](x, k)
  k2 = f[topk](x, k = k + 1)
  loss = sum[sum](sum[topk](x))
}
# > loss = 21
# > best = 0 1 1 0 1 1
# > k2 = 9 18
