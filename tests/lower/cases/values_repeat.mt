# in x = 1 2
dim a = 2
dim z = 2
model M(x: [a]) -> (loss: f32[], y: [a], n: [a], total: [], none: [a], nested: [a], swapped: [a], last: [a], dims: [a], zero: [a]) {
  y = x
  count = 0
  total = 0
  repeat 3 as i {
    t = y * (i + 1)
    y = t
    count = count + i
    total = total + sum[a](t)
  }
  n = x * count
  none = x
  repeat 0 as i { none = none * 5 }
  nested = x
  k = 0
  repeat 2 as i {
    repeat 2 as j {
      k = k + 10 * i + j
      nested = nested + k
    }
  }
  p, q = x, 2 * x
  repeat 3 as i { p, q = q, p }
  swapped = p - q
  last = x
  repeat (1 + 1) as i { if i == 1 { last = last * 100 } else { last = last + 1 } }
  dims = x
  repeat 2 as i {
    dim r = i + 2
    dims = dims + sum[r](expand[r](x))
  }
  zero = 0 * x
  repeat 2 as i { f = zero; zero = f + i }
  loss = total
}
# > loss = 27
# > y = 6 12
# > n = 3 6
# > total = 27
# > none = 1 2
# > nested = 35 36
# > swapped = 1 2
# > last = 200 300
# > dims = 6 12
# > zero = 1 1
