# in w = 1 2 3 4 5 6 7 8 9 10 11 12
# in t = 0 3 -1 2 -100 1
# in p = 1 2
dim s = 3
dim n = 2
dim v = 4
dim e = 3
dim q = 2
model M(w: [v, e], t: i32[n, s], p: i64[q]) -> (loss: f32[], rows: [n, s, e], along: [n, s], ints: i32[n, s, e], one: [e], batched: [q, v]) {
  rows = gather[v](w, t)
  along = gather[v](expand[n](rename[e -> s](w)), t)
  ints = gather[v](i32(w), t)
  one = gather[v](w, i32(sum[q](float(p))))
  batched = gather[e](w, p)
  loss = sum[n, s, e](rows)
}
# > loss = 78
# > rows = 1 2 3 10 11 12 0 0 0 7 8 9 0 0 0 4 5 6
# > along = 1 11 0 7 0 6
# > ints = 1 2 3 10 11 12 0 0 0 7 8 9 0 0 0 4 5 6
# > one = 10 11 12
# > batched = 2 5 8 11 3 6 9 12
