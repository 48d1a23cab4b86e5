"""Gradients of several ranks: reduced where they lie, in buckets of any size, the optimizer's state and more shared out;
what a plan needs of memory falls by what is said, results stay.

usage: zero.py MTC MTRUN MTDATA [CASE…]"""

import shutil
from mt import *

SIZES = dict(hidden=32, layers=3, nheads=4, ctx=16, maxpos=16, nvocab=251, pdrop=0)


def planned(plan):
    """bytes of each block of a plan's memory"""
    out = {}
    with open(plan, "rb") as f:
        for line in f:
            words = line.split()
            if words[:1] == [b"memory"]:
                out[words[1].decode()] = int(words[2])
            if words[:1] == [b"source"]:
                break
    return out


@case
def reduced_where_they_lie():
    # two ranks of one sample need no more memory for a step than one rank of one sample: sums are made in place
    memory = {}
    for mesh in ("dp=1", "dp=2"):
        plan = compile(
            os.path.join(MODELS, "gpt2.mt"), "--no-objects", "--mesh", mesh,
            **{**SIZES, "train_micro_batch": 1, "train_global_batch": 2, "parallel_zero": 0}
        )
        memory[mesh] = planned(plan)
    for block in ("params", "copies", "grads", "moments", "activations"):
        one, two = memory["dp=1"][block], memory["dp=2"][block]
        assert two <= one + 4096, (block, one, two)



TRAIN = dict(train_micro_batch=2, train_global_batch=8, train_steps=3, train_clip=1.0, train_optimizer__lr=1e-2,
             train_schedule__warmup=1, train_schedule__min=1e-3)


def compiled(level, mesh="dp=2", dtype="f32", *options, **more):
    return compile(os.path.join(MODELS, "gpt2.mt"), *floats(dtype), "--mesh", mesh, *options, plan="zero%d.%s.plan" % (level, dtype),
                   **{**SIZES, **TRAIN, "parallel_zero": level, **more})


def data():
    return ["--data", prepare("text", "".join(chr(97 + i * i % 23) for i in range(4000)))]


def equal(a, b, what):
    for key in ("loss", "grad_norm"):
        same([l[key] for l in a.log], [l[key] for l in b.log], what + " " + key)
    assert a.grads == b.grads and a.final == b.final, what


@case
def levels_agree():
    # 0 and 1 add up the gradients of a step once, 2 and 3 those of each microbatch: then bit for bit
    feed = data()
    for mesh in ("dp=2", "cp=2,tp=2"):
        r = [run(compiled(level, mesh, nvocab=256), *feed) for level in range(4)]
        equal(r[3], r[2], mesh + ": 3 and 2")
        same(r[1].grads, r[0].grads, mesh)
        for level in 1, 2, 3:
            for key in "loss", "grad_norm":
                near([l[key] for l in r[level].log], [l[key] for l in r[0].log], 1e-5, "%s %d" % (mesh, level))


@case
def checkpoints_between_levels():
    # written at one level, read at another: the same parameters, and the same steps from there
    feed = data()
    plans = [compiled(level, dtype="bf16", nvocab=256) for level in range(4)]
    call([MTRUN, plans[0], *feed, "--steps", 1, "--threads", 1, "--save", "a"])
    for level, plan in enumerate(plans):
        call([MTRUN, plan, *feed, "--steps", 1, "--threads", 1, "--resume", "a/step_00000001", "--final", "f%d" % level])
        same(load("f%d" % level), load("a/step_00000001/model.safetensors"), plan)
    wholes = [run(plan, *feed) for plan in plans]
    for a in range(4):
        shutil.rmtree("ck", ignore_errors=True)
        call([MTRUN, plans[a], *feed, "--steps", 1, "--threads", 1, "--save", "ck"])
        for b in range(4):
            on = run(plans[b], *feed, "--resume", "ck/step_00000001")
            near([l["loss"] for l in on.log], [l["loss"] for l in wholes[b].log[1:]], 1e-3, "%d to %d" % (a, b))


@case
def memory_falls():
    # all dims divide by the ranks: moments and masters at 1, gradients at 2, what is read of parameters at 3
    def memory(level, mesh, dtype):
        return planned(compiled(level, mesh, dtype, "--no-objects", nvocab=256, hidden=64, layers=6, train_micro_batch=1))

    for dtype, mesh, ranks in ("bf16", "dp=2", 2), ("f32", "dp=4", 4):
        m = [memory(level, mesh, dtype) for level in range(4)]
        master = "params" if dtype == "bf16" else None
        read = "copies" if dtype == "bf16" else "params"
        for block, first in (("moments", 1), (master, 1), ("grads", 2), (read, 3)):
            for level in range(4) if block else ():
                want = m[0][block] if level < first else m[0][block] / ranks
                assert abs(m[level][block] - want) <= 64 * 200, (dtype, mesh, block, level, m[level][block], want)
        # parts lie in their variables; from 2 on a gradient is whole beside what it is scattered to, at 3 parameters
        # are whole one layer at a time
        large = 64 * 256 * 4
        for level, more in (1, 4096), (2, 3 * large), (3, 4 * large + m[0][read] / 6):
            assert m[level]["activations"] <= m[0]["activations"] + more, (dtype, mesh, level, m)


def meetings(plan):
    """of the sums of gradients in the last microbatch; sums"""
    with open(plan, "rb") as f:
        lines = [l.split() for l in f.read().split(b"binary")[0].split(b"\n") if l.startswith(b"  coll ")]
    sums = [l for l in lines if b"last" in l]
    return sum(b"and" not in l for l in sums), len(sums)


@case
def buckets_agree():
    # the same bits whatever is reduced together; a meeting for each gradient, for several, for all
    feed = data()
    for level in 0, 1:
        runs, met = [], []
        for bucket in "1", "6000", "25 MiB":
            plan = compiled(level, nvocab=256, parallel_bucket=bucket)
            runs.append(run(plan, *feed))
            met.append(meetings(plan))
        equal(runs[1], runs[0], "6000")
        equal(runs[2], runs[0], "25 MiB")
        assert met[0][0] == met[0][1] > met[1][0] > met[2][0] == 1, met
        assert met[0][1] == met[1][1] == met[2][1], met


def is_bf16(x):
    return struct.pack(">f", x)[2:] == b"\0\0"


@case
def sent_in_bf16():
    # what is summed up between ranks is rounded once, and the interpreter does the same
    feed = data()
    for level in 0, 1, 2:
        whole = run(compiled(level, nvocab=256), *feed)
        half = run(compiled(level, nvocab=256, train_global_batch=8 if level < 2 else 4, precision_grad_reduce="bf16"), *feed)
        # a bias whose part does not lie in one piece is reduced beside its variable
        values = [x for name, t in half.grads.items() for x in t if level != 1 or not name.endswith("c_attn.bias")]
        assert all(map(is_bf16, values)) and any(values), level
        assert not all(is_bf16(x) for t in whole.grads.values() for x in t)
        near(half.log[0]["loss"], whole.log[0]["loss"], 1e-2)
        if level < 2:
            near(half.log[0]["grad_norm"], whole.log[0]["grad_norm"], 4e-3)


@case
def explained():
    # what a rank stores of each kind, and what it would without
    def line(level):
        out = call([MTC, "explain", os.path.join(MODELS, "gpt2.mt"), *floats("bf16"), "--mesh", "dp=2",
                    *sets(**{**SIZES, **TRAIN, "parallel_zero": level, "nvocab": 256})]).stdout
        return next(l for l in out.split("\n") if l.startswith("  zero"))

    parts = ["moments", "parameters", "gradients", "compute copies"]
    for level, shared in enumerate(([], parts[:2], parts[:3], parts)):
        text = line(level)
        assert "%d, bucket 25.0 MiB; on a rank" % level in text, text
        for part in parts:
            half = re.search(part + r" ([0-9.]+) KiB of ([0-9.]+) KiB", text)
            assert bool(half) == (part in shared), (part, text)
            assert not half or abs(float(half[1]) * 2 - float(half[2])) <= 1, text


@case
def settings_are_checked():
    bad = [("parallel.zero=4", "MT0335", "at most 3, got 4"), ("parallel.zero=0.5", "MT0335", "whole number"),
           ("parallel.zero=all", "MT0331", "a number, got all"), ("parallel.bucket=0", "MT0335", "at least 1, got 0")]
    for setting, code, text in bad:
        p = call([MTC, "check", os.path.join(MODELS, "gpt2.mt"), "--set", setting], code=1)
        assert code in p.stderr and text in p.stderr, p.stderr


main()
