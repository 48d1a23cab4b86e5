dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
parallel { recompute = full(2); pipeline = gpipe[a](cut = 3) }
precision { loss_scale = dynamic(initial = big) }
train {
  optimizer = adamw(0.1, lrr = 2, lr = 1, lr = 2)
  schedule = cosine(warmup = ten)
}
# ! setting_arguments.mt:3:29: error MT0333: full wants its arguments by name, such as every = …
# !      3 | parallel { recompute = full(2); pipeline = gpipe[a](cut = 3) }
# !        |                             ^
# ! setting_arguments.mt:3:44: error MT0331: parallel.pipeline is written gpipe(…), without brackets and 'as'
# !      3 | parallel { recompute = full(2); pipeline = gpipe[a](cut = 3) }
# !        |                                            ^~~~~~~~~~~~~~~~~
# ! setting_arguments.mt:4:44: error MT0331: initial of precision.loss_scale is a number, got big
# !      4 | precision { loss_scale = dynamic(initial = big) }
# !        |                                            ^~~
# ! setting_arguments.mt:6:43: error MT0224: 'lr' is given twice
# !      6 |   optimizer = adamw(0.1, lrr = 2, lr = 1, lr = 2)
# !        |                                           ^~~~~~
# ! setting_arguments.mt:7:30: error MT0331: warmup of train.schedule is a number, got ten
# !      7 |   schedule = cosine(warmup = ten)
# !        |                              ^~~
