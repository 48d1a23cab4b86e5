# mtc --map 'pos -> tp' --map 'weak ff -> tp'
dim batch
dim ff = 4
dim pos = 8
model M(x: [batch, ff]) -> (loss: f32[]) { loss = mean[batch, ff](x) / extent(pos) }
# ! (--map):1:1: error MT0318: no value of the model has the dim 'pos'
# !      1 | pos -> tp
# !        | ^~~
