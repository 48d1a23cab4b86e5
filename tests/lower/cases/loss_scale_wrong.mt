# mtc --set precision.loss_scale.hysteresis=1.5
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
precision { compute = f16; loss_scale = dynamic(initial = 4) }
# ! (--set):1:33: error MT0338: precision.loss_scale: hysteresis is 1.5; it must be a whole number of steps, at least 1
# !      1 | precision.loss_scale.hysteresis=1.5
# !        |                                 ^~~
