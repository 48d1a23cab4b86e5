# later ones win: presets, configs, settings and parallel files take effect at their place
# mtc -D hidden=3 --preset small -D hidden=5 --set train.steps=7 --preset small --set train.optimizer.lr=0.5 --parallel ../files/two.mtp --set parallel.zero=3 --mesh tp=2 --map 'weak hid -> dp'
# show mesh map dim set
config { hidden = 1; layers = 2 }
preset small { hidden = 4; layers = 6; train.steps = 9; train.optimizer.beta1 = 0.5 }
dim batch
dim hid = hidden
dim lay = layers
model M(x: [batch, hid]) -> (loss: f32[]) { loss = mean[batch, hid](x) }
parallel { mesh dp = 4; map batch -> dp; map hid -> tp; map weak hid -> ep }
train { optimizer = adamw(lr = 0.1); steps = 1; micro_batch = 2; global_batch = 8 }
# > mesh pp = 1, dp = 1, ep = 1, cp = 1, tp = 2
# > map hid -> tp ; overrides_in_order.mt:10:42-54
# > map batch -> dp, ep ; ../files/two.mtp:1:35-53
# > map weak hid -> dp ; "(--map)":1:1-14
# > dim batch = 2 sample
# > dim hid = 4
# > dim lay = 6
# > set parallel.bucket = 1048576 ; ../files/two.mtp:1:65-69
# > set parallel.gather = again
# > set parallel.overlap = true
# > set parallel.recompute = none()
# > set parallel.zero = 3 ; "(--set)":1:15
# > set precision.compute = bf16 ; ../files/two.mtp:2:23-26
# > set precision.grad_reduce = f32
# > set precision.grads = f32
# > set precision.params = f32
# > set train.chunk = 0
# > set train.clip = 0
# > set train.global_batch = 8 ; overrides_in_order.mt:11:81
# > set train.micro_batch = 2 ; overrides_in_order.mt:11:63
# > set train.optimizer = adamw(lr = 0.5, beta1 = 0.5, beta2 = 0.999, eps = 1e-08, decay = 0.01) ; overrides_in_order.mt:11:21-35
# > set train.schedule = constant(warmup = 0)
# > set train.seed = 1234
# > set train.steps = 11 ; ../files/two.mtp:3:17-18
