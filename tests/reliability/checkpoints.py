"""Saves that are killed, fail, or are damaged afterwards: the newest whole checkpoint is found, and the run
ends as if nothing had been.

usage: checkpoints.py MTC MTRUN MTDATA [CASE…]      FAULTS: faults.c as a shared library"""

import random, shutil, signal
from mt import *

FAULTS = os.path.abspath(os.environ["FAULTS"])
SEED = int(os.environ.get("SEED", 1))
STEPS = 12

MODEL = """
config { n = 40 }
dim batch
dim i = n
dim h = 24
model M(x: [batch, i], y: [batch, i]) -> loss: f32[] {
  z = Linear[h, i](dropout(gelu(Linear[i, h](LayerNorm[i](x) as ln) as up), 0.2)) as down
  loss = stepmean[batch](sum[i]((z - y) ^ 2))
}
precision { compute = f32; params = f32; grads = f32 }
train { micro_batch = 2; global_batch = 4; steps = 12; clip = 1.0
        optimizer = adamw(lr = 1e-2, decay = 0.1); schedule = cosine(warmup = 2, min = 1e-3) }
"""


def setup(n=40, steps=STEPS):
    """the plan, the options that feed it, and the parameters of the run that nothing happens to"""
    save(
        "b",
        {
            k: reals((steps, 2, 2, n), [math.sin((i + 1) * c) for i in range(steps * 4 * n)], "F32")
            for k, c in (("x", 0.7), ("y", 1.3))
        },
    )
    plan, feed = compile(MODEL, n=n, train_steps=steps), ["--batches", "b", "--threads", "1"]
    call([MTRUN, plan, *feed, "--final", "quiet"])
    return plan, feed, bytes_of("quiet")


def faulty(what, argv, **more):
    env = dict(os.environ, LD_PRELOAD=FAULTS, FAULT_IN="/ck", FAULT_COUNT="count")
    if what:
        env["FAULT"] = what
    elif "FAULT" in env:
        del env["FAULT"]
    return call(argv, code=None, env=env, **more)


def whole_steps(folder="ck"):
    """the steps whose checkpoint has all its files with the sizes that its manifest says"""
    steps = []
    for name in os.listdir(folder) if os.path.exists(folder) else []:
        path = os.path.join(folder, name, "MANIFEST")
        if re.fullmatch(r"step_\d+", name) and os.path.exists(path):
            files = [line.split() for line in open(path).read().splitlines()[1:-1]]
            if len(files) == 3 and all(
                os.path.getsize(os.path.join(folder, name, f)) == int(size) for f, size, _ in files
            ):
                steps.append(int(name[5:]))
    return sorted(steps)


def debris(folder="ck"):
    return [f for f in os.listdir(folder) if "tmp" in f]


def goes_on(plan, feed, want, at_least=None, *more):
    """resuming takes the newest whole checkpoint, says which, and ends with the quiet run's parameters"""
    newest = whole_steps()[-1:] or [0]
    p = call(
        [MTRUN, plan, *feed, "--save", "ck", "--save-every", 3, "--resume", "auto", "--final", "f", *more]
    )
    assert bytes_of("f") == want, "resumed at %d: other parameters" % newest[0]
    assert ("checkpoint, step %d" % newest[0] if newest[0] else "seed 1234") in p.stdout, (newest, p.stdout)
    assert at_least is None or newest[0] >= at_least, (newest, at_least)
    assert newest[0] == STEPS or not debris(), debris()
    same(whole_steps()[-1], STEPS)
    return p


@case
def killed_while_saving():
    # C02 github.com/vllm-project/speculators/pull/739: kill -9 at a call of a save; C01 in as far as one rank
    # goes: the name comes last
    plan, feed, want = setup()
    argv = [MTRUN, plan, *feed, "--save", "ck", "--save-every", 3, "--final", "f"]
    for keep in (), ("--keep", 1):
        shutil.rmtree("ck", ignore_errors=True)
        same(faulty(None, argv + list(keep)).returncode, 0)
        total = int(bytes_of("count"))
        assert total > 60, total
        rng = random.Random(SEED)
        for n in range(1, total + 1) if LONG else sorted(rng.sample(range(1, total + 1), 7)):
            for action in ("kill", "torn") if LONG else (rng.choice(["kill", "torn"]),):
                shutil.rmtree("ck", ignore_errors=True)
                p = faulty("%d:%s" % (n, action), argv + list(keep))
                same(p.returncode, -signal.SIGKILL, "call %d of %d" % (n, total))
                said = re.findall(r"step +(\d+)/", p.stdout)
                saved = (
                    int(said[-1]) // 3 * 3 if said else 0
                )  # the save after that step may be the one that died
                goes_on(plan, feed, want, saved - 3, *keep)


@case
def killed_at_random():
    # T1 for one rank: kill -9 after some steps, again and again, until the run ends
    plan, feed, want = setup(steps=150)
    options = "--save ck --save-every 2 --keep 2 --resume auto --log-every 1 --final f --log-json log".split()
    rng, kills = random.Random(SEED), 0
    while True:
        p = start([MTRUN, plan, *feed, *options])
        after_lines(p, rng.randrange(1, 25))
        p.kill()
        p.communicate()
        if p.returncode == 0:
            break
        kills += 1
        assert kills < 200
    assert kills > 1 and bytes_of("f") == want, kills
    by_step = {}
    for line in log("log"):  # a step that was done again had the same values
        line = {k: v for k, v in line.items() if k in ("step", "loss", "grad_norm", "lr", "updates")}
        same(by_step.setdefault(line["step"], line), line)
    same(sorted(by_step), list(range(150)))


@case
def disk_that_fails():
    # C03 github.com/MrNeRF/LichtFeld-Studio/pull/718, NVIDIA-NeMo/Speech/pull/7952, T2: the disk is full, or
    # fails, from some call on: the run stops with status and message, and what was saved before is as it was
    plan, feed, want = setup()
    argv = [MTRUN, plan, *feed, "--save", "ck", "--save-every", 3, "--final", "f"]
    same(faulty(None, argv).returncode, 0)
    total = int(bytes_of("count"))
    rng = random.Random(SEED)
    for n in range(1, total + 1) if LONG else sorted(rng.sample(range(1, total + 1), 8)):
        for action in ("io", "space") if LONG else (rng.choice(["io", "space"]),):
            shutil.rmtree("ck", ignore_errors=True)
            before = {}
            p = faulty("%d:%s" % (n, action), argv)
            if p.returncode == 0:  # only tidying up failed
                assert n > total - 8, (n, total)
                continue
            assert p.returncode in (73, 74) and "ck" in p.stderr, (n, total, p.returncode, p.stderr)
            assert ("No space left" if action == "space" else "Input/output error") in p.stderr, p.stderr
            goes_on(plan, feed, want)


@case
def full_folder():
    # C03 with a limit of the system's own: a file may have 256 KiB, the parameters have more; a write past it
    # would end the process by a signal
    import resource

    plan, feed, want = setup(n=1500)
    call([MTRUN, plan, *feed, "--save", "ck", "--steps", 3])
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, 1 << 18))
    p = call([MTRUN, plan, *feed, "--save", "ck", "--resume", "auto"], code=74, preexec_fn=limit)
    assert "ck/step_00000012.tmp/" in p.stderr and "File too large" in p.stderr, p.stderr
    same(whole_steps(), [3])
    goes_on(plan, feed, want)


@case
def small_disk():
    # C03: a file system of 104 KiB as the folder, where this machine lets us mount one
    plan, feed, want = setup(n=100)
    script = 'mkdir -p ck && mount -t tmpfs -o size=104k none ck || exit 200; "$@"; s=$?; ls ck; exit $s'
    p = call(
        [
            "unshare",
            "-rm",
            "sh",
            "-c",
            script,
            "sh",
            MTRUN,
            plan,
            *feed,
            "--save",
            "ck",
            "--save-every",
            3,
            "--final",
            "f",
        ],
        code=None,
    )
    if p.returncode in (1, 200, 127):
        return
    same(p.returncode, 74)
    assert re.search(
        r"writing ck/step_0000000\d.tmp/\w+.safetensors: No space left on device: \d+ bytes are needed, \d+ are free",
        p.stderr,
    ), p.stderr
    assert "step_00000003" in p.stdout and "tmp" not in p.stdout, p.stdout


def damage(kind, folder):
    """one fault of a checkpoint's folder"""
    model, optimizer = os.path.join(folder, "model.safetensors"), os.path.join(
        folder, "optimizer.safetensors"
    )
    data = bytes_of(model)
    if kind == "cut":
        write(model, data[: len(data) // 2])
    elif kind == "empty":
        write(model, b"")
    elif kind == "bit":
        write(model, data[:-5] + bytes([data[-5] ^ 4]) + data[-4:])
    elif kind == "bit of the header":
        write(optimizer, bytes([bytes_of(optimizer)[0] ^ 1]) + bytes_of(optimizer)[1:])
    elif kind == "swapped":
        write(model, bytes_of(os.path.join(os.path.dirname(folder), "step_00000003", "model.safetensors")))
    elif kind == "gone":
        os.remove(optimizer)
    elif kind == "no manifest":
        os.remove(os.path.join(folder, "MANIFEST"))
    elif kind == "other step":
        state = os.path.join(folder, "state.json")
        write(state, bytes_of(state).replace(b'"step": 9', b'"step": 8'))
    elif kind == "folder":
        os.remove(model)
        os.mkdir(model)
    elif kind == "pipe":
        os.remove(model)
        os.mkfifo(model)


@case
def damaged():
    # T3: a damaged newest checkpoint is told and passed over, or refused when it is asked for by name; files
    # of two steps are never mixed
    plan, feed, want = setup()
    call([MTRUN, plan, *feed, "--save", "good", "--save-every", 3, "--steps", 9])
    for kind in (
        "cut",
        "empty",
        "bit",
        "bit of the header",
        "swapped",
        "gone",
        "no manifest",
        "other step",
        "folder",
        "pipe",
    ):
        shutil.rmtree("ck", ignore_errors=True)
        shutil.copytree("good", "ck")
        damage(kind, "ck/step_00000009")
        p = call([MTRUN, plan, *feed, "--resume", "ck/step_00000009"], code=None, timeout=60)
        assert p.returncode in (65, 66, 74) and "ck/step_00000009" in p.stderr, (kind, p.returncode, p.stderr)
        p = call([MTRUN, plan, *feed, "--save", "ck", "--resume", "auto", "--final", "f"])
        assert (
            "checkpoint, step 6" in p.stdout
            and "ck/step_00000009: incomplete or damaged, passed over" in p.stderr
        ), (kind, p.stderr)
        assert bytes_of("f") == want, kind
    # the folder's `latest` is for people: a stale one, or none, changes nothing
    for latest in "step_00000003\n", None, "../../etc\n":
        shutil.rmtree("ck", ignore_errors=True)
        shutil.copytree("good", "ck")
        os.remove("ck/latest") if latest is None else write("ck/latest", latest)
        p = call([MTRUN, plan, *feed, "--save", "ck", "--resume", "auto", "--final", "f"])
        assert "checkpoint, step 9" in p.stdout and bytes_of("f") == want, latest
    # T8: the order is that of the steps, whatever the clock said
    os.utime("good/step_00000003", (2**32, 2**32))
    os.utime("good/step_00000009", (0, 0))
    assert (
        "checkpoint, step 9"
        in call([MTRUN, plan, *feed, "--save", "good", "--resume", "auto", "--steps", 9]).stdout
    )
    # nothing whole is left: refused, not begun anew
    shutil.rmtree("ck")
    shutil.copytree("good", "ck")
    for step in 3, 6, 9:
        damage("cut", "ck/step_%08d" % step)
    refused(
        MTRUN, [plan, *feed, "--save", "ck", "--resume", "auto"], "none of its 3 checkpoints is complete", 65
    )


@case
def closed_folder():
    # C05 github.com/KempnerInstitute/KempnerForge/issues/49 for one rank: a folder that may not be read is an
    # error, not an empty one
    plan, feed, want = setup()
    call([MTRUN, plan, *feed, "--save", "ck", "--steps", 3])
    os.chmod(".", 0o755)
    user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    for mode in (0, 0o311):
        os.chmod("ck", mode)
        refused_closed = call([MTRUN, plan, *feed, "--save", "ck", "--resume", "auto"], code=None, **user)
        assert refused_closed.returncode == 77 and "ck" in refused_closed.stderr, (
            mode,
            refused_closed.returncode,
            refused_closed.stderr,
        )
    os.chmod("ck", 0o555)
    p = call([MTRUN, plan, *feed, "--save", "ck", "--resume", "auto"], code=None, **user)
    assert p.returncode == 77 and "saving in ck: Permission denied" in p.stderr, (p.returncode, p.stderr)
    os.chmod("ck", 0o755)


@case
def two_savers():
    # T11: a second run in the same folder is refused at its first save, while the first one saves
    plan, feed, want = setup()
    env = dict(os.environ, LD_PRELOAD=FAULTS, FAULT_IN="/ck", FAULT="9:wait")
    first = subprocess.Popen(
        [MTRUN, plan, *feed, "--save", "ck"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )
    assert "waiting" in first.stderr.readline()
    refused(MTRUN, [plan, *feed, "--save", "ck"], "another process is saving", 74)
    first.kill()
    first.wait()
    first.stderr.close()
    goes_on(plan, feed, want)


main()
