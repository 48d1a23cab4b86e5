# a mistake that shows inside of the prelude is told at the call
dim batch
dim seq = 4
dim hd = 5
dim g = 3
dim a = 2
dim b = 2
fn turn(x: [*, seq, hd]) -> [*, seq, hd] { return rope[seq, hd](x) }
model M(x: [batch, seq, hd], y: [batch, g], z: [batch, a, b], i: i32[batch]) -> (p: [batch, seq, hd], q: [batch], r: [batch], s: bool[batch, a, b], t: [batch, a, b], u: [batch, seq, hd]) {
  p = turn(x)
  q = swiglu[g](y)
  r = cross_entropy[(a, b)](z, i)
  s = topk[(a, b)](z, k = 1)
  t = Linear[a, a](z) as same
  u = dropout(x, 2 > 1)
}
# ! inside_the_prelude.mt:8:51: error MT0305: in rope: dim half = extent(d) / 2 is 2.5; it must be whole and positive
# !      8 | fn turn(x: [*, seq, hd]) -> [*, seq, hd] { return rope[seq, hd](x) }
# !        |                                                   ^~~~
# ! prelude.mt:74:14: note: here
# ! inside_the_prelude.mt:10:7: note: in turn, called here
# ! inside_the_prelude.mt:11:7: error MT0234: in swiglu: 2 names for unstack[g](u), which gives 3 values
# !     11 |   q = swiglu[g](y)
# !        |       ^~~~~~
# ! prelude.mt:21:3: note: here
# ! inside_the_prelude.mt:12:7: error MT0240: in cross_entropy: gather takes one dim, got 2
# !     12 |   r = cross_entropy[(a, b)](z, i)
# !        |       ^~~~~~~~~~~~~
# ! prelude.mt:86:16: note: here
# ! inside_the_prelude.mt:13:7: error MT0240: in topk: rename[a -> b] wants as many dims after -> as before, got 2 and 1
# !     13 |   s = topk[(a, b)](z, k = 1)
# !        |       ^~~~
# ! prelude.mt:98:21: note: here
# ! inside_the_prelude.mt:14:7: error MT0214: in Linear: a occurs twice
# !     14 |   t = Linear[a, a](z) as same
# !        |       ^~~~~~
# !          declare a role, a second dim of the same extent: dim ka = a
# ! prelude.mt:141:28: note: here
# ! inside_the_prelude.mt:15:7: error MT0247: in dropout: '>' does not take true
# !     15 |   u = dropout(x, 2 > 1)
# !        |       ^~~~~~~
# ! prelude.mt:26:19: note: here
