# mtc --mesh tp=2,cp=3
dim batch
dim seq = 4
dim pos = 8
model M(x: [batch, seq]) -> (loss: f32[]) { loss = mean[batch, seq](x) / extent(pos) }
parallel { map pos -> tp; map weak seq -> cp }
train { global_batch = 1 }
# ! axis_splits_nothing.mt:6:27: error MT0313: axis cp is 3 and splits nothing
# !      6 | parallel { map pos -> tp; map weak seq -> cp }
# !        |                           ^~~~~~~~~~~~~~~~~~
# ! axis_splits_nothing.mt:6:27: note: seq = 4 is not divisible by cp = 3; legal cp: 1, 2, 4
# ! axis_splits_nothing.mt:6:12: error MT0313: axis tp is 2 and splits nothing
# !      6 | parallel { map pos -> tp; map weak seq -> cp }
# !        |            ^~~~~~~~~~~~~
# ! axis_splits_nothing.mt:6:12: note: no value of the model has the dim 'pos'
