dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
parallel { recompute = selctive(attention); pipeline = 1f1b(cuts = balanced) }
train {
  optimizer = adam(lr = 1)
  schedule = wsd(warmup = 1, decay = 2, style = sqrt)
}
# ! setting_calls.mt:3:24: error MT0332: parallel.recompute: there is no 'selctive'; there are none, full, block, selective, auto
# !      3 | parallel { recompute = selctive(attention); pipeline = 1f1b(cuts = balanced) }
# !        |                        ^~~~~~~~~~~~~~~~~~~
# !          did you mean 'selective'?
# ! setting_calls.mt:3:61: error MT0333: 1f1b has no argument 'cuts'; there are cut
# !      3 | parallel { recompute = selctive(attention); pipeline = 1f1b(cuts = balanced) }
# !        |                                                             ^~~~
# !          did you mean 'cut'?
# ! setting_calls.mt:5:15: error MT0332: train.optimizer: there is no 'adam'; there are adamw, sgd
# !      5 |   optimizer = adam(lr = 1)
# !        |               ^~~~~~~~~~~~
# !          did you mean 'adamw'?
# ! setting_calls.mt:6:49: error MT0331: train.schedule.style is one of exponential, linear, cosine, minus_sqrt; got sqrt
# !      6 |   schedule = wsd(warmup = 1, decay = 2, style = sqrt)
# !        |                                                 ^~~~
