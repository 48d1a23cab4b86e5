dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
parallel { recompute = block(2, 3) }
train { optimizer = sgd(nesterov = 2) }
precision { loss_scale = 0.5 }
# ! setting_block_arguments.mt:3:33: error MT0333: block takes one argument
# !      3 | parallel { recompute = block(2, 3) }
# !        |                                 ^
# ! setting_block_arguments.mt:4:36: error MT0331: nesterov of train.optimizer is on or off, got 2
# !      4 | train { optimizer = sgd(nesterov = 2) }
# !        |                                    ^
# ! setting_block_arguments.mt:5:26: error MT0335: precision.loss_scale is at least 1, got 0.5
# !      5 | precision { loss_scale = 0.5 }
# !        |                          ^~~
