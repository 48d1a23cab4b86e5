# what is not taken is not looked at, and there is no scope
# mtc -D deep=false
# in x = 1 2
config { deep = true; kind = "b" }
dim a = 2
model M(x: [a]) -> (loss: f32[], y: [a], z: [a], w: [a], t: [a]) {
  if deep { y = nothing_of_this_name(x) } else { y = x * 2 }
  if kind == "a" { z = x } else if kind == "b" { z = 3 * x } else { z = nothing }
  if extent(a) > 1 and not deep { part = 5 * x }
  w = part
  t = select(deep, x, 7 * x)
  if training { loss = sum[a](x) } else { loss = -1 }
}
# > loss = 3
# > y = 2 4
# > z = 3 6
# > w = 5 10
# > t = 7 14
