dim batch
model M(x: [batch], y: [batch]) -> (loss: f32[]) {
  if training { loss = stepmean[batch](x) } else { loss = stepmean[batch](y) }
}
# ! stepmean_only_without_training.mt:3:59: error MT0219: this stepmean is not there when training, so nothing counts its denominator
# !      3 |   if training { loss = stepmean[batch](x) } else { loss = stepmean[batch](y) }
# !        |                                                           ^~~~~~~~~~~~~~~~~~
