dim batch
dim ff = 4
model M(x: [batch, ff]) -> (loss: f32[]) { loss = mean[batch, ff](x) }
parallel {
  mesh dp = 1
  mesh tp = 1
  map batch -> dp, dp
  map ff -> tp
  map ff -> dp
  map weak ff -> dp
  map weak ff -> cp
  map batch -> pp, dp, ep, cp, tp
}
# ! rules.mt:6:3: error MT0224: the mesh is already given at rules.mt:5:3
# !      6 |   mesh tp = 1
# !        |   ^~~~~~~~~~~
# ! rules.mt:7:20: error MT0224: axis 'dp' is named twice
# !      7 |   map batch -> dp, dp
# !        |                    ^~
# ! rules.mt:9:7: error MT0224: 'ff' already has a rule (rules.mt:8:3)
# !      9 |   map ff -> dp
# !        |       ^~
# ! rules.mt:11:12: error MT0224: 'ff' already has a weak rule (rules.mt:10:3)
# !     11 |   map weak ff -> cp
# !        |            ^~
# ! rules.mt:12:32: error MT0314: a dim is split by at most 4 axes
# !     12 |   map batch -> pp, dp, ep, cp, tp
# !        |                                ^~
