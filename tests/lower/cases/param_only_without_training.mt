dim batch
dim a = 3
model M(x: [batch]) -> (loss: f32[]) {
  y = 1
  if not training { param w: [a] ~ ones; y = sum[a](w) }
  loss = mean[batch](x) * y
}
# ! param_only_without_training.mt:5:21: error MT0266: w does not exist when training, so it would never be trained
# !      5 |   if not training { param w: [a] ~ ones; y = sum[a](w) }
# !        |                     ^~~~~~~~~~~~~~~~~~~
