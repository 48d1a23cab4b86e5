dim batch
model M(x: [batch]) -> (los: f32[]) { los = mean[batch](x) }
# ! no_loss.mt:2:1: error MT0322: minimize: 'loss' is no output; outputs are los
# !      2 | model M(x: [batch]) -> (los: f32[]) { los = mean[batch](x) }
# !        | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# !          did you mean 'los'?
# !          the objective is the output 'loss', or what is said in train { minimize = … }
