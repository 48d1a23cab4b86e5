"""Ranks of one machine: the same training on any mesh, checkpoints that go from one mesh to another, and ranks that
die or hang.

usage: ranks.py MTC MTRUN MTDATA [CASE…]"""

import glob, random, shutil, signal, time
from mt import *

SIZES = dict(hidden=24, layers=2, nheads=4, ctx=12)
TRAIN = dict(
    train_global_batch=8,
    train_steps=4,
    train_clip=1.0,
    train_optimizer__lr=1e-2,
    train_schedule__warmup=1,
    train_schedule__min=1e-3,
)
OF = {
    "gpt2": dict(maxpos=12, nvocab=257, pdrop=0.1),
    "llama": dict(inter=40, nkv=2, headdim=12, nvocab=257),
    "moe": dict(inter=24, nkv=2, headdim=12, nvocab=257, nexp=4, topk=2),
}
MESHES = ["dp=2", "tp=2", "ep=2", "cp=2", "dp=2,tp=2", "cp=2,tp=2"]


def ranks(mesh, axes):
    n = 1
    for axis in mesh.split(",") if mesh else []:
        name, size = axis.split("=")
        n *= int(size) if name in axes else 1
    return n


def compiled(model, mesh, dtype="f64", **more):
    # a microbatch holds the same samples on any mesh: 4 in all
    return compile(
        os.path.join(MODELS, model + ".mt"),
        *floats(dtype),
        *(["--mesh", mesh] if mesh else []),
        plan="%s.%s.plan" % (model, mesh.replace(",", "-") or "one"),
        **{**SIZES, **OF[model], **TRAIN, "train_micro_batch": 4 // ranks(mesh, ("dp", "ep")), **more}
    )


def data():
    rng = random.Random(1)
    return [
        "--data",
        prepare("text", ["".join(rng.choice("abcdefgh ") for _ in range(rng.randrange(5, 60))) for _ in range(40)]),
    ]


def alike(got, want, tolerance=1e-9, what=""):
    for key in ("loss", "grad_norm"):
        near([l[key] for l in got.log], [l[key] for l in want.log], tolerance, what + " " + key)
    for kind in ("grads", "final"):
        a, b = getattr(got, kind), getattr(want, kind)
        assert set(a) == set(b), what
        for name in b:
            near(a[name][2], b[name][2], tolerance, "%s %s of %s" % (what, kind, name))


def on_meshes(model):
    feed = data()
    one = run(compiled(model, ""), *feed)
    for mesh in MESHES:
        alike(run(compiled(model, mesh), *feed), one, what=mesh)


@case
def gpt2():
    on_meshes("gpt2")


@case
def llama():
    on_meshes("llama")


@case
def moe():
    on_meshes("moe")


@case
def same_bits_again():
    # run to run, and whatever the threads
    feed = data()
    plan = compiled("gpt2", "dp=2,tp=2", "f32")
    first = run(plan, *feed)
    for threads in (1, 2):
        again = run(plan, *feed, threads=threads)
        same([l["loss"] for l in again.log], [l["loss"] for l in first.log])
        same(again.final, first.final)


@case
def checkpoints_between_meshes():
    feed = data()
    plans = {mesh: compiled("llama", mesh) for mesh in ("", "dp=2", "tp=2", "dp=2,tp=2")}
    whole = run(plans[""], *feed)
    for a in plans:
        for b in plans:
            shutil.rmtree("ck", ignore_errors=True)
            call([MTRUN, plans[a], *feed, "--steps", 2, "--threads", 1, "--save", "ck"])
            r = run(plans[b], *feed, "--save", "ck", "--resume", "auto")
            near([l["loss"] for l in r.log], [l["loss"] for l in whole.log[2:]], 1e-9, "%s to %s" % (a, b))
            for name in whole.final:
                near(r.final[name][2], whole.final[name][2], 1e-9, name)


@case
def the_same_bytes_on_any_mesh():
    # what is read on one mesh is written by another as the same file
    feed = data()
    plans = [compiled("llama", mesh) for mesh in ("dp=2", "tp=2", "cp=2", "dp=2,tp=2", "")]
    call([MTRUN, plans[0], *feed, "--steps", 1, "--threads", 1, "--save", "a"])
    for i, plan in enumerate(plans):
        call([MTRUN, plan, *feed, "--steps", 1, "--threads", 1, "--resume", "a/step_00000001", "--final", "f%d" % i])
        same(bytes_of("f%d" % i), bytes_of("f0"), plan)
        same(load("f%d" % i), load("a/step_00000001/model.safetensors"), plan)


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(x) for x in f.read().split()]


@case
def a_rank_is_killed():
    # whichever it is, the others end with 76 and say who waits where; no process stays
    feed = data()
    plan = compiled("gpt2", "dp=2,tp=2", train_steps=100000)
    for victim in range(3):
        p = start([MTRUN, plan, *feed, "--log-every", "1", "--threads", "1"])
        assert after_lines(p, 2)
        others = children(p.pid)
        same(len(others), 3)
        begin = time.monotonic()
        os.kill(others[victim], signal.SIGKILL)
        err = p.communicate(timeout=60)[1]
        same(p.returncode, 76, err)
        assert time.monotonic() - begin < 10 and "rank %d" % (victim + 1) in err, err
        assert not any(os.path.exists("/proc/%d" % pid) for pid in others)


@case
def rank_0_is_killed():
    feed = data()
    plan = compiled("gpt2", "dp=2", train_steps=100000)
    p = start([MTRUN, plan, *feed, "--log-every", "1", "--threads", "1"])
    assert after_lines(p, 2)
    others = children(p.pid)
    p.kill()
    p.communicate(timeout=60)
    end = time.monotonic() + 10
    while any(os.path.exists("/proc/%d" % pid) for pid in others):
        assert time.monotonic() < end, "a rank outlives rank 0"
        time.sleep(0.05)


@case
def stopped_together():
    # a signal to all, as of a terminal: they stop after the same step, and go on
    feed = data()
    plan = compiled("gpt2", "dp=2,tp=2", train_steps=100000)
    p = start([MTRUN, plan, *feed, "--log-every", "1", "--threads", "1", "--save", "ck"], start_new_session=True)
    assert after_lines(p, 2)
    os.killpg(p.pid, signal.SIGINT)
    err = p.communicate(timeout=60)[1]
    same(p.returncode, 75, err)
    step = int(glob.glob("ck/step_*")[0][-8:])
    assert "step %d of" % step in err, err
    call([MTRUN, plan, *feed, "--steps", step + 1, "--save", "ck", "--resume", "auto", "--threads", "1"])


main()
