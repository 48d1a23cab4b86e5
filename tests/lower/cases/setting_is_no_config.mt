# mtc -D train.steps=9 -D nheads
config { hidden = 768 }
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! (-D):1:1: error MT0301: 'train.steps' is a setting, not a config; write --set train.steps=9
# !      1 | train.steps=9
# !        | ^~~~~~~~~~~~~
# ! (-D):1:7: error MT0100: unexpected end, expected '='
# !      1 | nheads
# !        |       ^
