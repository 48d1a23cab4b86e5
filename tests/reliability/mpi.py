"""Ranks that an mpirun has started: the same bits as ranks that mtrun forks, one start and one end for all.

usage: mpi.py MTC MTRUN MTDATA LIBRARY [CASE…]; LIBRARY: openmpi or mpich. Skipped where there is none."""

import shutil, signal, sys, time

LIBRARY = sys.argv.pop(4)
from mt import *
from traces import check_trace

MPIRUN = shutil.which("mpirun." + LIBRARY)
PLUGIN = os.path.join(os.path.dirname(MTRUN), "libmt_%s.so" % LIBRARY)
if not MPIRUN or not os.path.exists(PLUGIN):
    print("skipped: no %s" % (PLUGIN + ", so this build is without it" if MPIRUN else "mpirun." + LIBRARY + " is installed"))
    sys.exit(77)
# also as root in a container, with more ranks than CPUs, beside others
OPTIONS = {"openmpi": ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"], "mpich": ["-bind-to", "none"]}[LIBRARY]
RANK = {"openmpi": "OMPI_COMM_WORLD_RANK", "mpich": "PMI_RANK"}[LIBRARY]
SIZE = {"openmpi": "OMPI_COMM_WORLD_SIZE", "mpich": "PMI_SIZE"}[LIBRARY]
OUTPUTS = ("log.out", "grads.out", "final.out")


def plan(mesh, model="gpt2", **more):
    batch = 4 // int(mesh[3] if mesh[:2] in ("dp", "ep") else 1)
    if model == "moe":
        more.update(inter=24, nkv=2, headdim=12, nexp=4, topk=2)
    return compile(os.path.join(MODELS, model + ".mt"), *floats("f32"), "--mesh", mesh, plan="%s.%s.plan" % (model, mesh),
                   hidden=24, layers=2, nheads=4, ctx=12, nvocab=257, train_global_batch=8, train_micro_batch=batch,
                   **{"train_steps": 3, "train_clip": 1.0, "train_schedule__warmup": 1, **more})


def data():
    return ["--threads", 1, "--data", prepare("text", ["the %d of many words " % i * 6 for i in range(60)])]


def mpirun(*parts):
    # of (ranks, argument…), one behind the other
    line = [MPIRUN, *OPTIONS]
    for i, (n, *argv) in enumerate(parts):
        line += [":"] * (i > 0) + ["-n", n, MTRUN, *argv]
    return [str(word) for word in line]


def job(line, code):
    """the job's exit; again where mpirun died itself: Open MPI 4's at times does over its own help text, when ranks abort"""
    for _ in range(3):
        p = call(line, code=None)
        if p.returncode >= 0:
            break
    assert p.returncode == code, (p.returncode, p.stderr[-3000:])
    return p


def outputs():
    return [word for pair in zip(("--log-json", "--grads", "--final"), OUTPUTS) for word in pair]


def bits():
    found = [[(l["loss"], l["grad_norm"]) for l in log("log.out")], bytes_of("grads.out"), bytes_of("final.out")]
    for name in OUTPUTS:
        os.remove(name)
    return found


def same_as_forked(n, plan, feed, **more):
    call([MTRUN, plan, *feed, *outputs()])
    want = bits()
    p = call(mpirun((n, plan, *feed, *outputs())), timeout=120, **more)
    assert "ranks            %d, rank 0 by mpirun of" % n in p.stdout, p.stdout
    same(bits(), want, plan)


@case
def the_same_bits():
    feed = data()
    for mesh, model in (("dp=2", "gpt2"), ("tp=2", "gpt2"), ("cp=2", "gpt2"), ("ep=2", "moe")):
        same_as_forked(2, plan(mesh, model), feed)


@case
def the_same_bits_in_small_messages():
    # what has to be cut when it is larger than 2^31 bytes is cut when it is larger than 100
    same_as_forked(4, plan("dp=2,tp=2"), data(), env={**os.environ, "MTRUN_MPI_PIECE": "100"})


@case
def a_checkpoint():
    feed, two = data(), plan("tp=2")
    call([MTRUN, two, *feed, "--steps", 2, "--save", "a"])
    call(mpirun((2, two, *feed, "--steps", 1, "--save", "b")))
    call(mpirun((2, two, *feed, "--steps", 2, "--save", "b", "--resume", "auto")))
    for name in ("model.safetensors", "optimizer.safetensors", "state.json"):
        same(bytes_of("b/step_00000002/" + name), bytes_of("a/step_00000002/" + name), name)


@case
def what_rank_0_says_of_all():
    # norms of parameters; replicas; where the first value that is not finite came from
    feed, two = data(), plan("dp=2,tp=2")
    more = ["--log-params", "--check-replicas", 1, "--log-json", "log.out"]
    norms = lambda: [{k: v for k, v in line.items() if "_norm" in k} for line in log("log.out")]
    call([MTRUN, two, *feed, *more])
    want = norms()
    assert len(want) == 3 and len(want[0]) > 10
    call(mpirun((4, two, *feed, *more)))
    same(norms(), want)
    text = """
dim batch
dim n = 4
model M(g: [batch, n]) -> loss: f32[] {
  param w: [n] ~ ones
  loss = stepmean[batch](log(sum[n](g * w)))
}
parallel { map batch -> dp }
train { micro_batch = 1; global_batch = 4; steps = 2 }
"""
    save("b", {"g": reals((2, 4, 1, 4), ([1] * 12 + [-1] * 4) * 2, "F32")})
    p = job(mpirun((2, compile(text, "--mesh", "dp=2"), "--batches", "b", "--max-skips", 2, "--threads", 1)), 65)
    assert p.stderr.count("nan in microbatch 1 on rank 1, made at m.mt:6:") == 1, p.stderr


@case
def all_have_the_same():
    # another plan on one rank: who has which
    feed, a = data(), shutil.copy(plan("dp=2,tp=2"), "a.plan")
    b = plan("dp=2,tp=2", train_seed=7)
    p = job(mpirun((1, a, *feed), (2, b, *feed), (1, a, *feed)), 65)
    said = re.findall(r"the ranks differ, plan: ranks 0, 3 have ([0-9a-f]{32}), ranks 1, 2 have ([0-9a-f]{32})$", p.stderr, re.M)
    assert len(said) == 1 and said[0][0] != said[0][1], p.stderr


@case
def all_have_the_same_build():
    # a program that is longer by a byte, beside a plugin of its own
    feed, two = data(), plan("dp=2")
    os.mkdir("bin")
    shutil.copy(PLUGIN, "bin")
    write("bin/mtrun", bytes_of(MTRUN) + b" ")
    os.chmod("bin/mtrun", 0o755)
    line = mpirun((1, two, *feed), (1, two, *feed))
    line[len(line) - line[::-1].index(MTRUN) - 1] = os.path.abspath("bin/mtrun")
    p = job(line, 65)
    said = re.findall(r"the ranks differ, build of mtrun: rank 0 has (\S+ \w{16}), rank 1 has (\S+ \w{16})$", p.stderr, re.M)
    assert len(said) == 1 and said[0][0] != said[0][1], p.stderr


@case
def all_have_the_same_pieces():
    feed, two = data(), plan("dp=2")
    line = mpirun((1, two, *feed), (1, two, *feed))
    line[-len(feed) - 2 : -len(feed) - 2] = ["env", "MTRUN_MPI_PIECE=100"]
    p = job(line, 65)
    same(p.stderr.count("the ranks differ, MTRUN_MPI_PIECE: rank 0 has 1073741824, rank 1 has 100\n"), 1, p.stderr)


@case
def all_have_the_same_options():
    # what makes ranks meet; file names may differ
    feed, two = data(), plan("dp=2")
    logged = ["--log-json", "log.out", "--log-params"]
    for name, mine, other, said in [
        ("--steps", [], ["--steps", 2], ("3", "2")),
        ("--eval-every", ["--eval-every", 1], ["--split", "990,10,0"], ("1", "0")),
        ("--eval-only", ["--init", "x", "--eval-only"], ["--init", "x"], ("it", "it not")),
        ("--max-skips", [], ["--max-skips", 1], ("10", "1")),
        ("--save-every", ["--save", "a"], ["--save", "b", "--save-every", 1], ("0", "1")),
        ("--save", ["--save", "c"], [], ("it", "it not")),
        ("--check-replicas", [], ["--check-replicas", 1], ("0", "1")),
        ("--log-params", [*logged], [*logged[:2], "--log-params=2"], ("1", "2")),
        ("--grads", [], ["--grads", "g"], ("it not", "it")),
        ("--final", [], ["--final", "f"], ("it not", "it")),
        ("--trace", ["--trace", "t"], [], ("it", "it not")),
    ]:
        p = job(mpirun((1, two, *feed, *mine), (1, two, *feed, *other)), 65)
        same(p.stderr.count("the ranks differ, %s: rank 0 has %s, rank 1 has %s\n" % (name, *said)), 1, p.stderr)
    call(mpirun((1, two, *feed, "--final", "f0"), (1, two, *feed, "--final", "f1")))
    assert os.path.exists("f0") and not os.path.exists("f1")


@case
def all_begin_with_the_same():
    # as of machines with other files at the same path
    feed, two = data(), plan("dp=2")
    once = [two, *feed, "--save-every", 1]
    call([MTRUN, *once, "--steps", 2, "--save", "a"])
    p = job(mpirun((1, *once, "--save", "a", "--resume", "auto"), (1, *once, "--save", "b", "--resume", "auto")), 65)
    said = re.findall(r"the ranks differ, where they begin: rank 0 has step 2 with checkpoint \w{16}, rank 1 has step 0 with "
                      r"parameters drawn from the seed; checkpoints must lie where all ranks can read them$", p.stderr, re.M)
    same((len(said), os.path.exists("a/step_00000003"), os.path.exists("b")), (1, False, False), p.stderr)
    # the same step of another run
    call([MTRUN, *once, "--steps", 2, "--save", "c", "--init", "a/step_00000002"])
    p = job(mpirun((1, *once, "--save", "a", "--resume", "auto"), (1, *once, "--save", "c", "--resume", "auto")), 65)
    said = re.findall(r"rank 0 has step 2 with checkpoint (\w+), rank 1 has step 2 with checkpoint (\w+);", p.stderr)
    assert len(said) == 1 and said[0][0] != said[0][1], p.stderr
    # parameters of a file, and of another one with the same names and shapes
    a, b = ["--init", "a/step_00000001"], ["--init", "a/step_00000002"]
    p = job(mpirun((1, *once[:-2], *a), (1, *once[:-2])), 65)
    assert re.search(r"rank 0 has step 0 with the parameters \w{16} of --init, rank 1 has step 0 with parameters drawn from the seed$",
                     p.stderr, re.M), p.stderr
    p = job(mpirun((1, *once[:-2], *a), (1, *once[:-2], *b)), 65)
    said = re.findall(r"rank 0 has step 0 with the parameters (\w+) of --init, rank 1 has step 0 with the parameters (\w+) ", p.stderr)
    assert len(said) == 1 and said[0][0] != said[0][1], p.stderr
    # the same in another place is the same
    shutil.copytree("a", "copy")
    call(mpirun((1, *once, "--save", "a", "--resume", "auto"), (1, *once, "--save", "copy", "--resume", "auto")))


@case
def all_have_the_same_data():
    feed, two = data(), plan("dp=2")
    name = feed[-1]
    for folder in ("copy", "other"):
        os.mkdir(folder)
        for end in (".idx", ".bin"):
            shutil.copy(name + end, folder)
    write("other/%s.bin" % name, bytes_of(name + ".bin").replace(b"m", b"n"))
    os.mkdir("longer")
    os.chdir("longer")
    prepare("text", ["the %d of many words " % i * 6 for i in range(61)])
    os.chdir("..")
    with_data = lambda folder: (1, two, *feed[:-1], os.path.join(folder, name))
    call(mpirun(with_data("."), with_data("copy")))
    p = job(mpirun(with_data("."), with_data("other")), 65)
    said = re.findall(r"the ranks differ, what the data's files hold: rank 0 has (\w{16}), rank 1 has (\w{16})$", p.stderr, re.M)
    assert len(said) == 1 and said[0][0] != said[0][1], p.stderr
    p = job(mpirun(with_data("."), with_data("longer")), 65)
    assert re.search(r"the ranks differ, data:\n  rank 0 has order .* has 60 sequences.*,\n  rank 1 has order .* has 61 sequences", p.stderr), p.stderr
    p = job(mpirun(with_data("."), (*with_data("."), "--split", "900,100,0")), 65)
    assert re.search(r"the ranks differ, data:\n  rank 0 has .* split 1,0,0, .*,\n  rank 1 has .* split 900,100,0, ", p.stderr), p.stderr


@case
def another_launcher():
    # variables of one that has not started this process
    p = call([MTRUN, plan("dp=2"), *data()], env={**os.environ, RANK: "1", SIZE: "2"}, code=None)
    assert p.returncode in (64, 69), (p.returncode, p.stderr)
    assert LIBRARY == "openmpi" or "rank 1 of 2" in p.stderr and "rank 0 of 1" in p.stderr, p.stderr


@case
def one_fails():
    # its message, and its exit code for all
    feed, two = data(), plan("dp=2")
    p = job(mpirun((1, two, *feed), (1, two, "--data", "nothing")), 66)
    assert "nothing" in p.stderr, p.stderr


@case
def one_cannot_begin():
    # it ends those that wait for it in the start
    feed, two = data(), plan("dp=2")
    begin = time.monotonic()
    for other, code, said in [
        (["nope.plan", *feed], 66, "nope.plan: No such file"),
        ([two, *feed, "--stps", 2], 64, "--stps"),
        ([two, *feed, "--save-every", 2], 64, "--save-every needs --save DIR"),
        ([plan("dp=2,tp=2"), *feed], 64, "the plan is for 4 ranks"),
    ]:
        for parts in ((1, two, *feed), (1, *other)), ((1, *other), (1, two, *feed)), ((2, *other),):
            p = job(mpirun(*parts), code)
            assert said in p.stderr, p.stderr
    assert time.monotonic() - begin < 100


def beside_one_that_never_comes(*more):
    # rank 1 of 2 is no mtrun; rank 0's process, which waits for it in the start
    p = start(mpirun((1, plan("dp=2"), *data(), *more)) + [":", "-n", "1", "sleep", "30"])
    for _ in range(1000):
        pids = ranks_of(p.pid)
        try:
            if 0 in pids and "libmt_" in bytes_of("/proc/%d/maps" % pids[0]).decode():
                return p, pids[0]
        except (FileNotFoundError, ProcessLookupError):
            pass
        time.sleep(0.02)
    raise AssertionError("rank 0 does not start")


def until_gone(p, pid, seconds):
    # and then the job: MPICH's mpirun waits for the other process
    begin = time.monotonic()
    while not gone(pid) and time.monotonic() - begin < seconds + 10:
        time.sleep(0.05)
    took = time.monotonic() - begin
    p.terminate()
    err = p.communicate(timeout=60)[1]
    assert took < seconds, (took, err)
    return err


@case
def one_never_comes():
    err = until_gone(*beside_one_that_never_comes("--timeout", 2), 6)
    same(err.count("mtrun: rank 0: not all 2 ranks have come to the start in 2 s (--timeout)"), 1, err)


@case
def ended_while_it_starts():
    # nothing to be saved yet
    p, pid = beside_one_that_never_comes()
    time.sleep(1)
    os.kill(pid, signal.SIGTERM)
    err = until_gone(p, pid, 3)
    assert "stopping after this step" not in err, err


@case
def a_trace():
    call(mpirun((4, plan("dp=2,tp=2"), *data(), "--trace", "t.json")))
    check_trace("t.json", [("dp", 2), ("tp", 2)], 3)


@case
def a_trace_of_two_clocks():
    # as of two machines: rank 1's clock is 5000 s ahead
    ahead = ["unshare", *["--user", "--map-root-user"][: 2 * bool(os.geteuid())], "--time", "--monotonic", "5000", "--fork"]
    if not shutil.which("unshare") or os.geteuid() and LIBRARY == "mpich" or subprocess.run([*ahead, "true"], stderr=subprocess.DEVNULL).returncode:
        return print("this system gives no clock of its own")
    two, feed = plan("dp=2"), [str(word) for word in data()]
    one = [MTRUN, two, *feed, "--trace", "t.json"]
    call([MPIRUN, *OPTIONS, "-n", "1", *one, ":", "-n", "1", *ahead, *one])
    check_trace("t.json", [("dp", 2)], 3, apart=50000)


# ---- ranks that are lost ----------------------------------------------------------------------------------------------
def ranks_of(pid):
    found = {}
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            up = int(process)
            with open("/proc/%s/comm" % process) as f:
                mine = f.read().strip() == "mtrun"
            while mine and up not in (0, 1, pid):
                with open("/proc/%d/stat" % up) as f:
                    up = int(f.read().rpartition(")")[2].split()[1])
            if mine and up == pid:
                with open("/proc/%s/environ" % process) as f:
                    found[int(dict(v.split("=", 1) for v in f.read().split("\0") if "=" in v)[RANK])] = int(process)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def running(*more):
    four, feed = plan("dp=2,tp=2", train_steps=50000), data()
    call([MTRUN, four, *feed, "--steps", 1])   # kernels that are compiled: no rank is silent for that
    p = start(mpirun((4, four, *feed, "--log-every", 1, *more)))
    assert after_lines(p, 2)
    pids = ranks_of(p.pid)
    same(sorted(pids), [0, 1, 2, 3])
    return p, pids


def ended(p, pids, seconds):
    begin = time.monotonic()
    err = p.communicate(timeout=60)[1]
    while not all(map(gone, pids.values())):
        assert time.monotonic() - begin < seconds, "a rank stays:\n" + err
        time.sleep(0.05)
    assert time.monotonic() - begin < seconds, err
    return err


def table(err, victim, how):
    said = re.findall(r"rank %d %s, and rank \d waits at (?:\w+ over [\w ]+, number \d+ of the run, \S+gpt2\.mt:\d+:\d+ \(.*?\)"
                      r"|a meeting of all ranks); all ranks end" % (victim, re.escape(how)), err)
    same(len(said), 1, err)
    for rank in set(range(4)) - {victim}:
        same(len(re.findall(r"^  rank %d (waits for rank \d at |computes, after |does not answer)" % rank, err, re.M)), 1, err)


@case
def a_rank_is_silent():
    for victim in (0, 2):
        p, pids = running("--timeout", "3")
        os.kill(pids[victim], signal.SIGSTOP)
        err = ended(p, pids, 3 + 10)
        same(p.returncode, 76, err)
        table(err, victim, "is silent for 3 s (--timeout)")


@case
def a_rank_is_killed():
    # mpirun ends the others then; Open MPI lets them say where they are
    for victim in (0, 3):
        p, pids = running()
        os.kill(pids[victim], signal.SIGKILL)
        err = ended(p, pids, 10)
        assert p.returncode, err
        if LIBRARY == "openmpi":
            assert "rank %d has died" % victim in err, err


@case
def stopped_together():
    # a signal to all, as a batch system sends it: they save after the same step
    p, pids = running("--save", "ck")
    for pid in pids.values():
        os.kill(pid, signal.SIGUSR1)
    err = ended(p, pids, 60)
    same(p.returncode, 75, err)
    step = int(os.readlink("ck/latest")[-8:] if os.path.islink("ck/latest") else open("ck/latest").read().strip()[-8:])
    assert "stopped after step %d of" % step in err, err


main()
