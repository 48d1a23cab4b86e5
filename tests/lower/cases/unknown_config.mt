# mtc -D hiden=64 -D 'nheads=3'
config { hidden = 768 }
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! (-D):1:1: error MT0301: no config 'hiden'
# !      1 | hiden=64
# !        | ^~~~~~~~
# !          did you mean 'hidden'?
# ! (-D):1:1: error MT0301: no config 'nheads'
# !      1 | nheads=3
# !        | ^~~~~~~~
