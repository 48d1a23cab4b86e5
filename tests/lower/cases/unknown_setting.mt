# mtc --set train.step=9 --set train.optimizer.lrr=1 --set training.steps=3
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! (--set):1:1: error MT0330: no setting 'train.step'
# !      1 | train.step=9
# !        | ^~~~~~~~~~~~
# !          did you mean 'train.steps'?
# ! (--set):1:17: error MT0333: adamw has no argument 'lrr'; there are lr, beta1, beta2, eps, decay
# !      1 | train.optimizer.lrr=1
# !        |                 ^~~
# !          did you mean 'lr'?
# ! (--set):1:1: error MT0330: no setting 'training.steps'
# !      1 | training.steps=3
# !        | ^~~~~~~~~~~~~~~~
# !          did you mean 'train.steps'?
