# mtc --preset small
config { hidden = 768 }
preset small { hiden = 64; train.step = 3 }
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! unknown_config_in_preset.mt:3:16: error MT0301: no config 'hiden'
# !      3 | preset small { hiden = 64; train.step = 3 }
# !        |                ^~~~~~~~~~
# !          did you mean 'hidden'?
# ! unknown_config_in_preset.mt:3:28: error MT0330: no setting 'train.step'
# !      3 | preset small { hiden = 64; train.step = 3 }
# !        |                            ^~~~~~~~~~~~~~
# !          did you mean 'train.steps'?
