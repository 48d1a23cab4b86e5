dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
train { steps = 3; schedule = cosine(warmup = 5) }
# ! schedule_that_cannot_be.mt:3:47: error MT0339: train.schedule: warmup is 5 steps, more than the 3 in all
# !      3 | train { steps = 3; schedule = cosine(warmup = 5) }
# !        |                                               ^
# !          train.schedule.warmup is 5 (schedule_that_cannot_be.mt:3:47), train.steps is 3 (schedule_that_cannot_be.mt:3:17)
# !          --set train.schedule.warmup=… gives it another value
