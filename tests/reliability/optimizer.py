"""Optimizers, schedules, skipped updates, on parameters whose gradients are the inputs.

usage: optimizer.py MTC MTRUN MTDATA [CASE…]"""

from mt import *

# d loss / d w = the mean of g, whatever w is
PLAIN = """
dim batch
dim n = 4
model M(g: [batch, n]) -> loss: f32[] {
  param w: [n] ~ normal(1)
  loss = stepmean[batch](sum[n](g * w))
}
train { micro_batch = 1; global_batch = 1; steps = 40; clip = 0 }
"""


def plain(optimizer, gradients, *options, init=None, code=0, steps=None, plan=None, **settings):
    """runs PLAIN: one gradient of four numbers a step"""
    plan = plan or compile(
        PLAIN, *floats("f64"), train_optimizer=optimizer, train_steps=steps or len(gradients), **settings
    )
    save("g", {"g": reals((len(gradients), 1, 1, 4), [x for g in gradients for x in g])})
    save("w", {"w": reals((4,), init or [0] * 4)})
    return run(plan, "--batches", "g", "--init", "w", *options, code=code)


@case
def epsilon():
    # O01 github.com/karpathy/nanochat/issues/304: eps is added to the corrected root, not to the raw one
    r = plain("adamw(lr = 1, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, decay = 0)", [[1e-8, -1e-8, 1, 0]])
    near(r.final["w"], [-0.5, 0.5, -1 / (1 + 1e-8), 0], 1e-12)


GROUPS = """
dim batch
dim n = 3
dim m = 2
block Norm(x: [*, n]) -> [*, n] {
  param scale7 as "scale7": [n] ~ ones
  param shift7 as "shift7": [n] ~ zeros
  return x * scale7 + shift7
}
model M(x: [batch, n]) -> loss: f32[] {
  y = Norm(x) as "weightnorm"
  y = Linear[n, m](y) as "bias_like"
  y = Linear[m, n](y) as "norm"
  loss = stepmean[batch](sum[n](y * 0))
}
train { micro_batch = 1; global_batch = 1; steps = 1
        optimizer = adamw(lr = 0.1, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, decay = 0.1) }
"""


@case
def decay_groups():
    # O03 github.com/bigscience-workshop/Megatron-DeepSpeed/pull/262, ServiceNow/Fast-LLM/issues/542,
    # deepspeedai/DeepSpeedExamples/pull/755: what decays follows from how a parameter begins, whatever it is
    # called; with zero gradients decay is all that moves
    names = {
        "weightnorm.scale7": 3,
        "weightnorm.shift7": 3,
        "bias_like.weight": 6,
        "bias_like.bias": 2,
        "norm.weight": 6,
        "norm.bias": 3,
    }
    shapes = {"bias_like.weight": (2, 3), "norm.weight": (3, 2)}
    save("w", {k: reals(shapes.get(k, (n,)), [1] * n) for k, n in names.items()})
    save("x", {"x": reals((1, 1, 1, 3), [1, 2, 3])})
    r = run(compile(GROUPS, *floats("f64")), "--batches", "x", "--init", "w")
    for name, n in names.items():
        if name in shapes:
            near(r.final[name], [0.99] * n, 1e-15, name)
        else:
            same(list(r.final[name]), [1] * n, name)
    for optimizer in ("adamw(lr = 0.1, decay = 0.1)", "sgd(lr = 0.1, decay = 0.1)"):
        plan = compile(
            GROUPS,
            *floats("f64"),
            train_optimizer=optimizer,
            train_no_decay='"norm.*"',
            train_decay='"*.scale7"'
        )
        r = run(plan, "--batches", "x", "--init", "w")
        near(r.final["weightnorm.scale7"], [0.99] * 3, 1e-15)
        same(list(r.final["norm.weight"]), [1] * 6)
        near(r.final["bias_like.weight"], [0.99] * 6, 1e-15)


@case
def step_count():
    # O05 github.com/TrenTorch/TrenTorch/pull/187: the count of updates is restored with the moments, so a
    # constant gradient keeps its step of lr
    one = [[1, 1, 2, -3]] * 11
    adam = "adamw(lr = 1, beta1 = 0.9, beta2 = 0.999, eps = 0, decay = 0)"
    r = plain(adam, one, "--steps", 10, "--save", "ck", train_schedule="constant")
    near(r.final["w"], [-10, -10, -10, 10], 1e-12)
    r = plain(adam, one, "--save", "ck", "--resume", "auto", train_schedule="constant")
    same(len(r.log), 1)
    near(r.final["w"], [-11, -11, -11, 11], 1e-12)


NARROW = """
config { pdrop = 0.3 }
dim batch
dim n = 8
dim m = 12
model M(x: f32[batch, n], y: f32[batch, n]) -> loss: f32[] {
  h = dropout(gelu(LayerNorm[n](x) as ln), pdrop)
  h = Linear[m, n](silu(Linear[n, m](h) as up)) as down
  loss = stepmean[batch](sum[n](f32((h - y) ^ 2)))
}
precision { compute = bf16; params = f32; grads = f32; keep f32: layernorm }
train { micro_batch = 2; global_batch = 4; steps = 16; clip = 1.0
        optimizer = adamw(lr = 1e-2, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, decay = 0.1); schedule = cosine(warmup = 3, min = 1e-3) }
"""


def checkpoint(folder, step):
    return [
        bytes_of("%s/step_%08d/%s" % (folder, step, f))
        for f in ("model.safetensors", "optimizer.safetensors", "state.json")
    ]


@case
def eight_and_eight():
    # O06 github.com/KempnerInstitute/KempnerForge/issues/114: masters and moments go through a checkpoint
    # with every bit, so that no step ever differs
    values = lambda k: [math.sin(k * i * i + i) for i in range(16 * 4 * 8)]
    save("b", {"x": reals((16, 2, 2, 8), values(1), "F32"), "y": reals((16, 2, 2, 8), values(2), "F32")})
    plan = compile(NARROW)
    whole = run(plan, "--batches", "b", "--save", "whole", "--save-every", 1)
    run(plan, "--batches", "b", "--save", "part", "--steps", 8)
    rest = run(plan, "--batches", "b", "--save", "part", "--save-every", 1, "--resume", "auto")
    for k in range(8, 17):
        same(checkpoint("part", k), checkpoint("whole", k), "step %d" % k)
    same(rest.final, whole.final)
    same([line["loss"] for line in rest.log], [line["loss"] for line in whole.log[8:]])
    assert len({line["loss"] for line in whole.log}) == 16


@case
def schedules():
    # O07 github.com/deepspeedai/DeepSpeed/pull/8142 and /5287, pytorch/torchtitan/pull/1010 and /1261:
    # warm-up as long as the run, a run of one step. Here lr(n) is Megatron-LM's, with n the number of updates
    # so far: the first step of a warm-up has lr 0, and the least value lies one step past the end
    formulas = {
        "constant": lambda n, w, t: 1,
        "linear": lambda n, w, t: 0.1 + 0.9 * (t - n) / (t - w),
        "cosine": lambda n, w, t: 0.1 + 0.9 * (1 + math.cos(math.pi * (n - w) / (t - w))) / 2,
        "inverse_sqrt": lambda n, w, t: max(0.1, math.sqrt(max(w, 1) / max(n, 1))),
    }
    for kind, formula in formulas.items():
        low = "" if kind == "constant" else ", min = 0.1"
        for warmup, steps in ((0, 10), (10, 10), (4, 10), (0, 1), (1, 1)):
            text = "%s(warmup = %d%s)" % (kind, warmup, low)
            r = plain("sgd(lr = 1, momentum = 0, decay = 0)", [[1, 1, 1, 1]] * steps, train_schedule=text)
            want = [n / warmup if n < warmup else formula(n, warmup, steps) for n in range(steps)]
            near([line["lr"] for line in r.log], want, 1e-12, text)
            assert all(0 <= line["lr"] <= 1 for line in r.log)
            near(r.final["w"], [-sum(want)] * 4, 1e-12, text)
        p = call(
            [
                MTC,
                "compile",
                "m.mt",
                "-o",
                "q.plan",
                *sets(train_steps=3, train_optimizer__lr=1, train_schedule="%s(warmup = 4%s)" % (kind, low)),
            ],
            code=None,
        )
        if not p.returncode:
            save("g", {"g": reals((3, 1, 1, 4), [1] * 12)})
            p = call([MTRUN, "q.plan", "--batches", "g"], code=65)
        assert "warmup is 4 steps, more than the 3" in p.stderr, p.stderr


@case
def half_skipped():
    # P02 github.com/huggingface/accelerate/issues/4242, mlnomadpy/flaxchat/issues/6: a step without an update
    # leaves weights, moments, their count and the rate's count as they were, and takes its samples. lr(n) =
    # 0.1·n, so its count shows
    inf = float("inf")
    steps = [[3, -1, 0.5, 2], [1, 2, 3, 4], [inf, 1, 1, 1], [1, float("nan"), 1, 1], [-1, 1, -1, 1]]
    adam = "adamw(lr = 0.4, beta1 = 0.9, beta2 = 0.99, eps = 1e-8, decay = 0.1)"
    how = dict(train_schedule="constant(warmup = 4)", init=[1, 2, 3, 4])
    r = plain(adam, steps, "--save", "ck", "--save-every", 1, **how)
    same([line["updated"] for line in r.log], [True, True, False, False, True])
    same([line["updates"] for line in r.log], [1, 2, 2, 2, 3])
    same([line["skipped"] for line in r.log], [0, 0, 1, 2, 2])
    same([line["samples"] for line in r.log], [1, 2, 3, 4, 5])
    near([line["lr"] for line in r.log], [0, 0.1, 0.2, 0.2, 0.2], 1e-15)
    for k in (3, 4):
        same(checkpoint("ck", k)[:2], checkpoint("ck", 2)[:2], "step %d" % k)
        state = json.loads(checkpoint("ck", k)[2])
        same([state["step"], state["update"], state["samples"]], [k, 2, k])
    same(r.log[2]["grad_norm"], None)
    # the same three updates alone; and on from each of the steps around the skipped ones
    alone = plain(adam, [steps[0], steps[1], steps[4]], "--steps", 3, steps=5, **how)
    same(alone.final, r.final)
    save("g", {"g": reals((5, 1, 1, 4), [x for g in steps for x in g])})
    for k in (2, 3, 4):
        again = run("p.plan", "--batches", "g", "--resume", "ck/step_%08d" % k)
        same(again.final, r.final, "resumed at %d" % k)
        same([line["updates"] for line in again.log], [line["updates"] for line in r.log[k:]])


@case
def stops_in_the_end():
    # T6: ten steps in a row without an update end the run; the state of the last update is kept
    nan = float("nan")
    good, bad = [1, 2, 3, 4], [nan, 1, 1, 1]
    sgd = "sgd(lr = 1, momentum = 0, decay = 0)"
    r = plain(sgd, [good] + [bad] * 9 + [good] + [bad] * 9 + [good])
    same([line["updates"] for line in r.log][-1], 3)
    same(r.log[-1]["skipped"], 18)
    r = plain(sgd, [good, good] + [bad] * 12, "--save", "ck", code=65)
    assert "no update in 10 steps in a row" in r.stderr, r.stderr
    same(len(r.log), 12)
    assert all(line["loss"] is None and line["loss_state"] == "nan" for line in r.log[2:])


@case
def momentum():
    # v = 0.9·v + g, w -= lr·v; with clipping the norm that is logged is the one before it: 5 here, cut to 1
    r = plain("sgd(lr = 1, momentum = 0.9, decay = 0)", [[1, 0, 0, 0]] * 3)
    near(r.final["w"], [-(1 + 1.9 + 2.71), 0, 0, 0], 1e-12)
    r = plain("sgd(lr = 1, momentum = 0, decay = 0)", [[3, 4, 0, 0]], train_clip=1.0)
    near(r.log[0]["grad_norm"], 5, 1e-12)
    near(r.final["w"], [-0.6, -0.8, 0, 0], 1e-6)


main()
