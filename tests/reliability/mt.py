"""Small models through mtc and mtrun. Cases are functions under @case; `main` runs them all and says which
failed.

A case is named by what it shows. Those taken from public bug reports carry that report's address."""

import array, fcntl, json, math, os, re, struct, subprocess, sys, tempfile, traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
from train import ROOT, load, save

LONG = bool(os.environ.get("MT_LONG"))
MTC, MTRUN, MTDATA = (os.path.abspath(path) for path in sys.argv[1:4])
MODELS = os.path.join(ROOT, "models")
os.environ.setdefault("XDG_CACHE_HOME", os.path.join(os.path.dirname(MTC), "cache"))
os.environ["ASAN_OPTIONS"] = "verify_asan_link_order=0:" + os.environ.get(
    "ASAN_OPTIONS", ""
)  # for LD_PRELOAD
cases = []


def case(f):
    cases.append(f)
    return f


def main():
    """every case in a folder of its own; those named on the command line after the tools, or all"""
    failed = 0
    for f in cases:
        if sys.argv[4:] and f.__name__ not in sys.argv[4:]:
            continue
        with tempfile.TemporaryDirectory(prefix="mt-") as folder:
            os.chdir(folder)
            try:
                f()
            except Exception:
                failed += 1
                print("failed: %s" % f.__name__)
                traceback.print_exc(file=sys.stdout)
            os.chdir("/")
    sys.exit(1 if failed else 0)


# ---- programs
# ---------------------------------------------------------------------------------------------------------
def call(argv, code=0, timeout=300, **more):
    """what it printed; `code`: the exit status that is right, None for any"""
    p = subprocess.run(
        [str(a) for a in argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        timeout=timeout,
        **more
    )
    assert code is None or p.returncode == code, "%s\nexit status %d, not %d\n%s\n%s" % (
        argv,
        p.returncode,
        code,
        p.stdout[-3000:],
        p.stderr[-3000:],
    )
    return p


def gone(pid):
    """whether a process has ended, and its parent may not have asked yet"""
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def start(argv, **more):
    """a program that runs beside us; it cannot print much more than we read, so it does not run away"""
    p = subprocess.Popen(
        [str(a) for a in argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        **more
    )
    fcntl.fcntl(p.stdout, 1031, 4096)  # F_SETPIPE_SZ
    return p


def after_lines(p, n):
    """waits until it has printed n steps; False: it ended before"""
    for line in p.stdout:
        n -= line.startswith("step")
        if not n:
            return True
    return False


def sets(**settings):
    """options from train_steps=3, precision_compute="f64" …; a bare upper-case or config name becomes -D"""
    out = []
    for key, value in settings.items():
        block, _, rest = key.partition("_")
        if block in ("train", "precision", "parallel"):
            out += ["--set", "%s.%s=%s" % (block, rest.replace("__", "."), value)]
        else:
            out += ["-D", "%s=%s" % (key, value)]
    return out


def floats(dtype):
    wide = "f64" if dtype == "f64" else "f32"
    return sets(precision_compute=dtype, precision_params=wide, precision_grads=wide)


def compile(text, *options, plan="p.plan", code=0, **settings):
    """a model text, or the name of one of models/, to a plan; the name of the plan"""
    if "\n" in text:
        with open("m.mt", "w") as f:
            f.write(text)
        text = "m.mt"
    p = call([MTC, "compile", text, "-o", plan, *options, *sets(**settings)], code=code)
    return p.stderr if code else plan


def run(plan, *options, code=0, threads=1, **more):
    """mtrun; the result has out, err, and what the files say: log, grads, final"""
    names = ["log.out", "grads.out", "final.out"]
    for name in names:
        if os.path.exists(name):
            os.remove(name)
    r = call(
        [
            MTRUN,
            plan,
            "--threads",
            threads,
            "--log-json",
            names[0],
            "--grads",
            names[1],
            "--final",
            names[2],
            *options,
        ],
        code=code,
        **more
    )
    r.log = log(names[0])
    r.grads = load(names[1]) if os.path.exists(names[1]) else {}
    r.final = load(names[2]) if os.path.exists(names[2]) else {}
    return r


def log(path):
    if not os.path.exists(path):
        return []
    with open(path) as f:
        return [json.loads(line) for line in f]


def refused(program, argv, text, code):
    """exit status and a word of the message; nothing may crash"""
    p = call([program, *argv], code=code)
    assert text in p.stderr, "'%s' expected in:\n%s" % (text, p.stderr)
    return p


# ---- files
# ------------------------------------------------------------------------------------------------------------
def ints(shape, values):
    return ("I32", list(shape), list(values))


def reals(shape, values, dtype="F64"):
    return (dtype, list(shape), list(values))


def bytes_of(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, data):
    with open(path, "wb" if isinstance(data, bytes) else "w") as f:
        f.write(data)


def prepare(name, text, jsonl=False):
    """token files of a text, or of a list of documents; the prefix"""
    if isinstance(text, list):
        write(name + ".jsonl", "".join(json.dumps({"text": t}) + "\n" for t in text))
        call([MTDATA, "prepare", name + ".jsonl", "-o", name])
    else:
        write(name + ".txt", text)
        call([MTDATA, "prepare", name + ".txt", "-o", name])
    return next(f[:-4] for f in sorted(os.listdir(".")) if f.startswith(name) and f.endswith(".idx"))


# ---- comparison
# -------------------------------------------------------------------------------------------------------
def near(got, want, tolerance=1e-6, what=""):
    got, want = list(got) if hasattr(got, "__iter__") else [got], (
        list(want) if hasattr(want, "__iter__") else [want]
    )
    assert len(got) == len(want), "%s: %d values, not %d" % (what, len(got), len(want))
    for i, (a, b) in enumerate(zip(got, want)):
        assert a is not None and abs(a - b) <= tolerance * max(1, abs(b)), "%s[%d] is %r, not %r" % (
            what,
            i,
            a,
            b,
        )


def same(got, want, what=""):
    """equal to the last bit"""
    assert got == want, "%s: %r is not %r" % (what, got, want)
