"""A step's loss is the mean over all that counts in the step, however it is cut into microbatches.

usage: loss.py MTC MTRUN MTDATA [CASE…]"""

from mt import *

# entry t of a sample costs g_t · w, and counts where labels say so
TOKENS = """
dim batch
dim seq = 3
model M(g: [batch, seq], labels: i32[batch, seq]) -> loss: f32[] {
  param w: [] ~ ones
  loss = stepmean[batch, seq](g * w, where = labels != -100)
}
train { micro_batch = 1; global_batch = 2; steps = 1; optimizer = sgd(lr = 1) }
"""


def tokens(g, scored, *options, code=0, **settings):
    """g, scored: [steps][samples][3]"""
    samples = len(g[0])
    flat = lambda x: [v for step in x for sample in step for v in sample]
    save(
        "b",
        {
            "g": reals((len(g), samples, 1, 3), flat(g)),
            "labels": ints((len(g), samples, 1, 3), [0 if s else -100 for s in flat(scored)]),
        },
    )
    settings = {"train_steps": len(g), "train_global_batch": samples, **settings}
    return run(compile(TOKENS, *floats("f64"), **settings), "--batches", "b", *options, code=code)


@case
def mean_of_means():
    # L01 github.com/huggingface/transformers/pull/34191, issues/35203: microbatches with 1 and 3 scored
    # tokens, losses 4 and 0 0 0
    for filler in (0, 1e30):
        g, scored = [[[4, filler, filler], [0, 0, 0]]], [[[1, 0, 0], [1, 1, 1]]]
        for micro in (1, 2):
            r = tokens(g, scored, train_micro_batch=micro)
            near([r.log[0]["loss"], r.grads["w"][0], r.final["w"][0]], [1, 1, 0], 1e-15)


@case
def nothing_scored():
    # L04 github.com/OpenRLHF/OpenRLHF/pull/583, nvidia-cosmos/cosmos-rl/pull/155: a microbatch, then a whole
    # step without a scored token
    g = [[[4, 2, 0], [9, 9, 9]], [[1, 1, 1], [1, 1, 1]], [[1, 2, 3], [3, 2, 1]]]
    scored = [[[1, 1, 1], [0, 0, 0]], [[0] * 3] * 2, [[1, 0, 0], [0, 0, 1]]]
    r = tokens(g, scored, "--save", "ck", "--save-every", 1)
    near([r.log[0]["loss"], r.log[0]["grad_norm"]], [2, 2], 1e-15)
    same([line["updated"] for line in r.log], [True, False, True])
    same([line["updates"] for line in r.log], [1, 1, 2])
    same([line["skipped"] for line in r.log], [0, 1, 1])
    same([line["samples"] for line in r.log], [2, 4, 6])
    for f in "model.safetensors", "optimizer.safetensors":
        same(bytes_of("ck/step_00000001/" + f), bytes_of("ck/step_00000002/" + f))
    near([r.log[2]["loss"], r.final["w"][0]], [-1, 1 - 2 - 1], 1e-15)
    assert "no label counts" in r.stdout


ON_TWO = ["--mesh", "dp=2", "--map", "batch -> dp"]


def ranks(g, scored, *options, **settings):
    """the same on two ranks, each with half of every microbatch"""
    flat = [x for step in g for sample in step for x in sample], [x for step in scored for sample in step for x in sample]
    shape = (len(g), len(g[0]), 1, 3)
    save("b", {"g": reals(shape, flat[0]), "labels": ints(shape, [0 if s else -100 for s in flat[1]])})
    text = TOKENS + "parallel { mesh dp = 1 }"
    how = {"train_steps": len(g), "train_global_batch": len(g[0]), **settings}
    return run(compile(text, *floats("f64"), *ON_TWO, **how), "--batches", "b", *options)


@case
def mean_over_ranks():
    # L03 github.com/ml-explore/mlx-lm/pull/1413: 1 and 3 scored tokens on two ranks, losses 4 and 0 0 0
    r = ranks([[[4, 1e30, 1e30], [0, 0, 0]]], [[[1, 0, 0], [1, 1, 1]]])
    near([r.log[0]["loss"], r.grads["w"][0], r.final["w"][0]], [1, 1, 0], 1e-15)
    # L07 github.com/modelscope/FunASR/pull/3472: two microbatches, rank 0 has 1 and 3, rank 1 has 2 and 5; each of the
    # twelve tokens has a twelfth, so the mean is 11 / 4, half of what adding up microbatches makes
    r = ranks([[[1] * 3, [2] * 3, [3] * 3, [5] * 3]], [[[1] * 3] * 4])
    near([r.log[0]["loss"], r.grads["w"][0]], [5.5 / 2] * 2, 1e-15)


@case
def nothing_scored_on_a_rank():
    # L04: one rank without a scored token, then both; from there on, the rest counts as if they had not been
    g = [[[1, 2, 3], [9, 9, 9]], [[1, 1, 1], [1, 1, 1]], [[1, 2, 3], [3, 2, 1]]]
    scored = [[[1, 1, 1], [0, 0, 0]], [[0] * 3] * 2, [[1, 0, 0], [0, 0, 1]]]
    r = ranks(g, scored, "--save", "ck", "--save-every", 1, "--check-replicas", 1)
    near([r.log[0]["loss"], r.log[0]["grad_norm"]], [2, 2], 1e-15)
    same([line["updated"] for line in r.log], [True, False, True])
    for f in "model.safetensors", "optimizer.safetensors":
        same(bytes_of("ck/step_00000001/" + f), bytes_of("ck/step_00000002/" + f))
    near([r.log[2]["loss"], r.final["w"][0]], [-1, 1 - 2 - 1], 1e-15)
    assert r.stdout.count("no label counts") == 1


@case
def several_denominators():
    # two losses with marks of their own: the step is left out only where a denominator is 0, and then whole
    text = (
        TOKENS.replace("""-> loss: f32[] {""", """-> (loss: f32[], other: f32[]) {""")
        .replace("""train {""", """train { minimize = loss + 0.5 * other;""")
        .replace("  loss =", "  other = stepmean[batch, seq](g * g * w, where = labels == 1)\n  loss =")
    )
    save(
        "b",
        {
            "g": reals((2, 2, 1, 3), range(12)),
            "labels": ints((2, 2, 1, 3), [0, 0, -100, 1, 1, -100, 0, 0, 0, 0, 0, 0]),
        },
    )
    r = run(compile(text, *floats("f64"), train_steps=2), "--batches", "b")
    near([r.log[0]["loss"], r.log[0]["other"], r.grads["w"][0]], [2, 12.5, 2 + 0.5 * 12.5], 1e-15)
    same([line["updated"] for line in r.log], [True, False])


@case
def partial_window():
    # L06 github.com/ZebangCheng/Emotion-LLaMA/pull/140: five samples of a step of four. Here a step is always
    # whole: what does not divide is refused, nothing is dropped in silence, and a mean over a window of 5 is
    # over 5
    text = """
dim batch
model M(g: [batch]) -> loss: f32[] {
  param w: [] ~ zeros
  loss = stepmean[batch](g * w)
}
train { micro_batch = 1; global_batch = 4; steps = 1; optimizer = sgd(lr = 1) }
"""
    save("five", {"g": reals((1, 5, 1), [1, 2, 3, 4, 10])})
    save("four", {"g": reals((1, 4, 1), [1, 2, 3, 4])})
    plan = compile(text, *floats("f64"))
    near(run(plan, "--batches", "four").final["w"], [-2.5], 1e-15)
    refused(MTRUN, [plan, "--batches", "five"], "5 samples per step, the plan's global_batch is 4", 65)
    near(
        run(compile(text, *floats("f64"), train_global_batch=5), "--batches", "five").final["w"], [-4], 1e-15
    )
    said = compile(text, code=1, train_micro_batch=2, train_global_batch=5)
    assert "global_batch is 5" in said and "a multiple of 2" in said, said


@case
def mean_is_not_stepmean():
    # an output that is a plain mean is averaged over the step's microbatches
    text = TOKENS.replace(
        "stepmean[batch, seq](g * w, where = labels != -100)",
        "mean[batch, seq](g * w, where = labels != -100)",
    )
    save(
        "b",
        {
            "g": reals((1, 2, 1, 3), [4, 9, 9, 0, 0, 0]),
            "labels": ints((1, 2, 1, 3), [0, -100, -100, 0, 0, 0]),
        },
    )
    r = run(compile(text, *floats("f64")), "--batches", "b")
    near([r.log[0]["loss"], r.grads["w"][0]], [2, 2], 1e-15)


main()
