# the same file twice counts once, circles are no harm; settings here come after those of what is imported
# show dim set
import "../files/parts.mt"
import "../files/again.mt"
import "./../files/parts.mt"
config { depth = width + 1 }
dim deep = depth
model M(x: [batch, seq, deep]) -> (loss: f32[]) { loss = mean[batch, seq, deep](twice(thrice(x))) }
train { steps = 6 }
# > dim batch = 1 sample
# > dim seq = 4
# > dim deep = 5
# > set parallel.bucket = 26214400
# > set parallel.gather = again
# > set parallel.overlap = true
# > set parallel.recompute = none()
# > set parallel.zero = 0
# > set precision.compute = f32
# > set precision.grad_reduce = f32
# > set precision.grads = f32
# > set precision.params = f32
# > set train.chunk = 0
# > set train.clip = 1 ; ../files/parts.mt:6:27
# > set train.global_batch = 1
# > set train.micro_batch = 1
# > set train.optimizer = adamw(lr = 0.001, beta1 = 0.9, beta2 = 0.999, eps = 1e-08, decay = 0.01)
# > set train.schedule = constant(warmup = 0)
# > set train.seed = 1234
# > set train.steps = 6 ; imports.mt:9:17
