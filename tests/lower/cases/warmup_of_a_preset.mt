# mtc --preset short --set train.steps=6
preset short { train.schedule.warmup = 20; train.steps = 100 }
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
train { steps = 20000; schedule = cosine(warmup = 700) }
# ! warmup_of_a_preset.mt:2:40: error MT0339: train.schedule: warmup is 20 steps, more than the 6 in all
# !      2 | preset short { train.schedule.warmup = 20; train.steps = 100 }
# !        |                                        ^~
# !          train.schedule.warmup is 20 (warmup_of_a_preset.mt:2:40), train.steps is 6 (--set)
# !          --set train.schedule.warmup=… gives it another value
