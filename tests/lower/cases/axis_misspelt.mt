# mtc --mesh dp=2,dpp=2
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! (--mesh):1:6: error MT0310: no mesh axis 'dpp'; axes: pp, dp, ep, cp, tp
# !      1 | dp=2,dpp=2
# !        |      ^~~~~
# !          did you mean 'dp'?
