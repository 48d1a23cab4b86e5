# mtc --no-map ff --map 'ff -> ep' --no-map seq --map 'weak seq -> cp'
# show map
dim batch
dim ff = 4
dim seq = 4
model M(x: [batch, ff, seq]) -> (loss: f32[]) { loss = mean[batch, ff, seq](x) }
parallel { map ff -> tp; map weak ff -> dp; map seq -> cp; map weak seq -> tp; map batch -> dp }
# > map batch -> dp ; no_map_removes_all.mt:7:80-94
# > map ff -> ep ; "(--map)":1:1-8
# > map weak seq -> cp ; "(--map)":1:1-14
