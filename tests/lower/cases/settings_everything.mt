# show set
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
precision { compute = f64; params = f32; grads = bf16; grad_reduce = f32; loss_scale = dynamic(initial = 2 ^ 10) }
parallel { pipeline = interleaved(chunks = 3, cut = "0:12,12:24"); recompute = block(2); zero = 3; bucket = 25 MiB; overlap = off; gather = once }
train { micro_batch = 2; global_batch = 2 * 4; steps = 10 * 10; optimizer = sgd(lr = 0.1, momentum = 0.9, nesterov = on); schedule = wsd(warmup = 3, decay = 5, style = cosine); clip = 0.5; seed = 0 }
# > set parallel.bucket = 26214400 ; settings_everything.mt:5:109-114
# > set parallel.gather = once ; settings_everything.mt:5:141-144
# > set parallel.overlap = false ; settings_everything.mt:5:127-129
# > set parallel.pipeline = interleaved(chunks = 3, cut = "0:12,12:24") ; settings_everything.mt:5:23-65
# > set parallel.recompute = block(2) ; settings_everything.mt:5:80-87
# > set parallel.zero = 3 ; settings_everything.mt:5:97
# > set precision.compute = f64 ; settings_everything.mt:4:23-25
# > set precision.grad_reduce = f32 ; settings_everything.mt:4:70-72
# > set precision.grads = bf16 ; settings_everything.mt:4:50-53
# > set precision.loss_scale = dynamic(initial = 1024, window = 1000, hysteresis = 2, growth = 2, backoff = 0.5, min = 1) ; settings_everything.mt:4:88-112
# > set precision.params = f32 ; settings_everything.mt:4:37-39
# > set train.chunk = 0
# > set train.clip = 0.5 ; settings_everything.mt:6:185-187
# > set train.global_batch = 8 ; settings_everything.mt:6:41-45
# > set train.micro_batch = 2 ; settings_everything.mt:6:23
# > set train.optimizer = sgd(lr = 0.1, momentum = 0.9, nesterov = true, decay = 0) ; settings_everything.mt:6:77-120
# > set train.schedule = wsd(warmup = 3, decay = 5, style = cosine, min = 0) ; settings_everything.mt:6:134-175
# > set train.seed = 0 ; settings_everything.mt:6:197
# > set train.steps = 100 ; settings_everything.mt:6:56-62
