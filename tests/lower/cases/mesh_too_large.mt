# mtc --mesh dp=1000000,tp=1000000
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
parallel { map batch -> dp, tp }
# ! (--mesh):1:1: error MT0314: a mesh of more than 1048576 ranks
# !      1 | dp=1000000,tp=1000000
# !        | ^~~~~~~~~~~~~~~~~~~~~
