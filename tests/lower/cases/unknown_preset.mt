# mtc --preset meduim
config { hidden = 768 }
preset small { hidden = 64 }
preset medium { hidden = 128 }
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! (--preset):1:1: error MT0302: no preset 'meduim'; there are small, medium
# !      1 | meduim
# !        | ^~~~~~
# !          did you mean 'medium'?
