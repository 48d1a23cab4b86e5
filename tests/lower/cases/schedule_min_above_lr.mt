dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
train { steps = 30; schedule = wsd(warmup = 5, decay = 10, min = 0.1) }
# ! schedule_min_above_lr.mt:3:66: error MT0339: train.schedule: min is 0.1; it must lie between 0 and the learning rate, 0.001
# !      3 | train { steps = 30; schedule = wsd(warmup = 5, decay = 10, min = 0.1) }
# !        |                                                                  ^~~
# !          train.schedule.min is 0.1 (schedule_min_above_lr.mt:3:66), train.optimizer.lr is 0.001 (default)
# !          --set train.schedule.min=… gives it another value
