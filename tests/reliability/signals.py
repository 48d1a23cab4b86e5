"""A run that is asked to stop, once and twice, or to save; memory, threads and time that are short.

usage: signals.py MTC MTRUN MTDATA [CASE…]      FAULTS: faults.c as a shared library"""

import random, resource, signal, stat, time
from mt import *

FAULTS = os.path.abspath(os.environ["FAULTS"])
STEPS = 400

MODEL = """
config { steps = 400 }
dim batch
dim i = 30
dim h = 20
model M(x: [batch, i]) -> loss: f32[] {
  z = Linear[h, i](dropout(gelu(Linear[i, h](x) as up), 0.2)) as down
  loss = stepmean[batch](sum[i]((z - x) ^ 2))
}
train { micro_batch = 4; global_batch = 8; steps = 400
        optimizer = adamw(lr = 1e-2); schedule = cosine(warmup = 2, min = 1e-3) }
"""


def setup():
    save("b", {"x": reals((STEPS, 2, 4, 30), [math.sin(0.37 * i) for i in range(STEPS * 8 * 30)], "F32")})
    plan, feed = compile(MODEL), ["--batches", "b", "--threads", "1"]
    call([MTRUN, plan, *feed, "--save", "quiet", "--final", "qf", "--log-json", "qlog"])
    return plan, feed


def timeless(log):
    return [
        {k: v for k, v in line.items() if k not in ("tokens_per_second", "seconds", "gflops", "memory")} for line in log
    ]


@case
def stop_and_go_on():
    # T4: the step is finished, a checkpoint saved, status 75; again and again, until it is done: the same
    # bits as without a stop
    plan, feed = setup()
    options = "--save ck --resume auto --keep 2 --log-every 1 --log-json log --final f".split()
    rng, stops, went = random.Random(1), 0, -1
    while True:
        p = start([MTRUN, plan, *feed, *options])
        if after_lines(p, rng.randrange(1, 60)):
            p.send_signal(rng.choice([signal.SIGTERM, signal.SIGINT, signal.SIGUSR1]))
        out, err = p.communicate(timeout=120)
        if p.returncode == 0:
            break
        same(p.returncode, 75, err)
        step, total = map(
            int,
            re.search(
                r"stopped after step (\d+) of (\d+), saved: run it again with --resume auto", err
            ).groups(),
        )
        assert went < step < total == STEPS and os.path.exists("ck/step_%08d/MANIFEST" % step), err
        went, stops = step, stops + 1
    assert stops > 2, stops
    assert bytes_of("f") == bytes_of("qf")
    for name in ("model.safetensors", "optimizer.safetensors", "state.json", "MANIFEST"):
        assert bytes_of("ck/step_%08d/%s" % (STEPS, name)) == bytes_of(
            "quiet/step_%08d/%s" % (STEPS, name)
        ), name
    same(timeless(log("log")), timeless(log("qlog")))


@case
def killed_and_resumed():
    # the log has each step once, although those after the checkpoint were made twice; other lines stay
    plan, feed = setup()
    options = "--save ck --save-every 50 --resume auto --log-every 1".split()
    for line in ("", "a note of mine\n", '{"my": "note"}\n'):
        p = start([MTRUN, plan, *feed, *options, "--log-json", "log"])
        assert after_lines(p, 80)
        p.kill()
        p.communicate(timeout=60)
        with open("log", "a") as f:
            f.write(line)
        if os.path.exists("ck/step_%08d" % STEPS):
            break
    os.chmod("log", 0o640)
    os.symlink("log", "link")
    with open("log", "a") as f:
        f.write('{"step":399,"loss":0.1')  # killed while it wrote
    call([MTRUN, plan, *feed, *options, "--log-json", "link"])
    lines = bytes_of("log").decode().splitlines()
    assert os.path.islink("link") and os.stat("log").st_mode & 0o777 == 0o640
    notes = [line for line in lines if not line.startswith('{"step"')]
    same(notes, ["a note of mine", '{"my": "note"}'])
    same(timeless([json.loads(line) for line in lines if line not in notes]), timeless(log("qlog")))
    same([f for f in os.listdir(".") if f.endswith(".tmp")], [])
    # from an older checkpoint: what came after it goes; appended to where nothing has to go; a new run empties it
    call([MTRUN, plan, *feed, "--resume", "ck/step_00000100", "--log-json", "log", "--steps", "101"])
    lines = bytes_of("log").decode().splitlines()
    same([json.loads(line)["step"] for line in lines if line not in notes], list(range(101)))
    inode = os.stat("log").st_ino
    call([MTRUN, plan, *feed, "--steps", "101", "--save", "ck2"])
    call([MTRUN, plan, *feed, "--resume", "ck2/step_00000101", "--log-json", "log"])
    same(os.stat("log").st_ino, inode)
    call([MTRUN, plan, *feed, "--steps", "1", "--log-json", "log"])
    same([line["step"] for line in log("log")], [0])


@case
def stop_without_a_place_to_save():
    plan, feed = setup()
    p = start([MTRUN, plan, *feed, "--log-every", "1"])
    assert after_lines(p, 3)
    p.send_signal(signal.SIGTERM)
    err = p.communicate(timeout=60)[1]
    same(p.returncode, 75, err)
    assert re.search(r"stopped after step \d+ of 400; nothing is saved without --save DIR\n", err), err


@case
def second_signal():
    # T4: while the save hangs, a second signal ends the run at once, by that signal's number; what was saved
    # before is whole
    plan, feed = setup()
    call([MTRUN, plan, *feed, "--save", "ck", "--steps", 5])
    for first, second in ((signal.SIGTERM, signal.SIGTERM), (signal.SIGTERM, signal.SIGINT)):
        p = start(
            [MTRUN, plan, *feed, "--save", "ck", "--resume", "auto", "--log-every", "1"],
            env=dict(os.environ, LD_PRELOAD=FAULTS, FAULT_IN="/ck", FAULT="9:wait"),
        )
        assert after_lines(p, 2)
        p.send_signal(first)
        assert any("waiting" in p.stderr.readline() for _ in range(3))  # after what the signal is answered with
        begin = time.monotonic()
        p.send_signal(second)
        p.communicate(timeout=60)
        same(p.returncode, 128 + second)
        assert time.monotonic() - begin < 30
        r = call([MTRUN, plan, *feed, "--save", "ck", "--resume", "auto", "--steps", 6])
        assert "checkpoint, step 5" in r.stdout
        for f in os.listdir("ck"):
            if f == "step_00000006":
                subprocess.check_call(["rm", "-r", "ck/" + f])


@case
def save_now():
    # SIGUSR2: a checkpoint after the step, and on
    plan, feed = setup()
    p = start([MTRUN, plan, *feed, "--save", "ck", "--log-every", "1", "--final", "f"])
    assert after_lines(p, 3)
    p.send_signal(signal.SIGUSR2)
    err = p.communicate(timeout=120)[1]
    same(p.returncode, 0, err)
    steps = sorted(f for f in os.listdir("ck") if f.startswith("step"))
    assert len(steps) == 2 and "step_00000003" <= steps[0] and steps[1] == "step_%08d" % STEPS, steps
    assert bytes_of("f") == bytes_of("qf")
    call([MTRUN, plan, *feed, "--resume", "ck/" + steps[0], "--final", "f"])
    assert bytes_of("f") == bytes_of("qf")


@case
def memory_that_is_not_there():
    # T9: a plan that needs more than the system gives: status and sizes, no signal
    text = MODEL.replace("dim i = 30", "dim i = 30000").replace("dim h = 20", "dim h = 20000")
    plan = compile(text, "--no-objects", plan="big.plan")
    save("x", {"x": reals((1, 2, 4, 30000), [0] * 240000, "F32")})
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
    p = call([MTRUN, plan, "--batches", "x", "--steps", 1, "--threads", 1], code=None, preexec_fn=limit)
    if "AddressSanitizer" in p.stderr:  # which needs more than that for itself
        return
    assert p.returncode == 69 and re.search(
        r"the plan needs [\d.]+ MiB more memory, the system refused: .*limited to 3145728 KiB \(ulimit -v\)", p.stderr
    ), (p.returncode, p.stderr[-500:])
    refused(MTRUN, [plan, "--batches", "x", "--threads", 5000], "at most 4096", 64)
    # whatever the limit, it ends: with the right values, or with a status and a line (an OpenBLAS without
    # room for its work areas tries for ever)
    plan, feed = setup()
    for mib in (4, 8, 16, 32, 48, 64, 80, 96, 128, 160, 192, 256, 384, 512, 600, 640, 700):
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))
        p = call(
            [MTRUN, plan, *feed[:2], "--threads", 2, "--steps", 2], code=None, preexec_fn=limit, timeout=100
        )
        told(mib, p, "mtrun")
    for mib in (4, 6, 8, 9, 10, 11, 12, 14, 16, 24, 64):
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))
        for options in ([], ["--no-objects"]):
            p = call([MTC, "compile", "m.mt", "-o", "new", *options], code=None, preexec_fn=limit, timeout=100)
            told(mib, p, "mtc")
            assert p.returncode == 0 or not os.path.exists("new")


def told(mib, p, name):
    """memory is refused: with the status for what is not there, and the limit"""
    if (p.returncode == 127 and "loading shared libraries" in p.stderr) or "Sanitizer" in p.stderr:
        return
    limit = "the address space of this process is limited to %d KiB (ulimit -v)" % (mib << 10)
    assert p.returncode == 0 or (
        p.returncode == 69 and p.stderr.startswith(name + ": ") and limit in p.stderr.splitlines()[0]
    ), (mib, p.returncode, p.stderr[-500:])


@case
def log_that_cannot_be_written():
    plan, feed = setup()
    if os.path.exists("/dev/full"):
        p = call([MTRUN, plan, *feed, "--log-json", "/dev/full", "--save", "ck"], code=74)
        assert "/dev/full" in p.stderr, p.stderr
        with open("/dev/full", "w") as out:
            p = subprocess.run([MTRUN, plan, *feed, "--log-every", "1"], stdout=out, stderr=subprocess.PIPE, text=True)
        assert p.returncode == 74 and "writing the output" in p.stderr, (p.returncode, p.stderr)
    os.mkdir("folder")
    os.mkfifo("pipe")
    for option in (
        "--final",
        "--grads",
        "--log-json",
    ):  # told at the start, not after days; what is no file is not replaced by one
        for path in "no/folder/x", "folder", "pipe" if option != "--log-json" else "folder":
            p = refused(MTRUN, [plan, *feed, option, path], path, 73)
            assert "step 0" not in p.stdout, p.stdout
    assert os.path.isdir("folder") and stat.S_ISFIFO(os.stat("pipe").st_mode)
    refused(MTRUN, [plan, *feed, "--trace", "no/folder/x"], "no/folder/x", 73)
    # a plan may go down a pipe or into a device; a pipe that nobody reads is an error
    p = call([MTC, "compile", "m.mt", "-o", "pipe"], code=73, timeout=60)
    assert "cannot write pipe" in p.stderr, p.stderr
    reader = subprocess.Popen(["wc", "-c"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    p = subprocess.run([MTC, "compile", "m.mt", "-o", "/proc/self/fd/1"], stdout=reader.stdin)
    reader.stdin.close()
    same([p.returncode, int(reader.stdout.read()) > 1000], [0, True])
    reader.wait()


@case
def nothing_over_what_is_read():
    # outputs that would replace the run's own plan or data, or each other, are refused; nothing is touched
    plan, feed = setup()
    inputs = {name: open(name, "rb").read() for name in [plan, *[f for f in os.listdir(".") if os.path.isfile(f)]]}
    os.symlink(plan, "other.plan")
    for option in "--final", "--grads", "--trace", "--profile-json", "--log-json":
        refused(MTRUN, [plan, *feed, option, plan], "would overwrite the plan", 64)
        refused(MTRUN, [plan, *feed, option, "other.plan"], "would overwrite the plan", 64)
        data = feed[1] + ".idx" if feed[0] == "--data" else feed[1]
        refused(MTRUN, [plan, *feed, option, "./" + data], "would overwrite what %s reads" % feed[0], 64)
    refused(MTRUN, [plan, *feed, "--final", "same", "--log-json", "same"], "--final and --log-json write the same file", 64)
    refused(MTRUN, [plan, *feed, "--save", plan], "not a folder", 73)
    for name, was in inputs.items():
        assert open(name, "rb").read() == was, name


@case
def files_that_may_not_grow():
    # ulimit -f: a write fails as on a full disk, is told with the file's name, and nothing of the file stays
    def limited(kib, *argv):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (kib << 10, kib << 10))
        p = call(argv, code=74, preexec_fn=limit)
        assert "File too large" in p.stderr and argv[-1] in p.stderr, p.stderr
        return p

    def everything():
        return sorted(os.path.join(folder, name) for folder, _, names in os.walk(".") for name in names)

    plan, feed = setup()
    big = compile(MODEL.replace("dim i = 30", "dim i = 300").replace("dim h = 20", "dim h = 200"), plan="big.plan")
    save("bb", {"x": reals((2, 2, 4, 300), [0.5] * 4800, "F32")})
    write("t.txt", "the quick brown fox " * 20000)
    before = everything()
    limited(8, MTC, "compile", "m.mt", "--no-objects", "-o", "new")
    limited(8, MTDATA, "prepare", "t.txt", "-o", "new")
    limited(80, MTDATA, "prepare", "t.txt", "-o", "new")
    write("lines.txt", "a\n" * 2000)  # its index is larger than its tokens
    call([MTDATA, "prepare", "--format", "lines", "t.txt", "-o", "new"])
    was = bytes_of("new.idx"), bytes_of("new.bin")
    limited(16, MTDATA, "prepare", "--format", "lines", "lines.txt", "-o", "new")
    same((bytes_of("new.idx"), bytes_of("new.bin")), was)
    os.remove("new.idx"), os.remove("new.bin"), os.remove("lines.txt")
    for option in ("--final", "--grads", "--save"):
        limited(200, MTRUN, big, "--batches", "bb", "--threads", "1", "--steps", "2", option, "new" + option)
    limited(200, MTRUN, plan, *feed, "--trace", "new")
    same(everything(), before)
    limited(60, MTRUN, plan, *feed, "--log-json", "log")  # whose lines stay
    assert bytes_of("log").count(b"\n") > 50
    # the C compiler's files, and a kernel's object on its way into memory
    env = dict(os.environ, XDG_CACHE_HOME=os.path.abspath("cache"))
    for kib in (1, 8, 12, 16, 20):
        p = call(
            [MTC, "compile", "m.mt", "-o", "new"],
            code=None,
            env=env,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (kib << 10, kib << 10)),
        )
        assert p.returncode in (0, 74) and ("File too large" in p.stderr) == (p.returncode != 0), p
        same([f for f in os.listdir("cache/mt/kernels") if not re.fullmatch("[0-9a-f]{32}\\.so", f)], [])
    p = call([MTRUN, plan, *feed], code=74, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    assert "writing a kernel object to" in p.stderr, p.stderr


main()
