# mtc -D fast=true
# show set
config { batch_size = 4; fast = false; lr = 1e-3 }
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
train { micro_batch = batch_size; global_batch = batch_size * select(fast, 2, 1); optimizer = adamw(lr = lr * 10) }
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
# > set train.clip = 0
# > set train.global_batch = 8 ; settings_from_config.mt:6:50-80
# > set train.micro_batch = 4 ; settings_from_config.mt:6:23-32
# > set train.optimizer = adamw(lr = 0.01, beta1 = 0.9, beta2 = 0.999, eps = 1e-08, decay = 0.01) ; settings_from_config.mt:6:95-113
# > set train.schedule = constant(warmup = 0)
# > set train.seed = 1234
# > set train.steps = 1
