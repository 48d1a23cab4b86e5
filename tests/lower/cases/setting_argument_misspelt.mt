dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
precision { loss_scale = dynamic(init = 3) }
train { optimizer = adamw(lr = 1e-3, betas = 2) }
# ! setting_argument_misspelt.mt:3:34: error MT0333: dynamic has no argument 'init'; there are initial, window, hysteresis, growth, backoff, min
# !      3 | precision { loss_scale = dynamic(init = 3) }
# !        |                                  ^~~~
# !          did you mean 'initial'?
# ! setting_argument_misspelt.mt:4:38: error MT0333: adamw has no argument 'betas'; there are lr, beta1, beta2, eps, decay
# !      4 | train { optimizer = adamw(lr = 1e-3, betas = 2) }
# !        |                                      ^~~~~
# !          did you mean 'beta1'?
