dim batch
model M(x: [batch]) -> (loss: f32[]) {
  dim d
  dim e = x
  dim f = 2.5
  dim g = 0
  dim h = 2 pad 0.5
  dim h = 2
  dim h = 3
  repeat 2.5 as i { }
  loss = mean[batch](x)
}
# ! local_dim_without_extent.mt:3:3: error MT0307: a local dim has an extent: dim d = …
# !      3 |   dim d
# !        |   ^~~~~
# ! local_dim_without_extent.mt:4:11: error MT0305: dim e = x is float[batch]; it must be whole and positive
# !      4 |   dim e = x
# !        |           ^
# ! local_dim_without_extent.mt:5:11: error MT0305: dim f = 2.5 is 2.5; it must be whole and positive
# !      5 |   dim f = 2.5
# !        |           ^~~
# ! local_dim_without_extent.mt:6:11: error MT0305: dim g = 0 is 0; it must be whole and positive
# !      6 |   dim g = 0
# !        |           ^
# ! local_dim_without_extent.mt:7:17: error MT0305: pad 0.5 is 0.5; it must be whole and positive
# !      7 |   dim h = 2 pad 0.5
# !        |                 ^~~
# ! local_dim_without_extent.mt:9:3: error MT0224: dim 'h' is already defined here
# !      9 |   dim h = 3
# !        |   ^~~~~~~~~
# ! local_dim_without_extent.mt:10:10: error MT0305: repeat 2.5 is 2.5; it must be a whole number of at least 0, known when compiling
# !     10 |   repeat 2.5 as i { }
# !        |          ^~~
