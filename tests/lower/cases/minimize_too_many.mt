dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
train { minimize = loss, loss }
# ! minimize_too_many.mt:3:9: error MT0331: train.minimize has one value
# !      3 | train { minimize = loss, loss }
# !        |         ^~~~~~~~~~~~~~~~~~~~~
