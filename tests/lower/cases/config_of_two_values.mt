# mtc -D a=1,2
config { a = 1 }
preset p { a = 3, 4 }
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! (-D):1:1: error MT0249: a config has one value
# !      1 | a=1,2
# !        | ^~~~~
