dim batch
dim embed = 4
model M(x: [batch, embed]) -> (loss: f32[]) {
  param w: [embed] ~ normal(0.02)
  loss = mean[batch, embed](x * w)
}
train {
  steps    = 100
  schedule = cosine(warmup = 2000)
}
# ! warmup_too_long.mt:9:30: error MT0339: train.schedule: warmup is 2000 steps, more than the 100 in all
# !      9 |   schedule = cosine(warmup = 2000)
# !        |                              ^~~~
# !          train.schedule.warmup is 2000 (warmup_too_long.mt:9:30), train.steps is 100 (warmup_too_long.mt:8:14)
# !          --set train.schedule.warmup=… gives it another value
