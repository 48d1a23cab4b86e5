"""mtrun --calibrate: the rates of this machine are measured, kept, found again, used; a file that is not right is not.

usage: rates.py MTRUN MTC MODELS"""
import json, os, re, stat, subprocess, sys, tempfile, time

mtrun, mtc, models = (os.path.abspath(path) for path in sys.argv[1:4])
kernels = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.dirname(mtc), "cache"), "mt", "kernels")
folder = tempfile.TemporaryDirectory(prefix="mt-")
os.chdir(folder.name)
cache = folder.name + "/cache"
rates = cache + "/mt/rates.json"
os.makedirs(cache + "/mt", 0o700)
if os.path.isdir(kernels):
    subprocess.check_call(["cp", "-r", kernels, cache + "/mt/"])
threads = len(os.sched_getaffinity(0))


def run(program, *args, code=0, **more):
    env = dict(os.environ, XDG_CACHE_HOME=cache) | more
    p = subprocess.run([program, *args], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert p.returncode == code, "%s: exit %d, not %d\n%s\n%s" % (args, p.returncode, code, p.stdout, p.stderr)
    return p


def has(text, *words):
    for word in words:
        assert word in text, "'%s' expected in:\n%s" % (word, text)


def inode():
    return os.stat(rates).st_ino


# ---- nothing is known, nothing is measured
text = "".join("the quick brown fox %d\n" % i for i in range(2000))
open("t.txt", "w").write(text)
run(os.path.join(os.path.dirname(mtrun), "mtdata"), "prepare", "--format", "lines", "t.txt", "-o", "t")
small = ["--preset", "demo", "-D", "layers=1", "--set", "train.micro_batch=1", "--set", "train.global_batch=2"]
run(mtc, "compile", models + "/gpt2.mt", *small, "-o", "p.plan")
train = ["p.plan", "--data", "t", "--steps", "2", "--profile", "--profile-json", "profile.json"]


def profile():
    p = run(mtrun, *train)
    return p, json.load(open("profile.json"))


def unknown(note=None):
    p, j = profile()
    assert "estimate" not in p.stdout and "limit" not in p.stdout, p.stdout
    assert "rates" not in j and not any("limit" in row for row in j["rows"])
    assert "estimate" not in run(mtc, "explain", models + "/gpt2.mt", *small).stdout
    said = json.loads(run(mtc, "doctor", "--json").stdout)["checks"]
    row = next(c for c in said if c["name"] == "rates")
    assert row["state"] == "note", row
    if note:
        has(p.stderr, rates, note, "mtrun --calibrate=again")
        has(row["says"], note)
        assert row["mend"] == "mtrun --calibrate=again", row
    else:
        assert not p.stderr, p.stderr
        has(row["says"], "not measured")
        assert row["mend"] == "mtrun --calibrate", row


unknown()
assert not os.path.exists(rates)

# ---- measured once, and found again
names = ["copy, one thread", "copy, all threads", "update", "job", "f32     256", "bf16   1024", "f64    1024"]
p = run(mtrun, "--calibrate")
has(p.stdout, *names, "GB/s", "GFLOP/s", "%d thread" % threads)
has(p.stderr, "measuring")
assert stat.S_IMODE(os.stat(rates).st_mode) == 0o600 and stat.S_IMODE(os.stat(cache + "/mt").st_mode) == 0o700
known = json.load(open(rates))
row = known["rates"][0]
assert known["version"] == 1 and len(known["rates"]) == 1 and row["threads"] == threads
assert re.fullmatch(r"\d{4}-\d\d-\d\d", row["day"]) and row["copy"] > 0 and row["f32_NN_256"] > 0
was = inode()
again = run(mtrun, "--calibrate")
has(again.stdout, "measured before", "--calibrate=again", p.stdout)
assert not again.stderr and inode() == was
run(mtrun, "--calibrate=again")
assert inode() != was and len(json.load(open(rates))["rates"]) == 1


# ---- used
def keep(all):
    open(rates, "w").write(json.dumps(all) if not isinstance(all, str) else all)
    os.chmod(rates, 0o600)


known = json.load(open(rates))
p, j = profile()
has(p.stdout, "  estimate         about ", " a step: products ", "limit", "%", known["rates"][0]["day"])
assert j["rates"] == known["rates"][0]["day"]
for row in j["rows"]:
    assert ("limit" in row) == (row["kind"] != "load"), row
    assert row.get("limit", 1) > 0, row
half = dict(known["rates"][0], copy=known["rates"][0]["copy"] / 1000)
keep(dict(known, rates=[half]))
share = lambda j: max(row["limit"] for row in j["rows"] if row["kind"] == "kernel")
assert share(profile()[1]) > 50 * share(j)
keep(known)
has(run(mtc, "explain", models + "/gpt2.mt", *small).stdout, "  estimate     about ", " a step: products ")
assert "estimate" not in run(mtc, "explain", models + "/gpt2.mt", *small, "--mesh", "dp=2").stdout
doctor = json.loads(run(mtc, "doctor", "--json").stdout)["checks"]
found = next(c for c in doctor if c["name"] == "rates")
assert found["state"] == "ok", found
has(found["says"], "measured on " + known["rates"][0]["day"])

# ---- only for these threads, this CPU, these libraries
for key, value in ("threads", threads + 1), ("cpu", "other"):
    keep(dict(known, rates=[dict(known["rates"][0], **{key: value})]))
    unknown()
keep(dict(known, rates=[dict(known["rates"][0], libraries="other 1.0")]))
p, j = profile()
assert "estimate" not in p.stdout and "rates" not in j and not p.stderr
doctor = json.loads(run(mtc, "doctor", "--json").stdout)["checks"]
has(next(c for c in doctor if c["name"] == "rates")["says"], "of other libraries")

# ---- what is not right counts as absent
row = known["rates"][0]
damaged = "it is damaged"
other = "it does not hold rates as this version writes them"
for text, note in [
    ("", damaged), ("{", damaged), ("[]", damaged), ("\0" * 100, damaged), ('{"rates": ' + "[" * 100, damaged),
    ("{}", other), (dict(known, version=2), other), (dict(known, rates={}), other), (dict(known, rates=[1]), other),
    (dict(known, rates=[{k: v for k, v in row.items() if k != "job"}]), other),
    (dict(known, rates=[dict(row, copy=0)]), other), (dict(known, rates=[dict(row, copy=-1)]), other),
    (dict(known, rates=[dict(row, update="fast")]), other), (dict(known, rates=[dict(row, f32_NN_256=1e300)]), other),
    (dict(known, rates=[dict(row, threads=1.5)]), other), (dict(known, rates=[row, dict(row, day=None)]), other),
    ("x" * (1 << 21), "it is too large"),
]:
    keep(text)
    p = run(mtrun, *train)
    assert "estimate" not in p.stdout, p.stdout
    has(p.stderr, rates, note)
    assert p.stderr.count("is ignored") == 1, p.stderr
unknown("it is too large")
keep(known)
os.chmod(rates, 0o666)
unknown("others can write it")
if os.geteuid():
    os.chmod(rates, 0)
    unknown("Permission denied")
os.rename(rates, "elsewhere")
os.symlink(folder.name + "/elsewhere", rates)
unknown("it is a link")
os.remove(rates)
os.mkfifo(rates)
unknown("it is no file")
os.remove(rates)
os.mkdir(rates)
unknown("it is a folder (remove it)")
p = run(mtrun, "--calibrate", code=73)                     # at once, not when all is measured
has(p.stderr, rates + ": it is a folder; remove it")
assert "measuring" not in p.stderr and not p.stdout, p
os.rmdir(rates)
open("no folder", "w")
p = run(mtrun, "--calibrate", code=73, XDG_CACHE_HOME=folder.name + "/no folder")
has(p.stderr, "the rates cannot be kept", "no folder")
assert "measuring" not in p.stderr, p.stderr
os.chmod(cache + "/mt", 0o777)                            # others could put a file there
os.chmod("elsewhere", 0o600)
os.rename("elsewhere", rates)
p = run(mtrun, *train)
assert "estimate" not in p.stdout
os.chmod(cache + "/mt", 0o700)

# ---- the command line
for args, words in [(["--calibrate=now"], "not --calibrate=now"), (["--calibrate", "p.plan"], "takes no plan"),
                    (["--calibrate", "--threads", "-1"], "--threads -1 is too small"),
                    (["--calibrate", "--threads", "5000"], "--threads 5000: at most 4096"),
                    (["--calibrate="], "--calibrate= has no value: --calibrate[=again]"),
                    (["--calibrate", "--steps", "3"], "--steps has no meaning beside --calibrate"),
                    (["-n", "1", "--calibrate=again"], "-n has no meaning beside --calibrate"),
                    (["--calibrate", "--log-every", "10"], "--log-every has no meaning beside --calibrate"),
                    (["--calibrate", "--profile"], "--profile has no meaning beside --calibrate")]:
    has(run(mtrun, *args, code=64).stderr, words)
has(run(mtrun, "--help").stdout, "--calibrate[=again]", "measure this machine")
