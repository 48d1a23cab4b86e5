"""The same bits whatever does not belong to the training: run to run, stopped and resumed after every step,
threads, evaluation, measurements; and the same values when a step's samples are cut into other microbatches.

usage: resume.py MTC MTRUN MTDATA [CASE…]"""

import glob, random, shutil
from mt import *

STEPS = 9 if LONG else 5
SIZES = dict(hidden=24, layers=2, nheads=2, ctx=10)
TRAIN = dict(
    train_micro_batch=2,
    train_global_batch=4,
    train_steps=STEPS,
    train_clip=1.0,
    train_optimizer__lr=1e-2,
    train_schedule__warmup=2,
    train_schedule__min=1e-3,
)
OF = {  # sizes beyond SIZES, kind of data
    "gpt2": dict(maxpos=10, nvocab=257, pdrop=0.1),
    "llama": dict(inter=40, nkv=1, headdim=12, nvocab=257),
    "moe": dict(inter=24, nkv=2, headdim=12, nvocab=257, nexp=3, topk=2),
    "bert": dict(inter=40, maxpos=10, nvocab=67, pdrop=0.1),
}
TIMES = ("tokens_per_second", "seconds", "gflops", "memory")  # what a machine does, not what is computed


def compiled(model, dtype, plan="p.plan", **more):
    return compile(
        os.path.join(MODELS, model + ".mt"),
        *floats(dtype),
        plan=plan,
        **{**SIZES, **OF[model], **TRAIN, **more}
    )


def data(model):
    """options that feed the model; what they name is made in this folder"""
    rng = random.Random(1)
    if model != "bert":
        if not os.path.exists("text.jsonl"):
            prepare(
                "text",
                ["".join(rng.choice("abcdefgh ") for _ in range(rng.randrange(5, 60))) for _ in range(40)],
            )
        return ["--data", prepare_name()]
    n, seq, vocab = STEPS * 4, SIZES["ctx"], OF[model]["nvocab"]
    shape = (STEPS, 2, 2, seq)
    save(
        "b",
        {
            "tokens": ints(shape, [rng.randrange(vocab) for _ in range(n * seq)]),
            "segments": ints(shape, [rng.randrange(2) for _ in range(n * seq)]),
            "lengths": ints(shape[:3], [rng.randrange(1, seq + 1) for _ in range(n)]),
            "labels": ints(shape, [rng.choice([-100, rng.randrange(vocab)]) for _ in range(n * seq)]),
        },
    )
    return ["--batches", "b"]


def prepare_name():
    return next(f[:-4] for f in os.listdir(".") if f.endswith(".idx"))


def state(folder):
    """what a checkpoint says of the training: all files but where it came from"""
    return {
        f: bytes_of(os.path.join(folder, f))
        for f in ("model.safetensors", "optimizer.safetensors", "state.json", "MANIFEST")
    }


def checkpoint(folder, step):
    return os.path.join(folder, "step_%08d" % step)


def steps_of(log):
    return [{k: v for k, v in line.items() if k not in TIMES} for line in log]


def without_valid(log):
    return [{k: v for k, v in line.items() if not k.startswith("valid_")} for line in steps_of(log)]


def same_training(model, dtype):
    plan, feed = compiled(model, dtype), data(model)
    whole = run(plan, *feed, "--save", "whole", "--save-every", 1)
    want, lines = {k: state(checkpoint("whole", k)) for k in range(1, STEPS + 1)}, steps_of(whole.log)
    assert len(lines) == STEPS and all(line["updated"] for line in lines)
    assert len({w["model.safetensors"] for w in want.values()}) == STEPS

    def check(what, r, folder, first=0):
        same(without_valid(r.log), lines[first:], "%s: log" % what)
        same(r.final, whole.final, "%s: parameters" % what)
        for name, content in state(checkpoint(folder, STEPS)).items():
            assert content == want[STEPS][name], "%s: %s differs" % (what, name)

    for threads in (1, 2, 3):
        check(
            "%d threads" % threads,
            run(plan, *feed, "--save", "again%d" % threads, threads=threads),
            "again%d" % threads,
        )
    measured = run(plan, *feed, "--save", "measured", "--profile", "--trace", "t", "--log-every", 1)
    check("measured", measured, "measured")
    for k in range(1, STEPS):
        # stopped after k steps, then on; the log goes on where it stopped
        folder = "k%d" % k
        part = run(plan, *feed, "--save", folder, "--steps", k)
        same(steps_of(part.log), lines[:k], "%d steps: log" % k)
        same(state(checkpoint(folder, k)), want[k], "%d steps" % k)
        check(
            "%d + %d" % (k, STEPS - k),
            run(plan, *feed, "--save", folder, "--resume", "auto", threads=1 + k % 3),
            folder,
            k,
        )


def same_values(model):
    """a step's samples in other microbatches, dropout on; the balance loss is a mean per microbatch, so it is off"""
    runs = []
    for micro in (4, 2, 1) if LONG else (4, 1):
        more = dict(auxw=0) if model == "moe" else {}
        plan = compiled(model, "f64", train_micro_batch=micro, **more)
        runs.append(run(plan, *data(model)))
    for r in runs[1:]:
        for a, b in zip(r.log, runs[0].log):
            near([a["loss"], a["grad_norm"]], [b["loss"], b["grad_norm"]], 1e-10, "step %d" % a["step"])
        for what in ("grads", "final"):
            for name, want in getattr(runs[0], what).items():
                near(getattr(r, what)[name], want, 1e-10, what + " " + name)
    assert runs[0].log[0]["loss"] > 1


@case
def gpt2():
    same_training("gpt2", "f32")


@case
def llama():
    same_training("llama", "f32")


@case
def moe():
    same_training("moe", "f32")


@case
def bert():
    same_training("bert", "f32")


@case
def microbatches():
    for model in OF if LONG else ["gpt2"]:
        same_values(model)


@case
def evaluation():
    # github.com/Synthyra/SpeedrunningPLMs/pull/5: evaluating must not touch the training batch that is
    # already loaded
    global STEPS
    was, STEPS = STEPS, 12
    plan, feed = compiled("gpt2", "f32", train_steps=12), data("gpt2") + ["--split", "700,300,0"]
    never, often = run(plan, *feed), run(plan, *feed, "--eval-every", 2, "--save", "ck", "--save-every", 5)
    STEPS = was
    assert sum("valid_loss" in line for line in often.log) == 6
    same(without_valid(often.log), steps_of(never.log), "log")
    same(often.final, never.final, "parameters")
    rest = run(plan, *feed, "--eval-every", 2, "--resume", "ck/step_00000005")
    same(steps_of(rest.log), steps_of(often.log)[5:], "log after resuming")


main()
