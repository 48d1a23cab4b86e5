# mtc --no-map f
dim batch
dim ff = 4
model M(x: [batch, ff]) -> (loss: f32[]) { loss = mean[batch, ff](x) }
parallel { map ff -> tp }
# ! (--no-map):1:1: error MT0315: no rule maps 'f'
# !      1 | f
# !        | ^
