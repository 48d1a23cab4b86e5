"""Parameter files that lie, names that a shell would obey, kernel caches that others share.

usage: formats.py MTC MTRUN MTDATA [CASE…]"""

import random, resource, shutil, stat
from mt import *

MODEL = """
dim batch
dim n = 4
dim m = 3
model M(x: [batch, n]) -> loss: f32[] {
  y = Linear[n, m](x) as l
  loss = stepmean[batch](sum[m](y * y))
}
train { micro_batch = 1; global_batch = 1; steps = 1; optimizer = sgd(lr = 0.1) }
"""
W, B = b"\0\0\x80\x3f" * 12, b"\0\0\0\x40" * 3  # 12 ones, 3 twos


def setup():
    save("b", {"x": reals((1, 1, 1, 4), [1, 2, 3, 4], "F32")})
    return compile(MODEL), ["--batches", "b"]


def tensors(path, header, data=W + B, length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    write(path, struct.pack("<Q", len(text) if length is None else length) + text + data)


def entry(shape, begin, end, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


GOOD = {"l.weight": entry([3, 4], 0, 48), "l.bias": entry([3], 48, 60)}


@case
def lying_headers():
    # F01 github.com/leejet/stable-diffusion.cpp/issues/1876, ml-explore/mlx/pull/3364; F02
    # github.com/ohdearquant/lattice/issues/752; F03 github.com/coreweave/tensorizer/pull/208,
    # ggml-org/llama.cpp/pull/18674
    plan, feed = setup()
    tensors("good", GOOD)
    near(run(plan, *feed, "--init", "good").log[0]["loss"], 3 * 12**2, 1e-6)  # 1 + 2 + 3 + 4 and 2
    many = 2**32
    bad = [
        ("element count overflow", {**GOOD, "l.weight": entry([many, many], 0, 48)}),
        ("element count overflow", {**GOOD, "l.weight": entry([many, many, 0], 0, 48)}),
        ("make 192", {**GOOD, "l.weight": entry([3, 16], 0, 48)}),
        ("make", {**GOOD, "l.weight": entry([2**42 + 1], 0, 48)}),
        ("overlap", {"l.weight": entry([3, 4], 0, 48), "l.bias": entry([3], 36, 48)}),
        ("belong to no tensor", {"l.weight": entry([3, 4], 0, 48), "l.bias": entry([2], 52, 60)}),
        ("behind the last tensor", {"l.weight": entry([3, 4], 0, 48), "l.bias": entry([2], 48, 56)}),
        ("begin <= end", {**GOOD, "l.bias": entry([3], 60, 48)}),
        (
            "duplicate",
            json.dumps(GOOD)[:-1].encode()
            + b', "l.bias": {"dtype": "F32", "shape": [3], "data_offsets": [48, 60]}}',
        ),
        ("MT0263", {**GOOD, "l.weight": entry([4, 3], 0, 48)}),
        ("l.bias is I32", {**GOOD, "l.bias": entry([3], 48, 60, "I32")}),
    ]
    for text, header in bad:
        tensors("bad", header)
        p = refused(MTRUN, [plan, *feed, "--init", "bad"], text, 65)
        assert "bad" in p.stderr
    limit = lambda: resource.setrlimit(
        resource.RLIMIT_AS, (2 << 30, 2 << 30)
    )  # a length that is believed would not fit
    fits = (
        call([MTRUN, "--version"], code=None, preexec_fn=limit).returncode == 0
    )  # a sanitizer wants more for itself
    for length in 2**63, 2**64 - 1, 100_000_001, 4096, 0, 7:
        tensors("bad", GOOD, length=length)
        p = call(
            [MTRUN, plan, *feed, "--init", "bad", "--threads", 1], code=65, preexec_fn=limit if fits else None
        )
        assert "bad: " in p.stderr, p.stderr


@case
def shards_that_lead_away():
    # F05 github.com/huggingface/transformers/issues/47176: a name in the index that is no plain file of the
    # folder is refused, and what it names is not opened: behind it stands a pipe that nobody writes, beside a
    # file that would do
    plan, feed = setup()
    os.makedirs("m/a")
    tensors("x", GOOD)
    os.symlink("../x", "m/link")
    index = lambda name: write(
        "m/model.safetensors.index.json", json.dumps({"weight_map": {"l.weight": name, "l.bias": name}})
    )
    for name in "../x", os.path.abspath("x"), "a/../../x", "link", "x\0", "", ".", "..":
        index(name)
        p = refused(MTRUN, [plan, *feed, "--init", "m"], "m", 65)
        assert name.replace("\0", "") in p.stderr, p.stderr
    shutil.copy("x", "m/x")
    index("x")
    run(plan, *feed, "--init", "m")


NAMES = [
    "m;touch PWNED",
    "$(touch PWNED)",
    "`touch PWNED`",
    "-o",
    'a b"c',
    "it's",
    "100%s%n",
    "x\ny",
    "-",
    "--set",
]


def pwned():
    return [f for _, folders, files in os.walk(".") for f in folders + files if f == "PWNED"]


@case
def names_for_a_shell():
    # F07 github.com/bentoml/OpenLLM/issues/1229, SWivid/F5-TTS/issues/1306: as the file of a model, of a
    # plan, of every output, and as folders. They work, or are refused
    save("b", {"x": reals((1, 1, 1, 4), [1, 2, 3, 4], "F32")})
    for i, name in enumerate(NAMES):
        cache = os.path.abspath("./cache " + name)
        env = dict(
            os.environ,
            XDG_CACHE_HOME=cache if i < 3 or LONG else os.environ["XDG_CACHE_HOME"],
            MT_KEEP_KERNELS="",
        )
        write("./%s.mt" % name, MODEL)
        shutil.copy("b", "./" + name)
        call([MTC, "compile", "./%s.mt" % name, "-o", "./%s.plan" % name], env=env)
        call([MTC, "compile", "--output=./%s.plan" % name, "--", "%s.mt" % name], env=env)
        out = ["./%s%s" % (name, end) for end in (".ck", ".final", ".grads", ".log", ".trace")]
        call(
            [
                MTRUN,
                "./%s.plan" % name,
                "--batches",
                "./" + name,
                "--save",
                out[0],
                "--final",
                out[1],
                "--grads",
                out[2],
                "--log-json",
                out[3],
                "--trace",
                out[4],
                "--profile",
            ],
            env=env,
        )
        json.load(open(out[4]))
        same(len(log(out[3])), 1)
        call(
            [MTRUN, "--batches=./" + name, "--resume=" + out[0] + "/step_00000001", "--init-from-nothing"],
            code=64,
            env=env,
        )
        call([MTRUN, "--batches=./" + name, "--init=" + out[1], "--", "%s.plan" % name], env=env)
        write("./%s.txt" % name, "some text, long enough\n" * 3)
        call([MTDATA, "prepare", "-o", "./" + name, "--", "%s.txt" % name])
        call([MTDATA, "inspect", "./" + name])
    same(pwned(), [])
    assert not os.path.exists("/tmp/x.plan")


@case
def names_in_a_model():
    # F07: parameters, presets and configs called so: never source text, a symbol or a flag
    save("b", {"x": reals((1, 1, 1, 4), [1, 2, 3, 4], "F32")})
    for i, name in enumerate(
        [
            "m;touch PWNED",
            "$(touch PWNED)",
            "-o/tmp/x",
            "a b'c",
            "*/ int main",
            "../../up",
            "%s%n",
            "//",
            "é",
            "a" * 3000,
        ]
    ):
        write("m.mt", MODEL.replace("as l\n", 'as "%s"\n' % name))
        p = call([MTC, "compile", "m.mt", "-o", "p.plan"], code=None)
        assert p.returncode in (0, 1), p
        if p.returncode:
            assert "error MT" in p.stderr, p.stderr
            continue
        r = run("p.plan", "--batches", "b", "--save", "ck%d" % i, "--profile", "--trace", "t")
        same(sorted(r.grads), sorted([name + ".bias", name + ".weight"]))
        json.load(open("t"))
        run("p.plan", "--batches", "b", "--init", "final.out")
        call([MTC, "dump", "m.mt", "--dot"])
        call([MTC, "explain", "m.mt", name])
    call([MTC, "compile", "m.mt", "-D", "$(touch PWNED)=1"], code=1)
    call([MTC, "compile", "m.mt", "--preset", ";touch PWNED"], code=1)
    same(pwned(), [])


def kernels_in(cache):
    folder = os.path.join(cache, "mt", "kernels")
    return sorted(f for f in os.listdir(folder)) if os.path.exists(folder) else []


@case
def one_cache_for_many():
    # F08 github.com/pytorch/torchdynamo/issues/1185, pytorch/pytorch/issues/121122, /91005: eight processes
    # at once compile the same kernels into an empty cache
    save("b", {"x": reals((1, 1, 1, 4), [1, 2, 3, 4], "F32")})
    plan = compile(MODEL, "--no-objects")
    want = None
    for round in range(50 if LONG else 2):
        cache = os.path.abspath("cache%d" % round)
        env = dict(os.environ, XDG_CACHE_HOME=cache)
        many = [
            subprocess.Popen(
                [MTRUN, plan, "--batches", "b", "--threads", "1", "--final", "f%d" % i],
                env=env,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            for i in range(8)
        ]
        for i, p in enumerate(many):
            err = p.communicate(timeout=250)[1]
            same(p.returncode, 0, err)
            want = want or bytes_of("f0")
            assert bytes_of("f%d" % i) == want, "process %d of round %d" % (i, round)
        made = kernels_in(cache)
        assert made and all(re.fullmatch(r"[0-9a-f]{32}\.so", f) for f in made), made  # nothing left over
        same(stat.S_IMODE(os.stat(os.path.join(cache, "mt", "kernels")).st_mode), 0o700)


@case
def planted_kernels():
    # F08: half a file, another's kernels, and a folder that others can write
    save("b", {"x": reals((1, 1, 1, 4), [1, 2, 3, 4], "F32")})
    plan = compile(MODEL, "--no-objects")
    cache = os.path.abspath("cache")
    env = dict(os.environ, XDG_CACHE_HOME=cache)
    go = lambda: call([MTRUN, plan, "--batches", "b", "--threads", 1, "--final", "f"], env=env).stderr
    same(go(), "")
    want, folder, made = bytes_of("f"), os.path.join(cache, "mt", "kernels"), kernels_in(cache)
    right = {f: bytes_of(os.path.join(folder, f)) for f in made}
    for planted in (
        lambda b: b[: len(b) // 2],
        lambda b: b[:200] + bytes([b[200] ^ 1]) + b[201:],
        lambda b: b"",
    ):
        for f, b in right.items():
            write(os.path.join(folder, f), planted(b))
        go()
        assert bytes_of("f") == want and {f: bytes_of(os.path.join(folder, f)) for f in made} == right
    os.chmod(folder, 0o770)
    assert "others can write it" in go() and bytes_of("f") == want
    os.chmod(folder, 0o700)
    shutil.rmtree(cache)
    os.mkdir("elsewhere", 0o700)
    os.mkdir(cache, 0o700)
    os.symlink(os.path.abspath("elsewhere"), os.path.join(cache, "mt"))
    assert "it is a link" in go() and os.listdir("elsewhere") in ([], ["kernels"])


@case
def the_same_plan():
    # whoever compiles, and whatever the cache held, the plan has the same bytes
    write("m.mt", MODEL)
    plans = set()
    for i in range(3):
        env = dict(os.environ, XDG_CACHE_HOME=os.path.abspath("cache%d" % (i // 2)))
        call([MTC, "compile", "m.mt", "-o", "p.plan"], env=env)
        plans.add(bytes_of("p.plan"))
    same(len(plans), 1)


main()
