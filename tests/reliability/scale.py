"""Loss scales, and gradients that are not finite: on all ranks the step is left out whole.

usage: scale.py MTC MTRUN MTDATA [CASE…]"""

from mt import *

INF, NAN = float("inf"), float("nan")

# d loss / d w = the mean of g; times the loss scale it is an operand of a product, and so stored as f16
HALF = """
dim batch
dim one = 1
dim n = 4
model M(x: [batch, one], g: [batch, n]) -> loss: f32[] {
  param w: [one, n] ~ zeros
  loss = stepmean[batch](f32(sum[n]((x @ w) * g)))
}
precision { compute = f16; params = f32; grads = f32 }
parallel { mesh dp = 1, tp = 1; map batch -> dp; map n -> tp }
train { micro_batch = 1; global_batch = 1; steps = 1; optimizer = sgd(lr = 1) }
"""


def save_g(g, samples=1):
    """g: a gradient of four numbers for each sample of each step"""
    shape = (len(g) // samples, samples, 1)
    save("g", {"g": reals((*shape, 4), [v for row in g for v in row], "F32"), "x": reals((*shape, 1), [1] * len(g), "F32")})


def half(g, *options, samples=1, text=HALF, code=0, plan="p.plan", compiled=(), **settings):
    save_g(g, samples)
    settings = {"train_steps": len(g) // samples, "train_global_batch": samples, **settings}
    return run(compile(text, *compiled, plan=plan, **settings), "--batches", "g", *options, code=code)


def column(r, key):
    return [line[key] for line in r.log]


@case
def the_first_steps():
    # P03 github.com/deepspeedai/DeepSpeed/issues/931: from 65536 on with 2 of hysteresis; 32 times the scale has to be
    # less than 65520 to be an f16. The step that logs a scale used it; the rule's answer is in the next one
    r = half([[32, 0, 0, 0]] * 9, precision_loss_scale="dynamic(initial = 65536)")
    same(column(r, "loss_scale"), [65536, 65536, 32768, 16384, 8192, 4096, 2048, 1024, 1024])
    same(column(r, "updated"), [False] * 7 + [True] * 2)
    same(column(r, "skipped"), [1, 2, 3, 4, 5, 6, 7, 7, 7])
    same(column(r, "grad_norm"), [None] * 7 + [32, 32])
    same(list(r.final["w"]), [-64, 0, 0, 0])
    assert "loss_scale 65536" in r.stdout and "no update: not finite; 7 so far" in r.stdout, r.stdout
    # Megatron-LM's default for fp16, and its way down: none of these steps is one of those in a row that stop a run
    r = half([[1, 0, 0, 0]] * 20)
    same(column(r, "loss_scale"), [2.0**32, 2.0**32] + [2.0**k for k in range(31, 15, -1)] + [2.0**15] * 2)
    same(column(r, "updates")[-1], 2)


@case
def growth():
    # after exactly `window` finite steps in a row; then it is too large, and hysteresis is whole again
    r = half([[1, 0, 0, 0]] * 14, precision_loss_scale="dynamic(initial = 16384, window = 3)")
    same(column(r, "loss_scale"), [16384] * 3 + [32768] * 3 + [65536] * 2 + [32768] * 3 + [65536] * 2 + [32768])
    same(column(r, "updated"), [True] * 6 + [False] * 2 + [True] * 3 + [False] * 2 + [True])


@case
def small_gradients():
    # what f16 rounds to 0 alone is right when it is scaled, in the file of gradients, too
    text = HALF.replace("sum[n]((x @ w) * g)", "sum[n]((x @ w) * g * 1e-4) * 1e-5")
    for scale, want in (("none", [0] * 4), ("65536", [1e-9, 2e-9, 0, -4e-9])):
        r = half([[1, 2, 0, -4]], "--log-params", text=text, precision_loss_scale=scale)
        near([x * 1e9 for x in r.grads["w"]], [x * 1e9 for x in want], 2e-3, scale)
        near([x * 1e9 for x in r.final["w"]], [-x * 1e9 for x in want], 2e-3, scale)
        near([r.log[0]["grad_norm/w"] * 1e9], [math.hypot(*want) * 1e9], 2e-3)
        near([r.log[0]["grad_norm"] * 1e9], [math.hypot(*want) * 1e9], 2e-3)
    same(r.log[0]["loss_scale"], 65536)


@case
def no_scale_and_any():
    # a power of two changes no bit where nothing over- or underflows
    text = HALF.replace("sum[n]((x @ w) * g)", "sum[n]((x @ w) * g) ^ 2 + tanh(sum[n]((x @ w) * g))")
    g = [[math.sin(i * k) for k in range(4)] for i in range(6)]
    how = dict(text=text, train_clip=0.1, train_optimizer="adamw(lr = 0.1)", plan="x.plan")
    for dtype in ("f64", "f32", "bf16"):
        p = dict(precision_compute=dtype, precision_params="f64" if dtype == "f64" else "f32")
        if dtype == "f64":
            p["precision_grads"] = "f64"
        plain = half(g, **how, **p)
        same(column(plain, "loss_scale"), [1] * 6)
        for scale in ("none", "1024", "dynamic(initial = 64, window = 2)"):
            r = half(g, **how, **p, precision_loss_scale=scale)
            same([r.final, r.grads, column(r, "loss"), column(r, "grad_norm")],
                 [plain.final, plain.grads, column(plain, "loss"), column(plain, "grad_norm")], dtype + " " + scale)
        same(column(r, "loss_scale"), [64, 64, 128, 128, 256, 256])


def checkpoint(folder, step):
    names = "model.safetensors", "optimizer.safetensors", "state.json"
    return [bytes_of("%s/step_%08d/%s" % (folder, step, f)) for f in names]


@case
def resumed():
    # P01 github.com/huggingface/transformers/issues/34053: scale and both counts go through a checkpoint, whichever
    # step it is of
    g = [[1, 0, -1, 0.5]] * 16
    how = dict(precision_loss_scale="dynamic(initial = 131072, window = 3)", train_optimizer="adamw(lr = 0.1)")
    whole = half(g, "--save", "whole", "--save-every", 1, **how)
    assert len(set(column(whole, "loss_scale"))) == 3 and len(set(column(whole, "updated"))) == 2
    for k in range(1, 16):
        rest = run("p.plan", "--batches", "g", "--resume", "whole/step_%08d" % k, "--save", "rest%d" % k)
        same(checkpoint("rest%d" % k, 16), checkpoint("whole", 16), "from step %d" % k)
        for key in "loss_scale", "updated", "grad_norm", "lr":
            same(column(rest, key), column(whole, key)[k:], key)
    state = json.loads(checkpoint("whole", 2)[2])
    same([state["loss_scale"], state["scale_good"], state["scale_bad"]], [65536, 0, 2])
    # a run without a scale says so; one with a scale goes on from there with its first one
    half(g, "--save", "none", "--steps", 2, precision_loss_scale="none", train_optimizer="adamw(lr = 0.1)", plan="n.plan")
    same(json.loads(checkpoint("none", 2)[2])["loss_scale"], 0)
    same(run("p.plan", "--batches", "g", "--resume", "none/step_00000002").log[0]["loss_scale"], 131072)


@case
def half_skipped():
    # P02 github.com/huggingface/accelerate/issues/4242, mlnomadpy/flaxchat/issues/6: attempt 2 of 3 overflows; its
    # weights, moments, their count and the rate's stay, its sample is used
    g = [[1, -1, 0.5, 2], [INF, 1, 1, 1], [-1, 1, -1, 1]]
    how = dict(
        train_optimizer="adamw(lr = 0.4, beta1 = 0.9, beta2 = 0.99, eps = 1e-8, decay = 0.1)",
        train_schedule="constant(warmup = 4)", train_decay='"w"',
        precision_loss_scale="dynamic(initial = 256, hysteresis = 1)", train_steps=5,
    )  # fmt: skip
    save_g(g + [[0] * 4] * 2)
    r = run(compile(HALF, **how), "--batches", "g", "--steps", 3, "--save", "ck", "--save-every", 1)
    same(column(r, "updated"), [True, False, True])
    same(column(r, "updates"), [1, 1, 2])
    same(column(r, "samples"), [1, 2, 3])
    same(column(r, "loss_scale"), [256, 256, 128])
    near(column(r, "lr"), [0, 0.1, 0.1], 1e-15)
    same(checkpoint("ck", 2)[:2], checkpoint("ck", 1)[:2])
    save_g([g[0], g[2]] + [[0] * 4] * 3)
    alone = run("p.plan", "--batches", "g", "--steps", 2)
    same(alone.final, r.final)


@case
def interpreted():
    # the interpreter makes the same decisions and the same numbers
    g = [[1, math.sin(i), -3 if i in (2, 5, 6, 9, 10) else 0, 0.1] for i in range(12)]
    how = dict(precision_loss_scale="dynamic(initial = 32768, window = 3, hysteresis = 1)", train_optimizer="adamw(lr = 0.1)", train_clip=0.5)
    save("w", {"w": reals((1, 4), [1, 2, 3, 4], "F32")})
    r = half(g, "--init", "w", **how)
    call([MTC, "interp", "m.mt", "--batches", "g", "--init", "w", "--log-json", "i.log", "--final", "i.final",
          "--grads", "i.grads", *sets(train_steps=len(g), **how)])  # fmt: skip
    i = log("i.log")
    for key in "loss_scale", "updated":
        same([line[key] for line in i], column(r, key), key)
    same([i for i, line in enumerate(r.log) if not line["updated"]], [2, 6, 10])
    for a, b in zip(i, r.log):
        near([a["loss"]], [b["loss"]], 1e-6)
        same(a["grad_norm"] is None, b["grad_norm"] is None)
    near(load("i.final")["w"], r.final["w"], 1e-5)
    for mesh in "tp=2", "dp=2", "dp=2,tp=2":
        two = half(g, "--init", "w", samples=2, compiled=["--mesh", mesh], **how)
        call([MTC, "interp", "m.mt", "--mesh", mesh, "--batches", "g", "--init", "w", "--log-json", "i.log",
              *sets(train_global_batch=2, train_steps=6, **how)])  # fmt: skip
        for key in "loss_scale", "updated":
            same([line[key] for line in log("i.log")], column(two, key), mesh + " " + key)
        assert not all(column(two, "updated"))
    good = half(g, "--init", "w", **{**how, "precision_loss_scale": "64"})
    call([MTC, "interp", "m.mt", "--batches", "g", "--init", "w", "--steps", 1, "--grads", "i.grads",
          *sets(**{**how, "train_steps": len(g), "precision_loss_scale": "64"})])  # fmt: skip
    near(load("i.grads")["w"], good.grads["w"], 1e-6)


@case
def one_rank_overflows():
    # P12 github.com/facebookresearch/fairseq2/pull/1374: only one rank of several has what is not finite; all leave the
    # step out and lower the scale, as one rank that has all of it would
    good = [[1, 2, -1, 0.5], [2, -1, 1, 1], [1, 1, 1, 1], [0, 1, -2, 1]]
    tests = {"tp=2": (1, 3), "dp=2": (3, 0), "dp=2,tp=2": (2, 3)}
    for mesh, (sample, entry) in tests.items():
        for bad in INF, -INF, NAN, 6e4:  # the last is finite, and not when it is scaled
            steps = [[list(row) for row in good] for _ in range(6)]
            for k in (1, 2, 4):
                steps[k][sample][entry] = bad
            flat = [row for step in steps for row in step]
            how = dict(samples=4, precision_loss_scale="dynamic(initial = 256)", train_optimizer="adamw(lr = 0.1)")
            one = half(flat, **how, plan="one.plan")
            saved = "ck" + mesh + str(bad)
            some = half(flat, "--save", saved, "--save-every", 1, **how, compiled=["--mesh", mesh], train_micro_batch=1)
            what = "%s %g" % (mesh, bad)
            same(column(one, "updated"), [True, False, False, True, False, True], what)
            same(column(one, "loss_scale"), [256, 256, 256, 128, 128, 64], what)
            for key in "updated", "loss_scale", "updates", "skipped":
                same(column(some, key), column(one, key), what + " " + key)
            near(some.final["w"], one.final["w"], 1e-6, what)
            for k in (1, 2, 4):
                same(checkpoint(saved, k + 1)[:2], checkpoint(saved, k)[:2], what)


@case
def one_rank_overflows_under_zero():
    # the same where a rank has a share of the moments, gradients or parameters only; norms are of whole tensors
    steps = [[list(row) for row in ([1, 2, -1, 0.5], [2, -1, 1, 1])] for _ in range(5)]
    steps[1][1][2], steps[3][0][0] = INF, 6e4
    flat = [row for step in steps for row in step]
    how = dict(samples=2, precision_loss_scale="dynamic(initial = 256, hysteresis = 1)", train_optimizer="adamw(lr = 0.1)", train_clip=0.5)
    one = half(flat, "--log-params", **how, plan="one.plan")
    same(column(one, "updated"), [True, False, True, False, True])
    for zero in (1, 2, 3):
        some = half(flat, "--log-params", "--check-replicas", 1, **how, compiled=["--mesh", "dp=2"], parallel_zero=zero)
        for key in "updated", "loss_scale", "updates":
            same(column(some, key), column(one, key), "zero %d %s" % (zero, key))
        near(some.final["w"], one.final["w"], 1e-6, "zero %d" % zero)
        for key in "grad_norm", "grad_norm/w", "param_norm/w":
            near([x for x in column(some, key) if x is not None], [x for x in column(one, key) if x is not None], 1e-5, key)


@case
def norm_on_a_mesh():
    # G10 github.com/NVIDIA-NeMo/RL/pull/3788, github.com/ROCm/TransformerEngine/pull/715: what all ranks hold counts
    # once. Gradients 3 | 4 of a parameter that is split, 12 of one that is not
    text = """
dim batch
dim n = 2
model M(g: [batch, n], h: [batch]) -> loss: f32[] {
  param split: [n] ~ zeros
  param whole: [] ~ zeros
  loss = stepmean[batch](sum[n](g * split) + h * whole)
}
parallel { mesh dp = 1, tp = 1; map batch -> dp; map n -> tp }
train { micro_batch = 1; global_batch = 2; steps = 1; clip = 6.5; optimizer = sgd(lr = 1) }
"""
    save("g", {"g": reals((1, 2, 1, 2), [2, 4, 4, 4]), "h": reals((1, 2, 1), [13, 11])})
    for mesh in "dp=1", "tp=2", "dp=2", "dp=2,tp=2":
        r = run(compile(text, *floats("f64"), "--mesh", mesh), "--batches", "g")
        near(r.log[0]["grad_norm"], 13, 1e-14, mesh)
        near(r.final["split"], [-1.5, -2], 1e-6, mesh)
        near(r.final["whole"], [-6], 1e-6, mesh)


@case
def gives_up():
    # a scale that can fall no further is no answer: from there on the steps count
    r = half([[INF, 0, 0, 0]] * 30, code=65, precision_loss_scale="dynamic(initial = 8, hysteresis = 1)")
    same(column(r, "loss_scale"), [8, 4, 2] + [1] * 10)
    assert "no update in 10 steps in a row" in r.stderr, r.stderr
    r = half([[INF, 0, 0, 0]] * 30, "--max-skips", 2, "--log-params", code=65, precision_loss_scale="4")
    same([line["grad_norm/w_state"] for line in r.log], ["inf", "inf"])
    r = half([[INF, 0, 0, 0]] * 30, "--max-skips", 0, precision_loss_scale="4")
    same([len(r.log), r.log[-1]["skipped"]], [30, 30])


def stuck(text, inputs, *options, mesh="", stderr=(), init=None, **settings):
    """runs two steps that make no update; what it says of the first value that is not finite"""
    save("b", inputs)
    if init:
        save("w", init)
    plan = compile(text, *(["--mesh", mesh] if mesh else []), train_steps=2, **settings)
    r = run(plan, "--batches", "b", *(["--init", "w"] if init else []), "--max-skips", 2, *options, code=65)
    same(column(r, "updated"), [False, False])
    same(r.stderr.count("no update in 2 steps in a row"), 1, r.stderr)
    return r.stderr.split("the first value that is not finite: ")[1].strip()


MADE = """
dim batch
dim n = 4
dim m = 3
model M(g: [batch, n]) -> loss: f32[] {
  param w: [n, m] ~ ones
  h = g @ w
  r = log(h)
  k = r @[m] w
  loss = stepmean[batch](f32(sum[n](k)))
}
parallel { mesh dp = 1, tp = 1; map batch -> dp; map m -> tp }
train { micro_batch = 1; global_batch = 4; steps = 1; optimizer = sgd(lr = 1) }
"""


def rows(bad, count=4, steps=2):
    """g: rows of ones; bad: what sample `number` of each step has"""
    flat = []
    for _ in range(steps):
        for sample in range(count):
            flat += bad.get(sample, [1] * 4)
    return {"g": reals((steps, count, 1, 4), flat, "F32")}


@case
def where_it_began():
    # T6: the operation, microbatch, rank and line of the first value; here log of what is negative or 0
    said = stuck(MADE, rows({2: [1, 1, -4, 1]}))
    assert said.startswith("nan in microbatch 2 on rank 0, made at m.mt:8:7 (log; instruction "), said
    said = stuck(MADE, rows({2: [1, 1, -4, 1]}), mesh="dp=2")
    assert said.startswith("nan in microbatch 1 on rank 0, made at m.mt:8:7 (log"), said
    said = stuck(MADE, rows({3: [1, 1, -4, 1]}), mesh="dp=2")
    assert said.startswith("nan in microbatch 1 on rank 1, made at m.mt:8:7 (log"), said
    said = stuck(MADE, rows({1: [1, 1, -4, 1]}), "--ranks", "threads", mesh="dp=2")
    assert said.startswith("nan in microbatch 0 on rank 1, made at m.mt:8:7 (log"), said
    said = stuck(MADE, rows({1: [-1, 1, -1, 1]}))
    assert said.startswith("-inf in microbatch 1 on rank 0, made at m.mt:8:7 (log"), said
    # an input, a parameter
    said = stuck(MADE, rows({1: [1, INF, 1, 1]}))
    same(said, "inf in the input 'g' of microbatch 1 on rank 0")
    said = stuck(MADE, rows({3: [1, NAN, 1, 1]}), mesh="dp=2,tp=1")
    same(said, "nan in the input 'g' of microbatch 1 on rank 1")
    text = MADE.replace("map m -> tp", "map n -> tp").replace("[n, m] ~ ones", "[n, m] ~ ones\n  param v: [n] ~ ones").replace("sum[n](k)", "sum[n](k * v)")
    w = {"w": reals((4, 3), [1] * 12, "F32"), "v": reals((4,), [1, 1, NAN, 1], "F32")}
    said = stuck(text, rows({}), init=w)
    same(said, "nan in 'v' on rank 0, before the step: m.mt:7:3")
    said = stuck(text, rows({}), init=w, mesh="tp=2")
    same(said, "nan in 'v' on rank 1, before the step: m.mt:7:3")


@case
def where_it_overflowed():
    # f16, in the backward pass of one rank only; a gradient whose square is too large; infinity that is meant is none
    inputs = lambda g: {"g": reals((2, 1, 1, 4), g * 2, "F32"), "x": reals((2, 1, 1, 1), [1, 1], "F32")}
    how = dict(precision_loss_scale="1024")
    said = stuck(HALF, inputs([1, 1, 60, 70]), mesh="tp=2", **how)
    assert said.startswith("inf in microbatch 0 on rank 1, made at m.mt:7:37 (mul"), said
    linear = MADE.replace("@[m] w", "@[m] detach(w)").replace("r = log(h)", "r = h * 1e12")
    said = stuck(linear, rows({0: [1, 1, 1, 1e12]}))
    assert said.startswith("inf in the update on rank 0, made at m.mt:6:3 ("), said
    masked = """
dim batch
dim n = 4
dim m = 3
model M(g: [batch, n]) -> loss: f32[] {
  param w: [n, m] ~ ones
  a = select(index(n) < 3, g, -inf)
  p = softmax[n](a + g)
  q = p @ w
  loss = stepmean[batch](sum[m](sqrt(q - 2)))
}
train { micro_batch = 1; global_batch = 4; steps = 1; optimizer = sgd(lr = 1) }
"""
    said = stuck(masked, rows({}))
    assert said.startswith("nan in microbatch 0 on rank 0, made at m.mt:10:26 (sum; "), said


@case
def loss_alone():
    # a loss that is not finite, with a gradient that is: no step either, and the log has it
    text = MADE.replace("f32(sum[n](k))", "f32(sum[n](k)) + f32(detach(log(6 - sum[n](g))))")
    save("b", rows({1: [0, 2, 2, 2]}, steps=3))
    save("w", {"w": reals((4, 3), [2] * 12, "F32")})
    for dtype in "f32", "bf16":
        r = run(compile(text, *floats(dtype), train_steps=3), "--batches", "b", "--init", "w", "--max-skips", 3, code=65)
        same([line["loss_state"] for line in r.log], ["-inf"] * 3)
        same(column(r, "updated"), [False] * 3)
        assert all(math.isfinite(x) for x in r.grads["w"]) and "-inf in microbatch 1 on rank 0" in r.stderr, r.stderr


main()
