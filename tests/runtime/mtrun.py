# mtrun on a hand-made plan: logs, files, exit codes, resume, signals, samples, trace. Arguments: mtrun, make_plan, mtdata.
import atexit, json, math, os, random, re, shutil, signal, struct, subprocess, sys, tempfile, time

MTRUN, MAKE, MTDATA = map(os.path.abspath, sys.argv[1:4])
folder = tempfile.mkdtemp(prefix="mtrun-test-")
atexit.register(shutil.rmtree, folder, True)
os.chdir(folder)
os.environ["XDG_CACHE_HOME"] = os.getcwd() + "/cache"

def run(*args, code=0, **more):
    p = subprocess.run([MTRUN, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", timeout=120, **more)
    assert p.returncode == code, f"{args}: exit {p.returncode}, not {code}\n{p.stdout}\n{p.stderr}"
    return p

def refused(text, code, *args):
    p = run(*args, code=code)
    assert text in p.stderr, f"{args}: '{text}' expected in:\n{p.stderr}"

def write_safetensors(path, tensors):                     # name -> (dtype, shape, bytes)
    header, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)

def read_safetensors(path):                               # name -> (dtype, shape, values)
    raw = open(path, "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    out = {}
    for name, t in json.loads(raw[8:8 + n]).items():
        if name == "__metadata__": continue
        b, e = t["data_offsets"]
        code = {"F64": "d", "F32": "f"}[t["dtype"]]
        out[name] = (t["dtype"], t["shape"], struct.unpack(f"<{(e - b) // struct.calcsize(code)}{code}", raw[8 + n + b:8 + n + e]))
    return out

def log_of(path): return [json.loads(line) for line in open(path)]

# ---- recorded batches: log, gradients, final parameters ---------------------------------------------------------------
V, E, B, S, M, STEPS = 7, 3, 2, 5, 2, 6
rng = random.Random(1)
tokens = [rng.randrange(V) for _ in range(STEPS * M * B * S)]
labels = [rng.choice([-100, rng.randrange(V)]) for _ in tokens]
def ints(x): return struct.pack(f"<{len(x)}i", *x)
shape = [STEPS, M, B, S]
write_safetensors("b.safetensors", {"tokens": ("I32", shape, ints(tokens)), "labels": ("I32", shape, ints(labels))})
subprocess.check_call([MAKE, "p.plan"])

p = run("p.plan", "--batches", "b.safetensors", "--log-json", "log", "--grads", "g", "--final", "f", "--save", "ck", "--save-every", "2",
        "--log-every", "3", "--profile", "--profile-json", "profile.json", "--trace", "trace.json")
log = log_of("log")
assert [l["step"] for l in log] == list(range(STEPS)) and all(l["updated"] for l in log)
assert all(isinstance(l[k], float) for l in log for k in ("loss", "grad_norm", "lr", "tokens_per_second"))
assert log[0]["lr"] == 0.5 and log[-1]["updates"] == STEPS
assert all(0 <= l["memory"] < 1 << 28 for l in log)
profile = json.load(open("profile.json"))                 # the first step does not count
assert profile["steps"] == STEPS - 1 and profile["model"] == "bigram"
assert 0 < profile["counted"] <= profile["seconds"] * 1.01
kinds = {row["kind"] for row in profile["rows"]}
assert {"kernel", "gemm", "load"} <= kinds
assert all(row["runs"] % (STEPS - 1) == 0 for row in profile["rows"] if row["stream"] == "compute")
assert all({"m", "n", "k", "formats", "loops"} <= set(row) for row in profile["rows"] if row["kind"] == "gemm")
for text in ("parameters       42 in f64", "20 tokens: 4 samples in 2 microbatches", "hash ", "OpenBLAS", "step 0/6", "step 5/6", "lr 5.000e-01",
             "bigram.mt:6:12", "GFLOP/s"):
    assert text in p.stdout, f"'{text}' expected in:\n{p.stdout}"
assert "\r" not in p.stdout + p.stderr                    # no bar, no terminal

grads, final = read_safetensors("g"), read_safetensors("f")
assert sorted(grads) == sorted(final) == ["head.0.weight", "head.1.weight", "head.2.weight", "wte.weight"]
assert grads["wte.weight"][:2] == ("F64", [V, E]) and grads["head.1.weight"][:2] == ("F64", [V])
norm = math.sqrt(sum(x * x for g in grads.values() for x in g[2]))
assert abs(norm - log[0]["grad_norm"]) < 1e-12
trace = json.load(open("trace.json"))
names = {e["name"] for e in trace["traceEvents"]}
assert {"step 0", "step 5", "dot", "cross_entropy", "tokens", "process_name"} <= names, names
assert any(e.get("args", {}).get("line") == "bigram.mt:7:10" for e in trace["traceEvents"])

# ---- gradients by finite differences, through --init -------------------------------------------------------------------
def write_params(params, path, prefix=""):
    write_safetensors(path, {prefix + n: (d, s, struct.pack(f"<{len(v)}d", *v)) for n, (d, s, v) in params.items()})
start = read_safetensors("ck/step_00000002/model.safetensors")
write_params(start, "init.safetensors", "transformer.")
def loss_at(params):
    write_params(params, "moved.safetensors")
    run("p.plan", "--batches", "b.safetensors", "--init", "moved.safetensors", "--steps", "1", "--log-json", "one")
    return log_of("one")[0]["loss"]
run("p.plan", "--batches", "b.safetensors", "--init", "init.safetensors", "--steps", "1", "--grads", "g1", "--log-json", "one")
at, g1 = log_of("one")[0]["loss"], read_safetensors("g1")
assert at == loss_at(start)
for name, i in (("wte.weight", 4), ("head.2.weight", 3)):
    moved = {n: (d, s, list(v)) for n, (d, s, v) in start.items()}
    moved[name][2][i] += 1e-6
    up = loss_at(moved)
    moved[name][2][i] -= 2e-6
    slope = (up - loss_at(moved)) / 2e-6
    assert abs(slope - g1[name][2][i]) < 1e-8, (name, slope, g1[name][2][i])

# ---- stop and go on: the same bits ------------------------------------------------------------------------------------
for k in range(1, STEPS):
    run("p.plan", "--batches", "b.safetensors", "--steps", str(k), "--save", f"r{k}", "--threads", str(1 + k % 3), "--log-json", "rlog")
    run("--resume", "auto", "p.plan", "--batches=b.safetensors", "--save", f"r{k}", "--final", "rf", "--log-json", "rlog")
    assert open("rf", "rb").read() == open("f", "rb").read(), f"stopped at {k}"
    assert [(l["step"], l["loss"], l["grad_norm"]) for l in log_of("rlog")] == [(l["step"], l["loss"], l["grad_norm"]) for l in log]
run("p.plan", "--batches", "b.safetensors", "--save", "fresh", "--resume", "auto", "--steps", "1")    # nothing there yet
run("p.plan", "--batches", "b.safetensors", "--resume", "ck/step_00000004", "--final", "rf")
assert open("rf", "rb").read() == open("f", "rb").read()
assert open("ck/step_00000006/model.safetensors", "rb").read() == open("f", "rb").read()

# ---- a loss that is no number, a step without labels ---------------------------------------------------------------------
bad = {n: (d, s, list(v)) for n, (d, s, v) in start.items()}
bad["wte.weight"][2][next(t for t, l in zip(tokens, labels) if l >= 0) * E] = float("nan")
write_params(bad, "nan.safetensors")
p = run("p.plan", "--batches", "b.safetensors", "--init", "nan.safetensors", "--log-json", "nan")
line = open("nan").readline()
assert '"loss":null,"loss_state":"nan"' in line and '"updated":false' in line, line
assert re.search(r"mtrun: warning: the last 6 steps made no update \(the gradient is not finite\)\n"
                 r"  the first value that is not finite: nan in 'wte.weight' on rank 0, before the step", p.stderr)
assert re.search(r"step 0/6  loss +-?nan", p.stdout) and "no update: not finite" in p.stdout, p.stdout
labels0 = [-100] * (M * B * S) + labels[M * B * S:]
write_safetensors("b0.safetensors", {"tokens": ("I32", shape, ints(tokens)), "labels": ("I32", shape, ints(labels0))})
p = run("p.plan", "--batches", "b0.safetensors", "--log-json", "empty")
assert "no update: no label counts" in p.stdout and p.stderr == "", p.stderr      # the steps after it made one
p = run("p.plan", "--batches", "b0.safetensors", "--steps", "1")
assert "warning: the last step made no update (no label counts" in p.stderr, p.stderr
assert log_of("empty")[0]["updated"] is False and log_of("empty")[1]["updates"] == 1

# ---- what is refused --------------------------------------------------------------------------------------------------
b = ("p.plan", "--batches", "b.safetensors")
refused("did you mean --batches?", 64, "p.plan", "--batchs", "b.safetensors")
refused("nothing to do", 64, "p.plan")
refused("which plan?", 64, "--batches", "b.safetensors")
refused("needs --save DIR", 64, *b, "--save-every", "2")
refused("--eval-every needs --data", 64, *b, "--eval-every", "2")
refused("--log-every 0 is too small", 64, *b, "--log-every", "0")
refused("is not a whole number", 64, *b, "--steps", "many")
for option, value, least in (("--steps", -1, 0), ("--steps", -2 ** 63, 0), ("-n", 0, 1), ("--threads", 0, 1),
                             ("--seed", -1, 0), ("--tokens", -1, 0), ("--keep", -1, 0), ("--save-every", -1, 0),
                             ("--eval-every", -1, 0), ("--eval-samples", 0, 1)):
    refused(f"{option} {value} is too small: at least {least}", 64, *b, option, str(value))
run(*b, "--steps", "0")
refused("one plan is run, 2 are given; did you mean --log-params=3?", 64, *b, "--log-json", "log", "--log-params", "3")
refused("one plan is run, 2 are given; did you mean --log-params=3?", 64, "--log-params", "3", *b, "--log-json", "log")
p = run("p.plan", "p.plan", "--batches", "b.safetensors", code=64)
assert p.stderr.endswith("one plan is run, 2 are given\n"), p.stderr
assert run("--log-json", "log", "--log-params", *b).stderr == ""       # a file is what it is
refused("takes no plan; did you mean --calibrate=again?", 64, "--calibrate", "again")
for folder_given in ("ck", "ck/"):
    refused("ck is no checkpoint, it holds 3: --save ck --resume auto, or --resume ck/step_00000006", 66, *b,
            "--resume", folder_given)
refused("closed_ck/MANIFEST: No such file", 66, *b, "--resume", "closed_ck")
refused("no.plan: No such file or directory; mtc compile MODEL.mt -o no.plan makes a plan", 66, "no.plan",
        "--batches", "b.safetensors")
refused("not yet: --device cuda", 69, *b, "--device", "cuda")
refused("has 6 steps, the run has 9", 65, *b, "--steps", "9")
refused("-n 2: the plan is for 1 rank", 64, *b, "-n", "2")
subprocess.check_call([MAKE, "tp.plan", "tp=2"])
refused("-n 4: the plan is for 2 ranks", 64, "tp.plan", "--batches", "b.safetensors", "-n", "4")
refused("--sample: the plan is for 2 ranks (tp=2)", 69, "tp.plan", "--sample", "a")
raw = bytearray(open("p.plan", "rb").read())
raw[len(raw) // 2] ^= 1
open("bad.plan", "wb").write(raw)
refused("bad.plan: it is damaged", 65, "bad.plan", "--batches", "b.safetensors")
refused("b.safetensors: it is no plan; mtc compile makes one of a model text", 65, "b.safetensors",
        "--batches", "b.safetensors")
few = {n: t for n, t in start.items() if n != "head.1.weight"}
write_params(few, "few.safetensors")
refused("the tensor head.1.weight is missing", 65, *b, "--init", "few.safetensors")
write_params({**start, "extra.weight": start["wte.weight"]}, "more.safetensors")
refused("1 tensor the model does not have: extra.weight", 65, *b, "--init", "more.safetensors")
write_params({**start, "wte.weight": ("F64", [E, V], start["wte.weight"][2])}, "turned.safetensors")
refused("error MT0263: wte.weight is [3, 7] in turned.safetensors; [vocab 7, embed 3] groups to [7, 3]", 65, *b, "--init", "turned.safetensors")
write_params({**start, "lm_head.weight": start["wte.weight"], "h.0.attn.bias": ("F64", [1], [1.0])}, "tied.safetensors")
run(*b, "--init", "tied.safetensors", "--steps", "1")
untied = ("F64", [V, E], [x + 1 for x in start["wte.weight"][2]])
write_params({**start, "lm_head.weight": untied}, "untied.safetensors")
refused("lm_head.weight", 65, *b, "--init", "untied.safetensors")
high = list(tokens)
high[33] = V
write_safetensors("high.safetensors", {"tokens": ("I32", shape, ints(high)), "labels": ("I32", shape, ints(labels))})
refused("tokens", 65, "p.plan", "--batches", "high.safetensors")
refused("", 73, *b, "--log-json", "no/such/folder/log")
refused("no/such/folder/t", 73, *b, "--log-json", "late", "--trace", "no/such/folder/t")
refused("without a name", 73, *b, "--final", "")
assert not os.path.exists("late")          # before the first step
if os.path.exists("/dev/full"): refused("/dev/full", 74, *b, "--log-json", "/dev/full")
if os.geteuid():
    os.mkdir("closed", 0o500)
    refused("", 77, *b, "--log-json", "closed/log")
env = dict(os.environ, MTRUN_OPENBLAS="/no/such/libopenblas.so")
p = run(*b, code=69, env=env)
assert "MTRUN_OPENBLAS names it: unset it" in p.stderr

# ---- token files: held-out loss, signals, sample ------------------------------------------------------------------------
text = "the quick brown fox jumps over the lazy dog. " * 400
open("text.jsonl", "w").write("".join(json.dumps({"text": text[i:i + 900]}) + "\n" for i in range(0, len(text), 900)))
subprocess.check_call([MTDATA, "prepare", "text.jsonl", "-o", "text"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
prefix = next(f[:-4] for f in sorted(os.listdir(".")) if f.endswith(".idx"))
subprocess.check_call([MAKE, "byte.plan", "vocab=257", "size=264", "embed=16", "seq=32", "batch=4", "microbatches=2", "steps=40", "lr=8", "dtype=f32"])
d = ("byte.plan", "--data", prefix)
os.makedirs("in.to", exist_ok=True)
for there, out in (("text.jsonl", "text"), ("in.to/plain", "in.to/plain"), ("in.to/.txt", "in.to/.txt")):
    open(there, "a").close()
    refused(f"{there}.idx: No such file or directory; mtdata prepare makes token files: "
            f"mtdata prepare {there} -o {out}\n", 66, *d[:2], there)
for absent in ("none.txt", "in.to"):
    refused(f"mtdata prepare TEXT -o {absent}\n", 66, *d[:2], absent)
p = run(*d, "--eval-every", "20", "--split", "800,200,0", "--log-json", "dlog", "--sample", "the qu", "--tokens", "30", "--temperature", "0", "--final", "df")
dlog = log_of("dlog")
assert dlog[-1]["loss"] < 4 and 0 < dlog[-1]["valid_loss"] < 4 and "valid_loss" in dlog[19] and "valid_loss" not in dlog[18]
assert "valid_loss" in p.stdout and "held out" in p.stdout
sample = p.stdout[p.stdout.rindex("the qu"):]
assert len(sample) >= 30, sample
p = run("byte.plan", "--init", "df", "--sample", "the qu", "--tokens", "30", "--temperature", "0")
assert sample in p.stdout, (sample, p.stdout)
one = run("byte.plan", "--init", "df", "--sample", "the", "--tokens", "20", "--seed", "5").stdout.rsplit("\n\n", 1)[-1]
two = run("byte.plan", "--init", "df", "--sample", "the", "--tokens", "20", "--seed", "5", "--threads", "3").stdout.rsplit("\n\n", 1)[-1]
assert one == two
refused("the model's vocabulary has 7 entries", 64, "p.plan", "--sample", "x")
run(*d, "--split", "800,200,0", "--eval-every", "7", "--steps", "17", "--save", "dck", "--save-every", "5")
run(*d, "--split", "800,200,0", "--eval-every", "20", "--save", "dck", "--resume", "auto", "--final", "dr", "--log-json", "dlog2", "--keep", "2")
assert open("dr", "rb").read() == open("df", "rb").read()
assert [(l["step"], l["loss"], l.get("valid_loss")) for l in log_of("dlog2")] == [(l["step"], l["loss"], l.get("valid_loss")) for l in dlog[17:]]

# ---- the held-out loss alone: as it was printed while training, and nothing is written
def files(): return {f: (os.stat(f).st_mtime_ns, os.stat(f).st_size) for d, _, names in os.walk(".") for n in names
                     if not d.startswith("./cache") for f in [os.path.join(d, n)]}
evals = ("byte.plan", "--data", prefix, "--split", "800,200,0", "--eval-only")
was = files()
for where in (("--save", "dck", "--resume", "auto"), ("--resume", "dck/step_00000040"), ("--init", "df")):
    p = run(*evals, *where)
    assert f"\nvalid_loss {dlog[-1]['valid_loss']:9.5f}  " in p.stdout, p.stdout
    assert "step 3" not in p.stdout and "  steps  " not in p.stdout and "held out" in p.stdout, p.stdout
assert "checkpoint, step 40" in run(*evals, "--resume", "dck/step_00000040", "--eval-samples", "3").stdout
p = run(*evals, "--init", "df", "--sample", "the", "--tokens", "5")
assert p.stdout.index("valid_loss") < p.stdout.index("\nthe"), p.stdout
p = run("byte.plan", "--data", prefix, "--split", "0,1,0", "--eval-only", "--init", "df")
assert "valid_loss" in p.stdout
refused("what is held out now it may have been trained on", 65, *evals[:3], "--split", "700,300,0", "--eval-only",
        "--resume", "dck/step_00000040")
refused("none: no checkpoint to evaluate", 66, *evals, "--save", "none", "--resume", "auto")
refused("--eval-only needs parameters", 64, *evals)
refused("--eval-only needs --data", 64, "byte.plan", "--eval-only", "--init", "df", "--sample", "x")
refused("--save has no meaning", 64, *evals, "--init", "df", "--save", "dck")
refused("--eval-only: the split leaves no sample to evaluate on", 65, *evals[:3], "--split", "1,0,0", "--eval-only",
        "--init", "df")
for option in (("--steps", "3"), ("--final", "x"), ("--log-json", "x"), ("--eval-every", "1"), ("--batches", "b")):
    refused(f"{option[0]} has no meaning beside --eval-only", 64, *evals, "--init", "df", *option)
assert files() == was

# ---- a finished run goes on, as far as the data keeps its order; the schedule is the plan's
more = ("--split", "800,200,0", "--eval-every", "20", "--resume", "dck/step_00000040")
p = run(*d, *more)
assert "40 to 40: nothing is left to do, --steps N" in p.stdout, p.stdout
p = run(*d, *more, "--steps", "43", "--log-json", "dlog3", "--final", "d43")
assert "40 to 43" in p.stdout and [l["step"] for l in log_of("dlog3")] == [40, 41, 42]
assert "schedule ends" not in p.stdout                    # a constant one has no end
run(*d, *more[:4], "--steps", "43", "--final", "d43again")
assert open("d43", "rb").read() == open("d43again", "rb").read()
refused("with the data in another order", 65, *d, *more, "--steps", "400")
refused("was made with other data", 65, *d, "--split", "700,300,0", *more[2:])

def stopped(sig, *args):
    proc = subprocess.Popen([MTRUN, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    proc.stdout.readline()
    while "step" not in proc.stdout.readline()[:5]: pass
    proc.send_signal(sig)
    out, err = proc.communicate(timeout=60)
    return proc.returncode, err
for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
    code, err = stopped(sig, *d, "--steps", "1000000", "--save", "sig", "--resume", "auto")
    assert code == 75 and "saved: run it again with --resume auto" in err, (code, err)
assert any(re.fullmatch(r"step_\d+", f) for f in os.listdir("sig")), os.listdir("sig")

proc = subprocess.Popen([MTRUN, *d, "--steps", "1000000", "--save", "usr"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
while "step" not in proc.stdout.readline()[:5]: pass
proc.send_signal(signal.SIGUSR2)                          # save and go on
for _ in range(600):
    if os.path.exists("usr/latest"): break
    time.sleep(0.1)
assert os.path.exists("usr/latest") and proc.poll() is None
proc.send_signal(signal.SIGTERM)
proc.communicate(timeout=60)
assert proc.returncode == 75
