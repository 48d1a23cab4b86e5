"""Meshes with ranks as threads, in a build with the thread sanitizer: it finds nothing, and the results are those of
processes. Kernels are compiled with it, too; of the libraries' products gemm.c tells it what they touch.

usage: races.py MTC MTRUN MTDATA [CASE…]"""

import random
from mt import *

os.environ["TSAN_OPTIONS"] = "halt_on_error=1 exitcode=99"
SIZES = dict(hidden=16, layers=2, nheads=2, ctx=8)
TRAIN = dict(
    train_micro_batch=2, train_global_batch=8, train_steps=3, train_clip=1.0, train_schedule__warmup=1,
    precision_compute="f32",
)
OF = {
    "gpt2": dict(maxpos=8, nvocab=257, pdrop=0.1),
    "llama": dict(inter=24, nkv=2, headdim=8, nvocab=257),
    "moe": dict(inter=12, nkv=2, headdim=8, nvocab=257, nexp=4, topk=2),
}


def compiled(model, mesh, **more):
    return compile(
        os.path.join(MODELS, model + ".mt"), "--mesh", mesh, plan="%s.%s.plan" % (model, mesh.replace(",", "-")),
        **{**SIZES, **TRAIN, **OF[model], **more}
    )


def data():
    rng = random.Random(3)
    return ["--data", prepare("text", ["".join(rng.choice("abcdefgh ") for _ in range(40)) for _ in range(60)])]


def clean(model, *meshes):
    feed = data()
    for mesh in meshes:
        plan = compiled(model, mesh)
        a = run(plan, *feed, "--ranks", "threads", threads=2)
        b = run(plan, *feed)
        assert "ThreadSanitizer" not in a.stderr + b.stderr, a.stderr + b.stderr
        same([l["loss"] for l in a.log], [l["loss"] for l in b.log], mesh)
        same(a.final, b.final, mesh)


@case
def gpt2():
    clean("gpt2", "dp=2", "dp=2,tp=2")


@case
def llama():
    clean("llama", "cp=2", "tp=2")


@case
def moe():
    clean("moe", "dp=2,ep=2")


@case
def checkpoint():
    # all that a run does besides: the held-out loss, checkpoints, a trace, the profile
    feed = data()
    plan = compiled("gpt2", "dp=2")
    options = ["--ranks", "threads", "--save", "ck", "--save-every", 1, "--resume", "auto", "--split", "80,20,0"]
    options += ["--eval-every", 1, "--eval-samples", 8, "--trace", "trace.json", "--profile"]
    for steps in (2, 3):
        r = run(plan, *feed, *options, "--steps", steps)
        assert "ThreadSanitizer" not in r.stderr, r.stderr


main()
