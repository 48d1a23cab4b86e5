#!/usr/bin/env python3
"""Random sizes, weights, batches and settings: compiled runs in f64, f32 and bf16, and the interpreter on a mesh, all
against the interpreter on one rank in f64. A case is its seed.

usage: varied.py MODEL FIRST_SEED COUNT MTC MTRUN"""
import os, random, sys, tempfile
from cases import chosen, write_batches, write_weights
from train import ROOT, Run, compared, differences, precision, report, tools_of

MODEL, FIRST, COUNT = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
TOOLS = tools_of(sys.argv[4:])


def axes(r, c, batch):
    """a mesh of two to six ranks that the sizes allow"""
    heads = c.get("nkv", c["nheads"])
    ff = c.get("inter", 4 * c["hidden"])
    ways = {"tp": [n for n in (2, 3) if heads % n == 0 and ff % n == 0], "cp": [n for n in (2, 3) if c["ctx"] % (2 * n) == 0],
            "dp": [n for n in (2, 3) if batch % n == 0], "ep": [n for n in (2,) if batch % n == 0 and c.get("nexp", n) % n == 0]}
    possible = [(axis, n) for axis in ways for n in ways[axis]]
    if not possible:
        return None
    mesh = dict([r.choice(possible)])
    axis, n = r.choice(possible)
    if r.random() < 0.5 and axis not in mesh and (axis not in ("dp", "ep") or batch % (n * mesh.get("dp", 1) * mesh.get("ep", 1)) == 0):
        mesh[axis] = n
    return mesh


def train_case(seed):
    r = random.Random("%s %d" % (MODEL, seed))
    c = chosen(r, MODEL)
    steps, micro, batch = r.randint(1, 4), r.randint(1, 3), r.choice([1, 2, 3, 4, 6])
    write_weights(r, MODEL, c, "weights")
    write_batches(r, MODEL, c, "batches", steps, micro, batch)
    lr = r.choice([1e-3, 3e-3])
    train = {"global_batch": micro * batch, "steps": steps, "clip": r.choice([1.0, 0.3, 0]), "seed": r.randrange(1 << 30),
             "optimizer": r.choice(["adamw(lr = %r, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, decay = 0.1)" % lr] * 3 +
                                   ["sgd(lr = %r, momentum = 0.9, decay = 0.01)" % lr]),
             "schedule": r.choice(["cosine(warmup = %d, min = 1e-4)" % min(2, steps), "linear(warmup = 1, min = 0)", "constant(warmup = 0)"])}
    mesh = axes(r, c, batch)
    options = [x for k, v in c.items() for x in ("-D", "%s=%s" % (k, v))]
    options += [x for k, v in train.items() for x in ("--set", "train.%s=%s" % (k, v))]

    def run(runner, dtype, micro_batch, *more):
        return Run(runner, TOOLS, MODEL, precision(dtype) + options + ["--set", "train.micro_batch=%d" % micro_batch, *more], "weights", "batches")

    one = run("interp", "f64", batch)
    for dtype in "f64", "f32", "bf16":
        # bf16 picks other experts where two are close, and then only the loss has something to agree on
        kind = "loss" if MODEL == "moe" and dtype == "bf16" else dtype
        yield "mtrun " + dtype, lambda: differences(run("mtrun", dtype, batch), one, kind)
    if mesh:
        ranks = mesh.get("dp", 1) * mesh.get("ep", 1)
        words = ",".join("%s=%d" % x for x in mesh.items())
        yield "interp --mesh " + words, lambda: differences(run("interp", "f64", batch // ranks, "--mesh", words), one, "mesh")


failed = []
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for seed in range(FIRST, FIRST + COUNT):
        failed += compared("%s, seed %d," % (MODEL, seed), train_case(seed))
    os.chdir(ROOT)
report(failed)
