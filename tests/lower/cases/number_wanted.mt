config { a = x @ y; b = f32(1) }
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! number_wanted.mt:1:14: error MT0248: a number is wanted here
# !      1 | config { a = x @ y; b = f32(1) }
# !        |              ^~~~~
# ! number_wanted.mt:1:25: error MT0248: a number is wanted here
# !      1 | config { a = x @ y; b = f32(1) }
# !        |                         ^~~~~~
