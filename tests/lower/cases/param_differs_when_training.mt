config { n = 3 }
dim batch
dim a = 3
dim b = 4
model M(x: [batch]) -> (loss: f32[]) {
  if training { param w: [a] ~ ones; y = sum[a](w) }
  else { param w: [b] ~ ones; y = sum[b](w) }
  loss = mean[batch](x) * y
}
# ! param_differs_when_training.mt:7:10: error MT0266: w has another type when training
# !      7 |   else { param w: [b] ~ ones; y = sum[b](w) }
# !        |          ^~~~~~~~~~~~~~~~~~~
