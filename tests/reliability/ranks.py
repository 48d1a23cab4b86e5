"""Ranks of one machine: the same training on any mesh, checkpoints that go from one mesh to another, and ranks that
die or hang.

usage: ranks.py MTC MTRUN MTDATA [CASE…]"""

import glob, random, re, resource, shutil, signal, time
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
        alike(run(compiled(model, mesh), *feed, "--check-replicas", 1), one, what=mesh)


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
def by_the_order_of_tokens():
    # what goes by the order of tokens is right where the tokens of a rank are two chunks of them: places that are given
    # out first come, first served; documents by a running sum; positions by a rename; a window of a split dim
    feed = data()
    full = dict(capacity=0.6)
    one = run(compiled("moe", "", **full), *feed)
    assert one.log[-1]["loss"] != run(compiled("moe", ""), *feed).log[-1]["loss"]
    alike(run(compiled("moe", "cp=2", **full), *feed), one, what="capacity")
    text = """
config { hidden = 8; ctx = 12 }
dim batch
dim seq = ctx
dim kseq = seq
dim pos = ctx
dim embed = hidden
dim vocab = 257
dim window = 3
dim nth = 4
model M(tokens: i32[batch, seq], labels: i32[batch, seq]) -> (loss: f32[]) {
  e = Embedding[vocab, embed](tokens) as wte
  param wpe: [pos, embed] ~ normal(0.1)
  x = e + rename[pos -> seq](wpe)
  last = split[seq -> nth, window](x)
  x = x + merge[nth, window -> seq](last - mean[window](last))
  k = rename[seq -> kseq](x)
  doc = segments[seq](tokens, 97)
  x = x + attention[seq, kseq, embed](x, k, k, causal = true, where = same_segment[seq, kseq](doc))
  loss = stepmean[batch, seq](cross_entropy[vocab](Linear[embed, vocab](x) as head, labels), where = labels != -100)
}
parallel { map batch -> dp; map seq -> cp }
train { micro_batch = 4; global_batch = 8; steps = 3; clip = 1.0; optimizer = adamw(lr = 1e-2) }
"""
    one = run(compile(text, *floats("f64")), *feed)
    for mesh in ("cp=2", "cp=3"):
        alike(run(compile(text, *floats("f64"), "--mesh", mesh), *feed), one, what=mesh)


@case
def f16():
    # the scale comes down and settles alike on any mesh
    feed = data()
    how = dict(precision_loss_scale="dynamic(initial = 2 ^ 26)", train_steps=12)
    one = run(compiled("gpt2", "", "f16", **how), *feed)
    scales = [l["loss_scale"] for l in one.log]
    assert not one.log[2]["updated"] and one.log[-1]["updated"] and scales[-1] == scales[-2] < 2**26, scales
    for mesh in ("tp=2", "cp=2", "dp=2,tp=2"):
        r = run(compiled("gpt2", mesh, "f16", **how), *feed, "--check-replicas", 1)
        for key in "updated", "loss_scale", "updates", "lr":
            same([l[key] for l in r.log], [l[key] for l in one.log], mesh + " " + key)
        near([l["loss"] for l in r.log], [l["loss"] for l in one.log], 2e-3, mesh)


@case
def context_by_kernel():
    # chunks of 64 and of 128 keys in zigzag order: attention stays a kernel, whose blocks lie in one chunk each
    feed = data()
    for dtype, ctx, tolerance in ("f64", 256, 1e-9), ("f32", 512, 1e-4):
        long = dict(ctx=ctx, maxpos=ctx, train_global_batch=2, train_micro_batch=2, train_steps=2)
        plans = [compiled("gpt2", mesh, dtype, **long) for mesh in ("", "cp=2")]
        kernels = [open(plan, "rb").read().count(b"attention_backward_%s(&" % dtype.encode()) for plan in plans]
        assert kernels[0] == kernels[1] > 0, kernels
        one, two = [run(plan, *feed) for plan in plans]
        alike(two, one, tolerance, "%s, %d tokens" % (dtype, ctx))


@case
def compare():
    # two plans from the same state and samples: equal on two meshes; the first that differs, with its line
    feed = data()
    plans = [compiled("llama", mesh) for mesh in ("dp=2", "tp=2")]
    said = call([MTRUN, "--compare", *plans, *feed, "--steps", 3, "--threads", 1, "--tolerance", "1e-9"]).stdout
    assert said == "equal within 1e-09: 3 steps, 21 gradients, 21 parameters\n", said
    narrow = compiled("llama", "cp=2", "bf16")
    said = call([MTRUN, plans[0], narrow, "--compare", *feed, "--steps", 3], code=1).stdout
    assert re.match(r"(step 0: loss|.*llama.mt:\d+:\d+: after step 0 the gradient of \S+\[\d+\]) is \S+ in llama.dp=2.plan, ", said), said
    # a key's bias has no gradient but rounding, of which adamw makes steps of any length
    plans = [compiled("gpt2", mesh, "f32", train_optimizer="adamw(lr = 1e-3)") for mesh in ("", "dp=2,tp=2")]
    assert call([MTRUN, "--compare", *plans, *feed, "--steps", 3, "--threads", 1]).stdout.startswith("equal within 1e-05: 3 steps")
    decays = compiled("llama", "", train_optimizer="adamw(lr = 1e-2, decay = 0.5)")
    one = compiled("llama", "dp=2", train_optimizer="adamw(lr = 1e-2, decay = 0.1)")
    said = call([MTRUN, "--compare", one, decays, *feed, "--steps", 2, "--threads", 1], code=1).stdout
    assert re.match(r".*llama.mt:\d+:\d+: after step 1 the parameter \S+\[\d+\] is .* apart, \S+ is allowed\n", said), said
    refused(MTRUN, ["--compare", one, *feed], "--compare takes two plans, 1 is given", 64)
    refused(MTRUN, ["--compare", one, decays, *feed, "--final", "f"], "--final", 64)


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


@case
def norms_of_parameters():
    # each tensor of a checkpoint once, whatever part of it a rank has or adds to; together they are the norm of all
    feed = data()
    one = None
    for mesh in ["", "ep=2", "cp=2,tp=2", "dp=2,tp=2"]:
        r = run(compiled("moe", mesh), *feed, "--log-params=2", "--save", "ck" + mesh, "--save-every", 1)
        names = set(r.final)
        for line in r.log:
            for key in "grad_norm/", "param_norm/":
                same({k for k in line if k.startswith(key)}, {key + n for n in names} if line["step"] % 2 == 0 else set(), mesh)
        for line in r.log[::2]:
            near(math.hypot(*(line["grad_norm/" + n] for n in names)), line["grad_norm"], 1e-12, mesh)
            if line["step"]:
                had = load("ck%s/step_%08d/model.safetensors" % (mesh, line["step"]))
                for n in names:
                    near(line["param_norm/" + n], math.hypot(*had[n]), 1e-12, n)
        for n in names:
            near(r.log[0]["grad_norm/" + n], math.hypot(*r.grads[n]), 1e-12, n)
        one = one or r.log
        for a, b in zip(r.log, one):
            for key in b:
                if "_norm" in key:
                    near(a[key], b[key], 1e-9, mesh + " " + key)
    threads = run("moe.dp=2-tp=2.plan", *feed, "--log-params", "--check-replicas", 1, "--ranks", "threads")
    for a, b in zip(threads.log[::2], r.log[::2]):
        same({k: v for k, v in a.items() if "_norm" in k}, {k: v for k, v in b.items() if "_norm" in k})
    p = call([MTRUN, "moe.one.plan", *feed, "--log-params"], code=64)
    assert "it needs --log-json FILE" in p.stderr, p.stderr
    p = call([MTRUN, "moe.one.plan", *feed, "--log-params=0", "--log-json", "l"], code=64)
    assert "K is a number of steps, at least 1" in p.stderr, p.stderr


# the parameter never changes, its momentum is soon twice the gradient
STILL = """
dim batch
dim n = 4
model M(g: [batch, n]) -> loss: f32[] {
  param v: [n] ~ ones
  param w: [n] ~ ones
  loss = stepmean[batch](sum[n](g * (w + 0 * v)))
}
parallel { mesh dp = 1, tp = 1; map batch -> dp; map n -> tp }
train { micro_batch = 1; global_batch = 2; steps = 150000; optimizer = sgd(lr = 0, momentum = 0.5) }
"""
GRADIENT = [777.25, 778.25, 779.25, 780.25]
VALUES = [12345.678, 23456.789, 34567.891, 45678.912]


def places(pid, value):
    """where an f64 lies in the memory that all ranks share"""
    found, bytes = [], struct.pack("<d", value)
    with open("/proc/%d/maps" % pid) as maps, open("/proc/%d/mem" % pid, "rb") as memory:
        for line in maps:
            if "/dev/zero" not in line:
                continue
            begin, end = (int(x, 16) for x in line.split()[0].split("-"))
            memory.seek(begin)
            block = memory.read(end - begin)
            at = block.find(bytes)
            while at >= 0:
                found.append(begin + at)
                at = block.find(bytes, at + 1)
    return found


def corrupted(mesh, value, which, options):
    """a run in which one byte of a value changes in one rank's memory, under it; its exit status and message"""
    plan = compile(STILL, *floats("f64"), "--mesh", mesh, train_micro_batch=2 // ranks(mesh, ("dp",)))
    p = start([MTRUN, plan, "--batches", "b", "--init", "w", "--log-every", "1", "--threads", "1", *options])
    assert after_lines(p, 200), p.communicate()
    for pid in [p.pid, *children(p.pid)]:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(0.1)
    at = places(p.pid, value)
    with open("/proc/%d/mem" % p.pid, "r+b", buffering=0) as memory:
        memory.seek(at[which] + 2)
        byte = memory.read(1)
        memory.seek(at[which] + 2)
        memory.write(bytes([byte[0] ^ 1]))
    for pid in [p.pid, *children(p.pid)]:
        os.kill(pid, signal.SIGCONT)
    out, err = p.communicate(timeout=120)
    return p.returncode, err, len(at)


@case
def a_replica_differs():
    # T7: one byte in one rank. It is said which value, rank and step, and the run ends
    save("b", {"g": reals((150000, 2, 1, 4), GRADIENT * 300000)})
    save("w", {"v": reals((4,), [1] * 4), "w": reals((4,), VALUES)})
    check = ["--check-replicas", "5"]
    for mesh, value, which, count, said in (
        ("dp=2", VALUES[1], 1, 2, "rank 1 has another 'w' than rank 0, which holds the same of it (m.mt:6:3): 1 of 4 "
                                  "stored entries differ; entry 1 is 23456.7"),
        ("dp=2", VALUES[0], 0, 2, "rank 1 has another 'w' than rank 0"),
        ("dp=2,tp=2", VALUES[3], 1, 2, "rank 3 has another 'w' than rank 1, which holds the same of it (m.mt:6:3): 1 of "
                                       "2 stored entries differ; entry 1 is 45678.9"),
    ):  # fmt: skip
        for _ in range(3):  # a rank may have been between reading and writing it
            code, err, places_of_it = corrupted(mesh, value, which, check)
            if code:
                break
        same([code, places_of_it], [70, count], err)
        same(err.count("mtrun: after step "), 1, err)
        assert said in err, err
        assert (int(err.split("mtrun: after step ")[1].split(":")[0]) + 1) % 5 == 0, err
    code, err, _ = corrupted("dp=2", 2 * GRADIENT[2], 1, ["--check-replicas", "1"])
    assert code == 70 and "rank 1 has another 'w:momentum' than rank 0" in err, (code, err)
    # nobody else has what tp splits: nothing to compare
    code, err, places_of_it = corrupted("tp=2", VALUES[2], 0, ["--check-replicas", "1", "--steps", "2000"])
    same([code, err, places_of_it], [0, "", 1])


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(x) for x in f.read().split()]


def until(true, seconds, what):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def left_behind():
    shared = [name for name in os.listdir("/dev/shm") if "mt" in name]
    return sorted(os.listdir(".") + shared + os.listdir("tmp"))


def lose(sig, victim, delay, plan, *options):
    # a signal to one of four ranks some time in a run: the message, once the others have ended
    os.makedirs("tmp", exist_ok=True)
    before = left_behind()
    env = {**os.environ, "TMPDIR": os.path.abspath("tmp")}
    p = start([MTRUN, plan, *options, "--log-every", "1", "--threads", "1"], env=env)
    assert after_lines(p, 2)
    pids = [p.pid] + children(p.pid)
    same(len(pids), 4)
    time.sleep(delay)
    begin = time.monotonic()
    os.kill(pids[victim], sig)
    if not victim:  # it is the one that waits for the others: they end, and it does when it goes on
        until(lambda: all(gone(pid) for pid in pids[1:]), 12, "a rank outlives rank 0")
        os.kill(pids[0], signal.SIGCONT)
    err = p.communicate(timeout=60)[1]
    same(p.returncode, 76, err)
    assert time.monotonic() - begin < 12, err
    assert not any(os.path.exists("/proc/%d" % pid) for pid in pids[1:])
    same(left_behind(), before)
    same(err.count("mtrun:"), 1, err)
    assert err.startswith("mtrun: rank %d " % victim), err
    for rank in range(4):
        does = r"(?:waits for rank \d at |(?:computes|is done), after |was killed by signal 9)"
        same(len(re.findall(r"^  rank %d %s" % (rank, does), err, re.M)), 1, err)
    return err


def asked_at(err):
    # where somebody waits: a collective, its axes and the line of the model, or where all ranks meet
    found = re.findall(r"and rank \d waits at (?:(all_\w+|reduce_\w+) over ([\w ]+), number \d+ of the run, "
                       r"\S*gpt2\.mt:\d+:\d+ \(.*?\)|(a meeting of all ranks));", err)
    same(len(found), 1, err)
    return found[0]


def plan_of_four():
    return compiled("gpt2", "dp=2,tp=2", train_steps=100000), *data()


@case
def a_rank_is_killed():
    # whichever it is and wherever, the others end with 76 and say who waits where; nothing stays
    run = plan_of_four()
    places = set()
    for i in range(6 if not LONG else 300):
        victim = 1 + i % 3
        err = lose(signal.SIGKILL, victim, 0.0037 * i, *run)
        assert "rank %d was killed by signal 9" % victim in err, err
        places.add(asked_at(err))
    assert len(places) > 1, places


@case
def a_rank_is_stopped():
    run = plan_of_four()
    for i in range(5 if not LONG else 200):
        err = lose(signal.SIGSTOP, i % 4, 0.0041 * i, *run, "--timeout", "2")
        assert "rank %d is silent for 2 s (--timeout)" % (i % 4) in err, err
        asked_at(err)


@case
def all_are_stopped():
    # a terminal's stop is nobody's silence: they go on together
    plan, *feed = plan_of_four()
    p = start([MTRUN, plan, *feed, "--log-every", "1", "--threads", "1", "--timeout", "2"], start_new_session=True)
    assert after_lines(p, 2)
    os.killpg(p.pid, signal.SIGSTOP)
    time.sleep(3)
    os.killpg(p.pid, signal.SIGCONT)
    assert after_lines(p, 50)
    p.terminate()
    err = p.communicate(timeout=60)[1]
    same(p.returncode, 75, err)


@case
def threads_as_processes():
    feed = data()
    for model, mesh in (("gpt2", "dp=2,tp=2"), ("llama", "cp=2,tp=2"), ("moe", "ep=2")):
        plan = compiled(model, mesh, "f32")
        a, b = (run(plan, *feed, "--ranks", how) for how in ("processes", "threads"))
        same([l["loss"] for l in a.log], [l["loss"] for l in b.log])
        same(a.final, b.final)
        same(a.grads, b.grads)
    p = start([MTRUN, plan, *feed, "--ranks", "threads", "--steps", "1000000", "--log-every", "1", "--save", "ck"])
    assert after_lines(p, 2)
    same(children(p.pid), [])
    p.terminate()
    same((p.communicate(timeout=60)[1].count("stopped after"), p.returncode), (1, 75))


@case
def overlap_on_and_off():
    # collectives beside computation, and one after the other: the same bits
    feed = data()
    for model, mesh in (("gpt2", "dp=2,tp=2"), ("moe", "dp=2,ep=2"), ("llama", "cp=2,tp=2")):
        runs, starts = [], []
        for word in ("on", "off"):
            plan = compiled(model, mesh, "f32", parallel_overlap=word)
            runs.append(run(plan, *feed, "--link", "1GB/s,1ms"))
            starts.append(beside(plan))
        same([l["loss"] for l in runs[0].log], [l["loss"] for l in runs[1].log])
        same(runs[0].final, runs[1].final)
        same(runs[0].grads, runs[1].grads)
        assert starts[0] > 1 and starts[1] == 0, (model, starts)


def beside(plan):
    # collectives that something is computed beside
    n = started = 0
    for line in bytes_of(plan).decode(errors="replace").splitlines():
        words = line.split()
        if len(words) < 2 or not line.startswith("  "):
            continue
        if words[0] == "coll":
            started = True
        elif words[0] == "wait" and "comm" not in words:
            started = False
        elif started and words[0] in ("kernel", "gemm"):
            n, started = n + 1, False
    return n


@case
def link():
    # each meeting takes its time, which nobody spends computing; the results stay
    feed = data()
    plan = compiled("gpt2", "dp=2", "f32", parallel_bucket=4096)
    fns = bytes_of(plan).decode(errors="replace").split("\nfn ")[1:]
    step = [f for f in fns if f.split()[1] in ("micro", "update")]
    collectives = sum(len(re.findall(r"^  coll (?!.* and )", f, re.M)) for f in step)
    assert collectives > 10, step
    near_one, before = run(plan, *feed), resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    far = run(plan, *feed, "--link", "1GB/s,20ms")
    seconds, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    assert all(l["seconds"] >= 0.02 * collectives for l in far.log[1:]), (collectives, far.log)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < seconds / 2
    slow = run(plan, *feed, "--link", "100KB/s,0s")
    assert slow.log[-1]["seconds"] > far.log[-1]["seconds"] / 20
    for other in (far, slow):
        same([l["loss"] for l in near_one.log], [l["loss"] for l in other.log])
        same(near_one.final, other.final)


@case
def wrong_words():
    for link in ("1GB/s", "1GB/s,", ",1ms", "1,1ms", "-1GB/s,1ms", "1GB/s,1", "0GB/s,1ms", "1GB/s,1ms ", "nanGB/s,1ms", "1e-3B/s,0s", "1GB/s,1e5s"):
        refused(MTRUN, ["p.plan", "--data", "x", "--link", link], "--link '%s': RATE,LATENCY" % link, 64)
    refused(MTRUN, ["p.plan", "--data", "x", "--ranks", "forks"], "--ranks is processes or threads, not 'forks'", 64)
    for seconds in ("0", "-1", "nan"):
        refused(MTRUN, ["p.plan", "--data", "x", "--timeout", seconds], "--timeout", 64)


def messages(code, plan, *options):
    said = call([MTRUN, plan, "--threads", "1", *options], code=code).stderr
    return [l for l in said.splitlines() if l.startswith("mtrun: ")]


def batches(bad=()):
    # 3 steps of 1 microbatch of 4 samples of 3 ids; bad: samples of the second step that have one that is none
    ids = [i % 5 for i in range(3 * 4 * 3)]
    for sample in bad:
        ids[(4 + sample) * 3 + 1] = 9
    save("b", {"ids": ints([3, 1, 4, 3], ids)})
    return "--batches", "b"


@case
def said_once():
    # what all ranks find alike rank 0 says for all; what one has alone it says itself, and the exit code is the same
    feed = data()
    plan = compiled("gpt2", "dp=2,tp=2")
    same(len(messages(66, plan, "--data", "nope")), 1)
    os.mkdir("empty")
    same(len(messages(66, plan, *feed, "--resume", "empty")), 1)
    call([MTRUN, plan, *feed, "--threads", "1", "--save", "ck", "--save-every", "2"])
    with open("ck/step_00000004/model.safetensors", "r+b") as f:
        f.truncate(100)
    passed = messages(0, plan, *feed, "--save", "ck", "--resume", "auto")
    same([len(passed), "100 bytes" in passed[0], "passed over" in passed[1]], [2, True, True])
    plan = compile("""
dim batch
dim seq = 3
dim vocab = 5
dim embed = 4
model M(ids: i32[batch, seq]) -> (loss: f32[]) {
  x = Embedding[vocab, embed](ids) as w
  loss = stepmean[batch, seq](sum[embed](x * x))
}
parallel { map batch -> dp; map vocab -> tp }
train { micro_batch = 4; global_batch = 4; steps = 3; optimizer = sgd(lr = 0.1, momentum = 0) }
""", "--mesh", "dp=4", train_micro_batch=1)
    same(messages(0, plan, *batches()), [])
    for bad in range(4):
        for _ in range(3):
            said = [l for l in messages(65, plan, *batches([bad])) if " is 9, " in l]
            same(len(said), 1, str(said))
            assert said[0].startswith("mtrun: rank %d: " % bad if bad else "mtrun: b: "), said
    call([MTRUN, plan, "--threads", "1", *batches(), "--final", "f"])
    ((name, values),) = load("f").items()
    save("nan", {name: reals([5, 4], [float("nan"), *values[1:]], "F32")})
    err = call([MTRUN, plan, "--threads", "1", *batches(), "--init", "nan"]).stderr
    same(err, "mtrun: warning: the last 3 steps made no update (the gradient is not finite)\n  the first value that is not "
              "finite: nan in '%s' on rank 0, before the step: m.mt:7:7\n" % name)
    said = [l for l in messages(65, plan, *batches([1, 3])) if " is 9, " in l]
    assert 1 <= len(said) <= 2 and all(re.match("mtrun: rank [13]: ", l) for l in said), said


@case
def what_a_rank_has():
    # the first lines tell what is a rank's from what is of all
    feed = data()
    def head(mesh):
        said = call([MTRUN, compiled("gpt2", mesh), *feed, "--steps", "0", "--threads", "1"]).stdout
        return dict((l[2:18].strip(), l[19:]) for l in said.splitlines() if l[2:3].strip())
    one, four = head(""), head("dp=2,tp=2")
    whole, rank = re.fullmatch(r"([\d,]+) in f64, ([\d,]+) on a rank", four["parameters"]).groups()
    same([one["parameters"], "mesh" in one, four["mesh"]], [whole + " in f64", False, "dp=2, tp=2: 4 ranks"])
    whole, rank = (int(n.replace(",", "")) for n in (whole, rank))
    assert whole / 2 <= rank < whole, (whole, rank)
    assert "memory of a rank" in four and "memory" in one and "memory" not in four, four
    assert four["work of a step"].endswith("FLOP on a rank") and one["work of a step"].endswith("FLOP"), four
    same(head("dp=2")["parameters"], one["parameters"])


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
    same(err.count("stopped after step"), 1, err)
    call([MTRUN, plan, *feed, "--steps", step + 1, "--save", "ck", "--resume", "auto", "--threads", "1"])


main()
