# mtc --set train.schedule.warmup=25
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
train { steps = 30; schedule = wsd(warmup = 5, decay = 10) }
# ! decay_too_long.mt:4:56: error MT0339: train.schedule: decay is 10 steps, more than the 5 after the warm-up
# !      4 | train { steps = 30; schedule = wsd(warmup = 5, decay = 10) }
# !        |                                                        ^~
# !          train.schedule.decay is 10 (decay_too_long.mt:4:56), train.schedule.warmup is 25 (--set), train.steps is 30 (decay_too_long.mt:4:17)
# !          --set train.schedule.decay=… gives it another value
