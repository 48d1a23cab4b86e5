# mtc --mesh dp=2,tp=2,pp=2
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
parallel { map batch -> dp }
train { global_batch = 2 }
# ! (--mesh):1:1: error MT0313: axis tp is 2 and no rule maps a dim to it
# !      1 | dp=2,tp=2,pp=2
# !        | ^~~~~~~~~~~~~~
# !          write map DIM -> tp, or --map "DIM -> tp"
