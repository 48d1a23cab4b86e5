#!/usr/bin/env python3
"""Compares runs with recorded ones of PyTorch in float64 (README.md says what the files hold).

usage: golden.py CASE RUNNER f64|f32|bf16|f16|chunks|meshes|zero|sample N|rest N MTC [MTRUN]

sample: N of the ways to put the model on up to 8 ranks, that have most pairs of what can be chosen; rest: the others"""
import json, math, os, sys, tempfile
from meshes import all_ways, covering
from train import ROOT, Run, compared, differences, load, precision, report, tools_of

CASE, RUNNER, WHAT = sys.argv[1:4]
COUNT = int(sys.argv.pop(4)) if WHAT in ("sample", "rest") else 0
TOOLS = tools_of(sys.argv[4:])
FOLDER = os.path.join(ROOT, "tests", "golden", CASE)       # CASE may be a folder elsewhere

with open(os.path.join(FOLDER, "config.json")) as f:
    config = json.load(f)
MODEL, SIZES, TRAIN = config["case"], config["sizes"], config["train"]

# of config.json -> of the model texts
NAMES = {"layers": "layers", "hidden": "hidden", "heads": "nheads", "kv_heads": "nkv", "headdim": "headdim", "ffn": "inter",
         "vocab": "nvocab", "seq": "ctx", "maxpos": "maxpos", "rope_theta": "theta", "eps": "eps", "experts": "nexp", "topk": "topk", "aux": "auxw"}
MESHES = ["tp=2", "dp=2", "cp=2", "ep=2", "tp=2,dp=2"]
ZERO = {"dp=2": [1, 3], "dp=2,tp=2": [3], "ep=2,dp=2": [2], "cp=2,dp=2": [1]}
if os.environ.get("MT_LONG"):
    ZERO = {mesh: [0, 1, 2, 3] for mesh in ZERO}


class Recorded:
    def __init__(self):
        self.grads, self.final = load(os.path.join(FOLDER, "grads.safetensors")), load(os.path.join(FOLDER, "final.safetensors"))
        with open(os.path.join(FOLDER, "expected.json")) as f:
            self.log = json.load(f)


def options(dtype, micro_batch):
    config = {NAMES[k]: v for k, v in SIZES.items() if k in NAMES}
    if MODEL in ("gpt2", "bert"):
        config = {"maxpos": SIZES["seq"], **config, "pdrop": 0}
    else:
        config = {"headdim": SIZES["hidden"] // SIZES["heads"], **config}
    train = {"micro_batch": micro_batch, "global_batch": SIZES["batch"] * SIZES["micro"], "steps": SIZES["steps"],
             "clip": TRAIN["clip"], "optimizer": "adamw(lr = %r, beta1 = %r, beta2 = %r, eps = %.17g, decay = %r)" % tuple(
                 TRAIN[k] for k in ("lr", "beta1", "beta2", "adam_eps", "weight_decay")),
             "schedule": "cosine(warmup = %d, min = %r)" % (TRAIN["warmup"], TRAIN["min_lr"])}
    out = precision(dtype)
    for k, v in config.items():
        out += ["-D", "%s=%s" % (k, v)]
    for k, v in train.items():
        out += ["--set", "train.%s=%s" % (k, v)]
    return out


def run(dtype, micro_batch, *more, steps=0):
    return Run(RUNNER, TOOLS, MODEL, options(dtype, micro_batch) + list(more),
               os.path.join(FOLDER, "weights.safetensors"), os.path.join(FOLDER, "batches.safetensors"), steps)


def shared_out():
    """what ranks share out of the optimizer's state, gradients and parameters, against the recorded values"""
    recorded = Recorded()
    for mesh, levels in ZERO.items():
        ranks = math.prod(int(axis[3:]) for axis in mesh.split(",") if axis[:2] in ("dp", "ep"))
        # the balance loss of moe is a mean per microbatch: one of as many samples as were recorded, or the same on one rank
        want = recorded if MODEL != "moe" or ranks <= SIZES["batch"] else run("f64", ranks)
        for level in levels:
            options = ["--mesh", mesh, "--set", "parallel.zero=%d" % level]
            yield " ".join(options), lambda: differences(run("f64", max(1, SIZES["batch"] // ranks), *options), want, "f64")
    for dtype, level in ("f32", 3), ("bf16", 1):
        kind = "loss" if dtype == "bf16" and MODEL == "moe" else dtype
        options = ["--mesh", "dp=2", "--set", "parallel.zero=%d" % level]
        yield "%s zero %d" % (dtype, level), lambda: differences(run(dtype, 1, *options), recorded, kind)


def on_meshes():
    """gradients and three steps on every mesh, with sequence parallelism and without, against one rank"""
    one = run("f64", SIZES["batch"], steps=3)
    for mesh in MESHES:
        axes = dict(axis.split("=") for axis in mesh.split(","))
        # the balance loss of moe is a mean per microbatch: there a microbatch holds the recorded number of samples
        micro_batch = SIZES["batch"] // (int(axes.get("dp", 1)) * int(axes.get("ep", 1)) if MODEL == "moe" else 1)
        whole = ["--no-map", "seq"] + (["--map", "seq -> cp"] if "cp" in axes else [])
        for more in [], whole:
            yield " ".join(["--mesh", mesh] + more), lambda: differences(run("f64", micro_batch, "--mesh", mesh, *more, steps=3), one, "mesh")


def on_ways(ways):
    """every loss, norm, gradient and final weight on every mesh, against the recorded ones; now and then in f32 and bf16"""
    recorded, one = Recorded(), {}
    for i, (mesh, _, more) in enumerate(ways):
        ranks = mesh["dp"] * mesh["ep"]
        micro_batch = max(1, SIZES["batch"] // ranks)
        if SIZES["batch"] * SIZES["micro"] % (micro_batch * ranks):
            micro_batch = 1
        want = recorded
        # the balance loss of moe is a mean per microbatch, which may hold more samples here than were recorded
        if MODEL == "moe" and micro_batch * ranks != SIZES["batch"]:
            want = one[ranks] = one.get(ranks) or run("f64", micro_batch * ranks)
        more = more + ["--set", "parallel.zero=%d" % (i % 4)]
        for dtype in ["f64"] + (["f32", "bf16"] if i % 5 == 0 else []):
            kind = "loss" if dtype == "bf16" else dtype
            yield "%s %s" % (dtype, " ".join(more)), lambda: differences(run(dtype, micro_batch, *more), want, kind)


def sampled():
    yield from on_ways(covering(all_ways(MODEL, SIZES), COUNT)[0])


def the_rest():
    ways = all_ways(MODEL, SIZES)
    chosen = covering(ways, COUNT)[0]
    yield from on_ways([w for w in ways if w not in chosen])


def on_one_rank():
    # bf16 picks other experts where two are close, as in random cases, and then only the loss has something to agree on
    kind = "bf16" if WHAT == "f16" and MODEL == "moe" else WHAT
    kind = "loss" if WHAT in ("bf16", "f16") and MODEL == "moe" != CASE else kind
    yield WHAT, lambda: differences(run(WHAT, SIZES["batch"]), Recorded(), kind)


def in_chunks():
    """the head and the loss a few tokens at a time"""
    for tokens in 1, 4, 16:
        yield "chunks of %d" % tokens, lambda: differences(run("f64", SIZES["batch"], "--set", "train.chunk=%d" % tokens), Recorded(), "f64")


WAYS = {"meshes": on_meshes, "sample": sampled, "rest": the_rest, "chunks": in_chunks, "zero": shared_out}
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    failed = compared("%s %s" % (RUNNER, CASE), WAYS.get(WHAT, on_one_rank)())
    os.chdir(ROOT)
report(failed)
