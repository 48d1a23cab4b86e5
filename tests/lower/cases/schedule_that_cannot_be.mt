dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
train { steps = 3; schedule = cosine(warmup = 5) }
# ! schedule_that_cannot_be.mt:3:31: error MT0339: train.schedule: warmup is 5 steps, more than the 3 in all
# !      3 | train { steps = 3; schedule = cosine(warmup = 5) }
# !        |                               ^~~~~~~~~~~~~~~~~~
