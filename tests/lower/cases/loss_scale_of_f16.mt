# mtc --set precision.compute=f16 --set precision.loss_scale.initial=65536 --set precision.loss_scale.window=7
# show set
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# > set parallel.bucket = 26214400
# > set parallel.gather = again
# > set parallel.overlap = true
# > set parallel.recompute = none()
# > set parallel.zero = 0
# > set precision.compute = f16 ; "(--set)":1:19-21
# > set precision.grad_reduce = f32
# > set precision.grads = f32
# > set precision.loss_scale = dynamic(initial = 65536, window = 7, hysteresis = 2, growth = 2, backoff = 0.5, min = 1) ; "(--set)":1:19-21
# > set precision.params = f32
# > set train.chunk = 0
# > set train.clip = 0
# > set train.global_batch = 1
# > set train.micro_batch = 1
# > set train.optimizer = adamw(lr = 0.001, beta1 = 0.9, beta2 = 0.999, eps = 1e-08, decay = 0.01)
# > set train.schedule = constant(warmup = 0)
# > set train.seed = 1234
# > set train.steps = 1
