"""Sums that swallow small terms, variances that cancel, positions that collapse, rows without a key.

usage: precision.py MTC MTRUN MTDATA [CASE…]"""

from mt import *


@case
def accumulation():
    # P04 github.com/deepspeedai/DeepSpeed/issues/2768, pytorch/xla/pull/2425: gradients of microbatches are
    # added in f32 also when all else is bf16
    text = """
dim batch
model M(g: f32[batch]) -> loss: f32[] {
  param w: [] ~ zeros
  loss = sum[batch](float(g) * w)
}
precision { compute = bf16; params = f32; grads = f32 }
train { micro_batch = 1; global_batch = 512; steps = 1; optimizer = sgd(lr = 1) }
"""
    # 256, then 256 times 1, then nothing; sum is over one microbatch and the objective their mean, hence the
    # factor
    save("g", {"g": reals((1, 512, 1), [256] + [1] * 256 + [0] * 255, "F32")})
    save("w", {"w": reals((), [0])})
    for loss in "sum[batch]", "stepmean[batch]":
        r = run(compile(text.replace("sum[batch]", loss)), "--batches", "g", "--init", "w")
        same(r.grads["w"][0] * 512, 512)
        same(r.final["w"][0] * 512, -512)


@case
def layernorm():
    # P06 github.com/tracel-ai/burn/issues/5607, pytorch/pytorch/pull/55044: the variance of numbers around
    # 1000 and 10000, in f32; both as a composite of the prelude and fused with what stands around it. The
    # probe's gradient is the value
    text = """
dim batch
dim d = 16
model M(x: f32[batch, d]) -> loss: f32[] {
  param probe: [d] ~ zeros
  loss = stepmean[batch](sum[d](probe * LayerNorm[d](x) as ln))
}
train { micro_batch = 1; global_batch = 1; steps = 1 }
"""
    plan = compile(text, *floats("f32"))
    for mean, first, tolerance in ((1000, -1.3415, 0.005), (10000, -1.3313, 0.02), (0, -1.3415, 0.005)):
        save("x", {"x": reals((1, 1, 1, 16), [mean + 0.001 * i for i in range(16)], "F32")})
        y = run(plan, "--batches", "x").grads["probe"]
        assert abs(y[0] - first) <= tolerance, (mean, y[0])
        assert all(a < b or mean for a, b in zip(y, y[1:])) and abs(sum(y)) < 1e-3, list(y)
    save("x", {"x": reals((1, 1, 1, 16), [12345.678] * 16, "F32")})  # no variance at all
    near(run(plan, "--batches", "x").grads["probe"], [0] * 16, 1e-6)


@case
def rope():
    # P08 github.com/EleutherAI/gpt-neox/issues/1003, NVIDIA/Megatron-LM/issues/535: rotary angles are
    # computed in f32 also in a bf16 model. Position 1857, pair 1 of 16, base 10000: angle 1044.2678. x is 1
    # in the first half and 0 in the second, so out come cos and sin
    text = """
dim batch
dim seq = 32768
dim hd = 32
dim four = 4
dim one = 1
fn at[s, d](x: [*, s, d], p) -> [*, d] { return sum[one](slice[s -> one](x, at = p)) }
model M(x: f32[batch]) -> loss: f32[] {
  param probe: [four, hd] ~ zeros
  y = rope[seq, hd](expand[seq](select(index(hd) < 16, 1.0, 0.0)))
  y = stack[four](at[seq, hd](y, 1857), at[seq, hd](y, 257), at[seq, hd](y, 32766), at[seq, hd](y, 32767))
  loss = stepmean[batch](f32(x) * f32(sum[four, hd](probe * y)))
}
precision { compute = bf16; params = f32; grads = f32; keep f32: rope }
train { micro_batch = 1; global_batch = 1; steps = 1 }
"""
    save("x", {"x": reals((1, 1, 1), [1], "F32")})
    for dtype in "bf16", "f16":
        check_rope(run(compile(text, precision_compute=dtype), "--batches", "x").grads["probe"])


def check_rope(y):
    for row, position in enumerate((1857, 257, 32766, 32767)):
        for pair in range(16):
            angle = position * 10000 ** (-2 * pair / 32)
            near(
                [y[row * 32 + pair], y[row * 32 + 16 + pair]],
                [math.cos(angle), math.sin(angle)],
                0.006,
                "position %d pair %d" % (position, pair),
            )
    near(y[1], 0.30669, 0.005)
    assert y[64:96] != y[96:128]


@case
def masked_rows():
    # P09 github.com/pytorch/pytorch/issues/41508, tracel-ai/burn/pull/4697: a query that may see no key gives
    # 0, and no NaN in any gradient
    text = """
dim batch
dim s = 2
dim t = 2
dim d = 1
model M(x: [batch]) -> loss: f32[] {
  param q: [s, d] ~ zeros
  param k: [t, d] ~ zeros
  param v: [t, d] ~ zeros
  param probe: [s, d] ~ zeros
  y = attention[s, t, d](q, k, v, where = expand[t](index(s) > 0))
  loss = stepmean[batch](x * sum[s, d](probe * y))
}
train { micro_batch = 1; global_batch = 1; steps = 1; optimizer = sgd(lr = 1) }
"""
    save("x", {"x": reals((1, 1, 1), [1])})
    save(
        "w",
        {
            "q": reals((2, 1), [0, 0]),
            "k": reals((2, 1), [0, 0]),
            "v": reals((2, 1), [1, 3]),
            "probe": reals((2, 1), [5, 7]),
        },
    )
    for dtype, tolerance in (("f64", 1e-14), ("f32", 1e-6)):
        save("x", {"x": reals((1, 1, 1), [1], dtype.upper())})
        r = run(compile(text, *floats(dtype)), "--batches", "x", "--init", "w")
        near(r.grads["probe"], [0, 2], tolerance)
        near(r.grads["v"], [3.5, 3.5], tolerance)
        near(list(r.grads["q"]) + list(r.grads["k"]), [0, 0, -3.5 * 1 * 0, 0], tolerance)
        assert r.log[0]["updated"] and all(math.isfinite(x) for t in r.final.values() for x in t)
    # a row of -inf, without any mask
    text = """
dim batch
dim s = 2
dim t = 3
model M(x: [batch]) -> loss: f32[] {
  param a: [s, t] ~ zeros
  param probe: [s, t] ~ zeros
  y = softmax[t](select(expand[t](index(s) > 0), a, -inf))
  loss = stepmean[batch](x * sum[s, t](probe * y))
}
train { micro_batch = 1; global_batch = 1; steps = 1; optimizer = sgd(lr = 1) }
"""
    save("x", {"x": reals((1, 1, 1), [1])})
    save("w", {"a": reals((2, 3), [0] * 6), "probe": reals((2, 3), [1, 2, 3, 3, 6, 9])})
    r = run(compile(text, *floats("f64")), "--batches", "x", "--init", "w")
    near(r.grads["probe"], [0, 0, 0, 1 / 3, 1 / 3, 1 / 3], 1e-14)
    near(r.grads["a"], [0, 0, 0, -1, 0, 1], 1e-14)


LOGITS = """
dim batch
dim seq = 3
dim vocab = 4
model M(labels: i32[batch, seq]) -> loss: f32[] {
  param z: [seq, vocab] ~ zeros
  loss = stepmean[batch, seq](cross_entropy[vocab](expand[batch](z), labels), where = labels != -100)
}
train { micro_batch = 2; global_batch = 4; steps = 2; optimizer = sgd(lr = 1) }
"""


@case
def labels_out_of_range():
    # P10 github.com/pytorch/pytorch/issues/12670: a label that is no class is refused before the step that
    # would use it, with its place and value
    plan = compile(LOGITS, *floats("f64"))
    good = [0, 1, 2, 3, -100, 0, 1, 2, 3, 0, -100, 2] * 2
    save("l", {"labels": ints((2, 2, 2, 3), good)})
    r = run(plan, "--batches", "l")
    near(r.log[0]["loss"], math.log(4), 1e-14)
    # the model's own number for "no label", as the prelude's
    other = compile(
        LOGITS.replace("labels), where = labels != -100", "labels, ignore = -1), where = labels != -1"),
        *floats("f64"),
        plan="other.plan"
    )
    save("l", {"labels": ints((2, 2, 2, 3), [-1 if v == -100 else v for v in good])})
    again = run(other, "--batches", "l")
    same([line["loss"] for line in again.log], [line["loss"] for line in r.log])
    same(again.final, r.final)
    for value, p in ((-100, other), (-4, other), (4, other), (-1, plan)):
        save(
            "l",
            {
                "labels": ints(
                    (2, 2, 2, 3),
                    [value] + good[1:4] + [0] + good[5:10] + [0] + good[11:16] + [0] + good[17:22] + [0, 2],
                )
            },
        )
        refused(MTRUN, [p, "--batches", "l"], "input 'labels' at step 0, sample 0, place 0 is %d" % value, 65)
    for value in (4, -4, -1, 2**31 - 1, -(2**31)):
        bad = list(good)
        bad[12 + 7] = value  # step 1, sample 2, entry 1
        save("l", {"labels": ints((2, 2, 2, 3), bad)})
        r = run(plan, "--batches", "l", code=65)
        assert (
            str(value) in r.stderr
            and "labels" in r.stderr
            and "step 1" in r.stderr
            and "sample 2" in r.stderr
        ), r.stderr
        same(len(r.log), 1)


main()
