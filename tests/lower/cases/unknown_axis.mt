dim batch
dim ff = 4
model M(x: [batch, ff]) -> (loss: f32[]) { loss = mean[batch, ff](x) }
parallel {
  mesh dp = 2, tpp = 2
  map batch -> dp
  map ff -> tpp
}
# ! unknown_axis.mt:7:13: error MT0310: no mesh axis 'tpp'; axes: pp, dp, ep, cp, tp
# !      7 |   map ff -> tpp
# !        |             ^~~
# !          did you mean 'tp'?
# ! unknown_axis.mt:5:16: error MT0310: no mesh axis 'tpp'; axes: pp, dp, ep, cp, tp
# !      5 |   mesh dp = 2, tpp = 2
# !        |                ^~~~~~~
# !          did you mean 'tp'?
