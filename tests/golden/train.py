"""Runs of the tools on small models, and what comes out of two of them compared. Needs only Python's own library."""
import array, json, math, os, struct, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CODES = {"F64": "d", "F32": "f", "I32": "i"}


# ---- safetensors ------------------------------------------------------------------------------------------------------
def load(path):
    """name -> flat array"""
    with open(path, "rb") as f:
        data = f.read()
    n, = struct.unpack_from("<Q", data)
    tensors = {}
    for name, t in json.loads(data[8:8 + n]).items():
        if name != "__metadata__":
            begin, end = t["data_offsets"]
            tensors[name] = array.array(CODES[t["dtype"]], data[8 + n + begin:8 + n + end])
    return tensors


def save(path, tensors):
    """tensors: name -> (dtype, shape, values)"""
    header, body = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        values = array.array(CODES[dtype], values).tobytes()
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(values)]}
        body += values
    header = json.dumps(header).encode()
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + body)


# ---- one run ----------------------------------------------------------------------------------------------------------
def call(argv):
    p = subprocess.run(argv, capture_output=True, text=True)
    if p.returncode:
        raise RuntimeError("%s\nexit status %d\n%s%s" % (" ".join(argv), p.returncode, p.stdout[-2000:], p.stderr[-2000:]))


def interp(tools, model, options, files):
    call([tools["mtc"], "interp", model, *options, *files])


def compiled(tools, model, options, files):
    call([tools["mtc"], "compile", model, *options, "-o", "run.plan"])
    call([tools["mtrun"], "run.plan", *files])


# the ways to run a model text
RUNNERS = {"interp": interp, "mtrun": compiled}


class Run:
    """The first gradients, the last parameters and the log of a run with `options` in the current folder."""

    def __init__(self, runner, tools, model, options, init, batches, steps=0):
        for name in ("grads.out", "final.out", "log.out"):
            if os.path.exists(name):
                os.remove(name)
        RUNNERS[runner](tools, os.path.join(ROOT, "models", model + ".mt"), options,
                        ["--init", init, "--batches", batches, "--grads", "grads.out", "--final", "final.out", "--log-json", "log.out"] +
                        (["--steps", str(steps)] if steps else []))
        self.grads, self.final = load("grads.out"), load("final.out")
        with open("log.out") as f:
            self.log = [json.loads(line) for line in f]


def precision(dtype):
    """f64 and f32 throughout; bf16 and f16 with f32 masters, gradients and moments; f16 with a scale that none of these
    runs overflows"""
    wide = "f64" if dtype == "f64" else "f32"
    scale = ["--set", "precision.loss_scale=1024"] if dtype == "f16" else []
    return scale + ["--set", "precision.compute=" + dtype, "--set", "precision.params=" + wide, "--set", "precision.grads=" + wide]


# ---- comparison -------------------------------------------------------------------------------------------------------
# relative: of outputs and rates, of norms, of gradients and parameters
TOLERANCE = {"f64": (1e-9, 1e-9, 1e-9), "f32": (1e-4, 1e-3, 1e-3), "bf16": (2e-2, 0.2, 0.2), "f16": (2e-3, 2e-2, 5e-2), "mesh": (1e-10, 1e-10, 1e-10),
             "loss": (2e-2, None, None)}


def differences(got, want, kind):
    """What of `got` is not what `want` (a run in f64) says, a line each. Tensors are compared by the norm of their
    difference. Gradients have a floor, since the bias of keys has a true gradient of 0; where rounding is coarser
    than f64, elements whose true gradient is 0 are left out, since Adam makes whole steps of their noise."""
    output, norm, whole = TOLERANCE[kind]
    bad = []

    def near(what, a, b, tolerance):
        if a is None or not abs(a - b) <= tolerance * abs(b):
            bad.append("%s is %r, not %r" % (what, a, b))

    if len(got.log) != len(want.log):
        return ["%d steps, not %d" % (len(got.log), len(want.log))]
    for a, b in zip(got.log, want.log):
        for key in b:
            if key == "loss" or key == "aux_loss" and norm:
                near("step %d: %s" % (b["step"], key), a.get(key), b[key], output)
            elif key == "lr" or key == "grad_norm" and norm:
                near("step %d: %s" % (b["step"], key), a.get(key), b[key], norm if key == "grad_norm" else 1e-12)
    if not whole:
        return bad
    total = math.hypot(*(math.hypot(*g) for g in want.grads.values()))
    for what, floor in (("grads", 1e-6 * total), ("final", 0)):
        a, b = getattr(got, what), getattr(want, what)
        if set(a) != set(b):
            bad.append("%s: names differ: %s" % (what, sorted(set(a) ^ set(b))))
            continue
        for name in b:
            x, y = a[name], b[name]
            if len(x) != len(y):
                bad.append("%s: %s has %d values, not %d" % (what, name, len(x), len(y)))
                continue
            if kind in ("f32", "bf16", "f16"):
                real = [i for i, g in enumerate(want.grads[name]) if abs(g) > 1e-11 * total]
                x, y = [x[i] for i in real], [y[i] for i in real]
            error, size = math.dist(x, y), math.hypot(*y)
            if not error <= whole * max(size, floor):
                bad.append("%s: %s is off by %.3g of %.3g" % (what, name, error, max(size, floor)))
    return bad


# ---- the test ---------------------------------------------------------------------------------------------------------
def tools_of(argv):
    """the programs by name"""
    return {os.path.basename(path): os.path.abspath(path) for path in argv}


def compared(name, cases):
    """cases: (name, function that lists differences), made one after another; returns those that have some"""
    failed = []
    try:
        for case, compare in cases:
            try:
                bad = compare()
            except RuntimeError as error:
                bad = str(error).split("\n")
            if bad:
                failed.append((name + " " + case, bad))
    except RuntimeError as error:
        failed.append((name, str(error).split("\n")))
    return failed


def report(failed):
    for case, lines in failed:
        print(case)
        for line in lines[:12]:
            print("    " + line)
        if len(lines) > 12:
            print("    and %d more" % (len(lines) - 12))
    sys.exit(1 if failed else 0)
