#!/usr/bin/env python3
# step.py -- a whole training step of GPT-2: ours, PyTorch's and the floor, measured in turn in one run.
import sys

sys.dont_write_bytecode = True
import argparse, atexit, glob, json, os, re, select, signal, statistics, subprocess, tempfile, time
from common import Build, Case, Rates, copy_mib, die, product, say, table, write_json, write_tokens

BYTES = 28  # a parameter's update: weight, gradient, two moments read; weight and moments written
LEAST = {"f32": 180.0, "bf16": 330.0}
ABOUT = """\
Measures a whole training step of GPT-2 (forward, backward, AdamW; no dropout, no clipping) and prints a table: ours,
PyTorch as found, and the floor. Everything is measured in turn in rounds of one run, so that what else the machine does
hits all alike. Each round lets a process make one step that does not count and then the measured ones; meanwhile the
others are stopped. The figures are medians.
"""
MORE = """\
cases
  MODEL:BxT is B samples of T tokens. Models: 124M (12 layers, 768 wide, 12 heads, 50257 words),
  baby (10.8M: 6, 384, 6, 256), tiny (2, 64, 2, 256: to try this script).

floor
  A step cannot be faster than its matrix products and its update:
    sum over the linear layers and the head, three products each (forward, input's gradient, weight's gradient), of
      FLOP / the best rate in this run of that shape over oneDNN and OpenBLAS, by any way to call them (rates --help),
    attention's six products, the causal half of them, at the mean rate of the others,
    and 28 bytes a parameter / the rate of copying.
  The head's products are measured with its 50257 words padded to 50304.
  --rates prints each product. A run whose mean rate at 1024 tokens and 124M's layers is under {f32:.0f} (f32) or
  {bf16:.0f} (bf16) GFLOP/s is void: the machine was not itself, or is slower than those that the bars are for.

PyTorch
  --torch names the Python that has it. It is tuned: as many OpenMP threads as we have, the OpenMP OpenBLAS where it
  uses OpenBLAS, AVX-512 kernels where the CPU has them, malloc that keeps its memory and asks for huge pages, fused
  AdamW. Modes: eager; compile (torch.compile); for bf16 these are autocast, and eager-pure and compile-pure have
  weights in bf16 with f32 masters. What does not work or has no room in memory is left out, and said.

memory
  The most that a process had (VmHWM), less what it had before the plan's memory was there, or after `import torch`.
  Beside it the plan's own figure.

examples
  bench/step.py                                          all cases, both formats: an hour with PyTorch
  bench/step.py --cases 124M:4x64 --precision f32        some minutes
  bench/step.py --cases baby:8x256 --no-torch --rates    us and the floor, with the rates of each product
  bench/step.py --torch ~/torch/bin/python3 --json step.json
  bench/step.py --cases 124M:4x64 --no-torch --busy 1    how we share a core
""".format(**LEAST)


# ---- the floor -------------------------------------------------------------------------------------------------------
def products(case, precision):
    """name, how many, FLOP of one, and the line for rates, of the linear layers and the head."""
    m, all = case.batch * case.tokens, []
    inner, sums = (precision, precision), (precision, "f32")
    for name, count, k, n in case.model.linear():
        flop, stored = 2.0 * m * k * n, n
        if name == "head":  # its weight is stored [out, in]
            stored = case.model.padded
            lines = (
                product(inner, "NT", m, stored, k),
                product(inner, "NN", m, k, stored),
                product(sums, "TN", stored, k, m),
            )
        else:
            lines = product(inner, "NN", m, n, k), product(inner, "NT", m, k, n), product(sums, "TN", k, n, m)
        all += [(name + suffix, count, flop, line) for suffix, line in zip(("", " dx", " dw"), lines)]
    return all


def attention_flop(case):
    m = case.model
    return 6.0 * case.batch * case.tokens**2 * m.hidden * m.layers


def floor(case, precision, rates):
    """Seconds, or None when a rate is missing."""
    flop = seconds = 0.0
    for _, count, each, line in products(case, precision):
        rate = rates.product(line)[0] * 1e9
        if not rate:
            return None
        flop, seconds = flop + count * each, seconds + count * each / rate
    return seconds + attention_flop(case) * seconds / flop + BYTES * case.model.params() / (rates.copy() * 1e9)


def step_flop(case, precision):
    return sum(count * flop for _, count, flop, _ in products(case, precision)) + attention_flop(case)


def probe(precision):
    return products(Case("124M:1x1024"), precision)[:-3]  # the layers' products, not the head's


def probe_rate(precision, rates):
    """Mean GFLOP/s; 0: not measured."""
    all = [(flop, rates.product(line)[0]) for _, _, flop, line in probe(precision)]
    return sum(f for f, _ in all) / sum(f / r for f, r in all) if all and all[0][1] else 0.0


# ---- who runs --------------------------------------------------------------------------------------------------------
class Failed(Exception):
    pass


class Process:
    def __init__(self, command, env, folder):
        self.errors = tempfile.TemporaryFile(dir=folder)
        self.p = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, env=env, cwd=folder
        )
        self.text = b""  # read and not used yet
        atexit.register(self.end)  # a stopped one would stay for ever

    def line(self):
        while b"\n" not in self.text:
            more = os.read(self.p.stdout.fileno(), 1 << 16)
            if not more:
                self.fail()
            self.text += more
        line, self.text = self.text.split(b"\n", 1)
        return json.loads(line)

    def stop(self):
        """Until it goes on; what it said meanwhile is dropped."""
        self.p.send_signal(signal.SIGSTOP)
        stopped = False
        while not stopped:
            with open("/proc/%d/stat" % self.p.pid) as f:
                stopped = f.read().rpartition(")")[2].split()[0] in "TtZX"
        while select.select([self.p.stdout], [], [], 0)[0]:
            more = os.read(self.p.stdout.fileno(), 1 << 16)
            if not more:
                self.fail()
            self.text += more
        self.text = self.text.rpartition(b"\n")[2]

    def go_on(self):
        self.p.send_signal(signal.SIGCONT)

    def fail(self):
        self.errors.seek(0)
        text = self.errors.read().decode(errors="replace").strip()
        raise Failed("it ended with code %s: %s" % (self.p.wait(), text[-1500:] or "no message"))

    def end(self):
        self.p.kill()
        self.p.wait()


class Ours:
    name = "ours"
    WARM = 2

    def __init__(self, build, plan, data, threads, folder):
        self.process = Process(
            [build.mtrun, plan, "--data", data, "--threads", str(threads), "--log-json", "-"], None, folder
        )
        self.seconds = []
        try:
            for _ in range(self.WARM):
                last = self.process.line()
        except Failed:
            self.process.end()
            raise
        self.process.stop()
        self.memory, self.planned = last["memory"], last["memory_planned"]

    def round(self, steps):
        self.process.go_on()
        self.process.line()  # the step that it was stopped in
        begin = time.monotonic()
        for _ in range(steps):
            last = self.process.line()  # from line to line: all that a step costs
            end = time.monotonic()
            self.seconds.append(max(end - begin, last["seconds"]))  # very short steps' lines come in bunches
            begin = end
        self.process.stop()
        self.memory, self.loss = last["memory"], last["loss"]

    def end(self):
        self.process.end()


class Busy:
    """A process on each of the first cores that does nothing but compute."""

    def __init__(self, count):
        cores = sorted(os.sched_getaffinity(0))[:count]
        self.all = [
            subprocess.Popen([sys.executable, "-c", "import os; os.sched_setaffinity(0, [%d])\nwhile 1: pass" % core])
            for core in cores
        ]
        time.sleep(0.2)

    def end(self):
        for p in self.all:
            p.kill()
            p.wait()


class Torch:
    def __init__(self, found, case, precision, mode, threads, folder):
        m = case.model
        about = dict(
            layers=m.layers,
            hidden=m.hidden,
            heads=m.heads,
            vocab=m.padded,
            below=m.vocab,
            positions=m.positions,
            batch=case.batch,
            tokens=case.tokens,
            precision=precision,
            mode=mode,
            threads=threads,
        )
        self.name = "torch " + mode
        peer = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peer.py")
        self.process = Process([found["python"], peer, json.dumps(about)], dict(os.environ, **found["env"]), folder)
        self.seconds, self.planned = [], None
        try:
            start = self.process.line()
            if "error" in start:
                raise Failed(start["error"])
        except Failed:
            self.process.end()
            raise
        self.before, self.adamw = start["before"], start["adamw"]

    def round(self, steps):
        self.process.p.stdin.write(b"%d\n" % steps)
        self.process.p.stdin.flush()
        last = self.process.line()
        self.seconds += last["seconds"]
        self.memory, self.loss = last["peak"] - self.before, last["loss"]

    def end(self):
        self.process.end()


FIND = """
import json, torch
torch.ones(64, 64) @ torch.ones(64, 64)
maps = open("/proc/self/maps").read()
config = torch.__config__.show()
capability = getattr(getattr(torch.backends, "cpu", None), "get_cpu_capability", None)
print(json.dumps(dict(version=torch.__version__, openblas="openblas" in maps or "libblas" in maps,
  blas="MKL" if "BLAS_INFO=mkl" in config else "OpenBLAS" if "openblas" in maps or "libblas" in maps else "",
  capability=capability() if capability else "")))
"""


def find_torch(python, threads):
    """The version, and the environment that suits it; None and why when it is not there."""
    env = {
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=4294967296"
        ":glibc.malloc.trim_threshold=17179869184",
    }
    try:
        with open("/proc/cpuinfo") as f:
            flags = set(next((line for line in f if line.startswith("flags")), "").split())
    except OSError:
        flags = set()
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags:
        env["ATEN_CPU_CAPABILITY"] = "avx512"

    def ask():
        p = subprocess.run([python, "-c", FIND], capture_output=True, text=True, env=dict(os.environ, **env))
        return json.loads(p.stdout) if p.returncode == 0 else (p.stderr.strip().splitlines() or ["no message"])[-1]

    try:
        found = ask()
        openmp = glob.glob("/usr/lib/*/openblas-openmp/libopenblas.so.0")
        if not isinstance(found, str) and found["openblas"] and openmp:
            env["LD_LIBRARY_PATH"] = os.path.dirname(openmp[0])  # the pthread one fights with OpenMP's threads
            found = ask()
    except (OSError, ValueError) as e:
        found = str(e)
    if isinstance(found, str):
        return None, "no PyTorch in %s: %s" % (python, found)
    return dict(found, python=python, env=env), None


def available():
    with open("/proc/meminfo") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("MemAvailable"))


# ---- a case ----------------------------------------------------------------------------------------------------------
def start(case, precision, o, build, torch, folder):
    """Who takes part, and what was left out and why."""
    data = os.path.join(folder, case.name)
    if not os.path.exists(data + ".idx"):
        write_tokens(data, case.model.vocab)
    plan = case.compile(build, folder, precision, 20 * o.rounds * (o.steps + 2), o.mtc.split())
    who, left_out = [], []
    try:
        who.append(Ours(build, plan, data, o.threads, folder))
    except Failed as e:
        die(70, "%s %s: mtrun: %s" % (case.text, precision, e))
    modes = [] if not torch else [m for m in o.modes if precision == "bf16" or not m.endswith("pure")]
    need = 1.3 * who[0].memory  # of the next one; torch's modes need about the same
    for mode in modes:
        if available() < need:
            left_out.append("torch %s: no room beside the others in memory" % mode)
            continue
        try:
            say("%s %s: starting torch %s" % (case.text, precision, mode))
            who.append(Torch(torch, case, precision, mode, o.threads, folder))
            who[-1].round(0)
            need = max(need, 1.3 * who[-1].memory)
        except Failed as e:
            left_out.append("torch %s: %s" % (mode, str(e).strip().splitlines()[-1]))
            if who[-1].name == "torch " + mode:
                who.pop().end()
    return who, left_out


def beside_busy(ours, o, seconds):
    quiet, other = len(ours.seconds), Busy(o.busy)
    try:
        ours.round(o.steps)
    finally:
        other.end()
    seconds += ours.seconds[quiet:]
    del ours.seconds[quiet:]


def measure(case, precision, o, build, torch, rates, folder):
    who, left_out = start(case, precision, o, build, torch, folder)
    busy = []  # seconds of our steps beside busy processes
    lines = [line for _, _, _, line in products(case, precision)]
    try:
        for i in range(o.rounds):
            say("%s %s: round %d of %d" % (case.text, precision, i + 1, o.rounds))
            turn = i % len(who)
            for w in who[turn:] + who[:turn]:
                w.round(o.steps)
            if o.busy:
                beside_busy(who[0], o, busy)
            rates.measure(lines, copy=o.copy)
    except Failed as e:
        die(70, "%s %s: %s" % (case.text, precision, e))
    finally:
        for w in who:
            w.end()
    results = [
        dict(
            name=w.name,
            ms=[1e3 * s for s in w.seconds],
            median_ms=1e3 * statistics.median(w.seconds),
            memory=w.memory,
            plan_memory=w.planned,
            loss=w.loss,
        )
        for w in who
    ]
    least = floor(case, precision, rates)
    return dict(
        case=case.text,
        precision=precision,
        tokens=case.batch * case.tokens,
        flop=step_flop(case, precision),
        params=case.model.params(),
        floor_ms=least and 1e3 * least,
        copy=rates.copy(),
        results=results,
        busy_ms=[1e3 * s for s in busy],
        left_out=left_out,
        adamw=next((w.adamw for w in who if isinstance(w, Torch)), None),
        products=[
            dict(
                name=name, count=count, line=line, flop=flop, gflops=rates.product(line)[0], way=rates.product(line)[1]
            )
            for name, count, flop, line in products(case, precision)
        ],
    )


def show(r, o):
    print("\n%s  %s  %d threads, median of %d steps" % (r["case"], r["precision"], o.threads, o.rounds * o.steps))

    def row(name, ms, least="", memory="", plan="", each=""):
        return [
            name,
            "%.1f" % ms,
            least,
            "%.0f" % (1e3 * r["tokens"] / ms),
            "%.0f" % (r["flop"] / ms * 1e-6),
            "%.2f" % (r["floor_ms"] / ms) if r["floor_ms"] else "-",
            memory,
            plan,
            each,
        ]

    rows = [row("floor", r["floor_ms"])] if r["floor_ms"] else []
    for x in r["results"]:
        rows.append(
            row(
                x["name"],
                x["median_ms"],
                "%.1f" % min(x["ms"]),
                "%.0f" % (x["memory"] / 2**20),
                "%.0f" % (x["plan_memory"] / 2**20) if x["plan_memory"] else "",
                "%.1f" % (x["memory"] / r["params"]),
            )
        )
    table(["", "ms", "min", "tokens/s", "GFLOP/s", "of floor", "MiB", "plan MiB", "B/param"], rows)
    ours, peers = r["results"][0], r["results"][1:]
    if peers:
        best, small = min(peers, key=lambda x: x["median_ms"]), min(peers, key=lambda x: x["memory"])
        print(
            "%s takes %.2f times our time; %s has %.2f times our memory"
            % (best["name"], best["median_ms"] / ours["median_ms"], small["name"], small["memory"] / ours["memory"])
        )
    if r["busy_ms"]:
        share = ours["median_ms"] / statistics.median(r["busy_ms"])
        print("beside %d busy process%s: %.2f of our rate" % (o.busy, "" if o.busy == 1 else "es", share))
    for line in r["left_out"]:
        print("left out: " + line)
    if not r["floor_ms"]:
        print("no floor: no library here has these products in %s" % r["precision"])
    elif o.rates:
        print()
        table(
            ["product", "layout m n k", "way", "times", "GFLOP/s", "ms"],
            [
                [
                    p["name"],
                    " ".join(p["line"].split()[2:6]),
                    p["way"],
                    p["count"],
                    "%.0f" % p["gflops"],
                    "%.2f" % (p["count"] * p["flop"] / p["gflops"] * 1e-6),
                ]
                for p in r["products"]
            ],
            left=3,
        )
    sys.stdout.flush()


def options():
    p = argparse.ArgumentParser(
        prog="step.py", description=ABOUT, epilog=MORE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument(
        "--cases",
        default="124M:4x64,124M:4x256,124M:1x1024,baby:8x256",
        metavar="LIST",
        help="what to train: MODEL:BxT, joined by commas (default: %(default)s)",
    )
    p.add_argument(
        "--precision", default="f32,bf16", metavar="LIST", help="formats to compute in (default: %(default)s)"
    )
    p.add_argument("--rounds", type=int, default=5, metavar="N", help="rounds (default: %(default)s)")
    p.add_argument(
        "--steps", type=int, default=1, metavar="N", help="measured steps of each in a round (default: %(default)s)"
    )
    p.add_argument("--threads", type=int, default=2, metavar="T", help="threads of each (default: %(default)s)")
    p.add_argument(
        "--torch",
        default=sys.executable,
        metavar="PYTHON",
        help="the Python that has PyTorch (default: the one that runs this)",
    )
    p.add_argument(
        "--modes",
        default="eager,compile,eager-pure,compile-pure",
        metavar="LIST",
        help="of PyTorch (default: %(default)s)",
    )
    p.add_argument("--no-torch", action="store_true", help="only us and the floor")
    p.add_argument(
        "--busy",
        type=int,
        default=0,
        metavar="N",
        help="in each round also steps of ours while a process keeps each of the first N cores busy",
    )
    p.add_argument("--rates", action="store_true", help="print the rate of each product too")
    p.add_argument(
        "--seconds",
        type=float,
        default=0.05,
        metavar="S",
        help="least time for each way of a product in a round (default: %(default)s)",
    )
    p.add_argument(
        "--no-check",
        action="store_true",
        help="do not measure the rates at 1024 tokens that say whether the run is void",
    )
    p.add_argument(
        "--copy",
        type=int,
        default=copy_mib(),
        metavar="MIB",
        help="size of the arrays that are copied (default here: %(default)s)",
    )
    p.add_argument(
        "--mtc",
        default="",
        metavar="ARGS",
        help="more arguments for mtc compile, as in --mtc '--set parallel.recompute=none'",
    )
    p.add_argument("--build", metavar="FOLDER", help="the build folder (default: build)")
    p.add_argument("--json", metavar="FILE", help="all of it as JSON, too; - is standard output")
    o = p.parse_args()
    o.cases, o.precision, o.modes = ([x for x in text.split(",") if x] for text in (o.cases, o.precision, o.modes))
    o.cases = [Case(text) for text in o.cases]
    if not set(o.precision) <= set(LEAST):
        p.error("--precision: f32 and bf16 are known")
    if not all(re.fullmatch("(eager|compile)(-pure)?", m) for m in o.modes):
        p.error("--modes: eager, compile, eager-pure and compile-pure are known")
    if not 0 <= o.busy <= len(os.sched_getaffinity(0)):
        p.error("--busy is at most the number of cores")
    if min(o.rounds, o.steps, o.threads, o.copy) < 1:
        p.error("--rounds, --steps, --threads and --copy are 1 or more")
    return o


def main():
    o = options()
    build = Build(o.build)
    torch, missing = (None, "not asked for") if o.no_torch else find_torch(o.torch, o.threads)
    if torch:
        print(
            "torch %s, %s, %s"
            % (torch["version"], torch["blas"] or "no known BLAS", torch["capability"] or "capability unknown")
        )
        for name, value in torch["env"].items():
            print("  %s=%s" % (name, value))
    elif not o.no_torch:
        print("%s: without it" % missing)
    rates, all = Rates(build, o.threads, o.seconds), []
    check = [] if o.no_check else [line for precision in o.precision for _, _, _, line in probe(precision)]
    with tempfile.TemporaryDirectory(prefix="mt-step-") as folder:
        rates.measure(check, copy=o.copy)
        for case in o.cases:
            for precision in o.precision:
                all.append(measure(case, precision, o, build, torch, rates, folder))
                show(all[-1], o)
    rates.measure(check)
    print("\ncopy: %s GB/s" % ", ".join("%s %.1f" % x for x in rates.copies.items()))
    void = []
    for precision in o.precision if check else []:
        rate = probe_rate(precision, rates)
        print("products at 1024 tokens, %s: %.0f GFLOP/s" % (precision, rate))
        if rate < LEAST[precision]:
            void.append(precision)
            print("VOID: %s is under %.0f GFLOP/s; nothing above counts for it" % (precision, LEAST[precision]))
    if o.json:
        write_json(
            o.json,
            dict(
                torch=torch,
                threads=o.threads,
                rounds=o.rounds,
                steps=o.steps,
                copies=rates.copies,
                void=void,
                check={p: probe_rate(p, rates) for p in o.precision},
                runs=all,
            ),
        )


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
