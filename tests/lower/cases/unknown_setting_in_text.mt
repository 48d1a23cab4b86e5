dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
train { learning_rate = 1 }
parallel { zero = 1; zero = 2 }
precision { compte = f32 }
# ! unknown_setting_in_text.mt:3:9: error MT0330: no setting 'train.learning_rate'
# !      3 | train { learning_rate = 1 }
# !        |         ^~~~~~~~~~~~~~~~~
# !          train has minimize, micro_batch, global_batch, steps, optimizer, schedule, clip, seed, chunk, no_decay, decay
# ! unknown_setting_in_text.mt:4:22: error MT0224: parallel.zero is already set in this text
# !      4 | parallel { zero = 1; zero = 2 }
# !        |                      ^~~~~~~~
# ! unknown_setting_in_text.mt:5:13: error MT0330: no setting 'precision.compte'
# !      5 | precision { compte = f32 }
# !        |             ^~~~~~~~~~~~
# !          did you mean 'precision.compute'?
