# common.py -- what step.py, kernels, compile and start share: the build, plans, data, the rates of this machine, tables.
import array, glob, json, os, random, struct, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def die(code, message):
    print("%s: %s" % (os.path.basename(sys.argv[0]), message), file=sys.stderr)
    sys.exit(code)


def say(message):
    print(message, file=sys.stderr, flush=True)


class Build:
    """The programs of a build folder."""

    def __init__(self, folder):
        self.folder = os.path.abspath(folder or os.path.join(ROOT, "build"))
        self.mtc, self.mtrun, self.rates = (
            os.path.join(self.folder, p) for p in ("mtc", "runtime/mtrun", "bench/rates")
        )
        for program in self.mtc, self.mtrun, self.rates:
            if not os.access(program, os.X_OK):
                die(66, "%s is not there: meson setup build && ninja -C build, or --build FOLDER" % program)


def run(command, env=None, text=None):
    p = subprocess.run(command, input=text, capture_output=True, text=True, errors="replace", env=env)
    if p.returncode:
        die(70, "%s\nexit code %d\n%s" % (" ".join(command), p.returncode, (p.stderr or p.stdout)[-2000:]))
    return p.stdout


# ---- GPT-2 -----------------------------------------------------------------------------------------------------------
class Gpt2:
    def __init__(self, layers, hidden, heads, vocab, positions):
        self.layers, self.hidden, self.heads, self.vocab, self.positions = layers, hidden, heads, vocab, positions
        self.padded = (vocab + 127) // 128 * 128  # as stored, by us and by the peer

    def params(self):
        c = self.hidden
        return (self.vocab + self.positions) * c + self.layers * (12 * c * c + 13 * c) + 2 * c

    def linear(self):
        """Linear layers: name, how many, in, out."""
        c, n = self.hidden, self.layers
        return [
            ("c_attn", n, c, 3 * c),
            ("attn.c_proj", n, c, c),
            ("c_fc", n, c, 4 * c),
            ("mlp.c_proj", n, 4 * c, c),
            ("head", 1, c, self.vocab),
        ]


MODELS = {
    "124M": Gpt2(12, 768, 12, 50257, 1024),
    "baby": Gpt2(6, 384, 6, 256, 256),
    "tiny": Gpt2(2, 64, 2, 256, 64),
}


class Case:
    """MODEL:BxT, as in 124M:4x64: a model, samples in a step, tokens in a sample."""

    def __init__(self, text):
        try:
            self.name, size = text.split(":")
            self.batch, self.tokens = (int(x) for x in size.split("x"))
            self.model = MODELS[self.name]
            assert self.batch > 0 and 0 < self.tokens <= self.model.positions
        except (ValueError, KeyError, AssertionError):
            die(64, "'%s' is no case: MODEL:BxT, as in 124M:4x64; MODEL is one of %s" % (text, ", ".join(MODELS)))
        self.text = text

    def compile(self, build, folder, precision, steps, more=()):
        m, plan = self.model, os.path.join(folder, "%s-%s.plan" % (self.text.replace(":", "-"), precision))
        configs = dict(
            hidden=m.hidden,
            layers=m.layers,
            nheads=m.heads,
            ctx=self.tokens,
            maxpos=m.positions,
            nvocab=m.vocab,
            pdrop=0,
        )
        settings = {
            "train.micro_batch": self.batch,
            "train.global_batch": self.batch,
            "train.steps": steps,
            "train.schedule.warmup": 0,
            "train.clip": 0,
            "precision.compute": precision,
        }
        run(
            [build.mtc, "compile", os.path.join(ROOT, "models/gpt2.mt"), "-o", plan]
            + [x for k, v in configs.items() for x in ("-D", "%s=%s" % (k, v))]
            + [x for k, v in settings.items() for x in ("--set", "%s=%s" % (k, v))]
            + list(more)
        )
        return plan


# ---- plans and data --------------------------------------------------------------------------------------------------
def plan_text(path):
    """The lines of a plan's text part up to its kernels, as lists of words."""
    lines = []
    with open(path, "rb") as f:
        for line in f:
            if line.startswith((b"kernel ", b"gemm ", b"event ", b"fn ")):
                break
            lines.append(line.decode(errors="replace").split())
    return lines


def write_tokens(prefix, vocab, count=1 << 18):
    """Random tokens in one document, as mtdata writes them (runtime/indexed.h)."""
    tokens = array.array("H" if vocab <= 1 << 16 else "i", random.Random(1).choices(range(vocab), k=count))
    if sys.byteorder != "little":
        tokens.byteswap()
    with open(prefix + ".bin", "wb") as f:
        f.write(tokens.tobytes())
    with open(prefix + ".idx", "wb") as f:
        f.write(
            b"MMIDIDX\0\0"
            + struct.pack("<QBQQ", 1, 8 if tokens.itemsize == 2 else 4, 1, 2)
            + struct.pack("<iqqq", count, 0, 0, 1)
        )


# ---- what this machine reaches ---------------------------------------------------------------------------------------
def copy_mib():
    """Arrays much larger than the last cache, and not more than a sixteenth of the memory."""
    cache, memory = 0, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    for path in glob.glob("/sys/devices/system/cpu/cpu0/cache/index*/size"):
        with open(path) as f:
            size = f.read().strip()  # "32768K"
        cache = max(cache, int(size[:-1]) * {"K": 1 << 10, "M": 1 << 20}.get(size[-1:], 0))
    return max(64, min(max(256 << 20, 2 * cache), memory // 16) >> 20)


class Rates:
    """The best rates seen so far. A product is first measured in every way, then in those that came near the best."""

    def __init__(self, build, threads, seconds=0.05):
        self.command = [build.rates, "--threads", str(threads), "--seconds", str(seconds)]
        self.ways = {}  # product -> way -> GFLOP/s
        self.copies = {}  # way -> GB/s

    def measure(self, products, copy=0):
        products = list(dict.fromkeys(products))
        lines = []
        for p in products:
            near = self.ways.get(p, {})
            near = [w for w in near if near[w] > 0.85 * max(near.values())]
            lines.append(p + " " + ",".join(near))
        out = [
            json.loads(line)
            for line in run(self.command + ["--copy", str(copy)], text="\n".join(lines) + "\n").splitlines()
        ]
        if copy:
            self.keep(self.copies, out.pop(0)["copy"])
        for p, result in zip(products, out):
            self.keep(self.ways.setdefault(p, {}), result["ways"])

    @staticmethod
    def keep(best, new):
        for way, rate in new.items():
            best[way] = max(best.get(way, 0), rate)

    def product(self, p):
        """GFLOP/s and the way; 0 and "" where no library has it."""
        ways = self.ways.get(p) or {"": 0.0}
        way = max(ways, key=ways.get)
        return ways[way], way

    def copy(self):
        return max(self.copies.values(), default=0.0)


def product(formats, layout, m, n, k, batch=1):
    """A line that rates reads. formats: of a and b, and of c."""
    return "%s %s %s %d %d %d %d" % (formats[0], formats[1], layout, m, n, k, batch)


# ---- output ----------------------------------------------------------------------------------------------------------
def table(head, rows, left=1, right=0):
    """Columns as wide as they need to be. The first `left` stand to the left, the others to the right; with `right`,
    the first so many stand to the right, the others to the left."""
    rows = [[str(x) for x in row] for row in [head] + rows]
    wide = [max(len(row[i]) for row in rows) for i in range(len(head))]
    for row in rows:
        print(
            "  ".join(
                x.rjust(w) if (i < right if right else i >= left) else x.ljust(w)
                for i, (x, w) in enumerate(zip(row, wide))
            ).rstrip()
        )


def write_json(path, what):
    try:
        with sys.stdout if path == "-" else open(path, "w") as f:
            f.write(json.dumps(what, indent=1) + "\n")
    except OSError as e:
        die(73, "cannot write %s: %s" % (path, e.strerror))
