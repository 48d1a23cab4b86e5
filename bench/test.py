# test.py BUILD -- the smallest form of each measurement, so that they do not rot; what they measure does not matter.
import json, os, subprocess, sys, tempfile

HERE, BUILD = os.path.dirname(os.path.abspath(__file__)), os.path.abspath(sys.argv[1])


def run(name, *words, text=None, code=0):
    command = [name] if name.startswith(BUILD) else [sys.executable, os.path.join(HERE, name)]
    p = subprocess.run(command + list(words), input=text, capture_output=True, text=True)
    assert p.returncode == code, f"{name} {' '.join(words)}: exit code {p.returncode}\n{p.stdout}{p.stderr}"
    return p


os.chdir(tempfile.mkdtemp(dir=BUILD))
at = ("--build", BUILD)
fast = ("--copy", "1", "--seconds", "0.0005", *at)

for name in "step.py", "kernels", "compile", "start":
    assert "examples" in run(name, "--help").stdout
    run(name, "--no-such-option", code=2)
run("step.py", "--cases", "tiny", *at, code=64)

rates = BUILD + "/bench/rates"
assert "BATCH" in run(rates, "--help").stdout
lines = run(
    rates,
    "--seconds",
    "0.001",
    "--copy",
    "1",
    text="f32 f32 TN 48 33 20\nbf16 f32 NT 32 32 32 3\nf32 f32 NN 40 40 40 1 openblas/rows,openblas/own threads\n",
).stdout
copy, plain, narrow, chosen = map(json.loads, lines.splitlines())
assert copy["best"] == max(copy["copy"].values()) > 0
assert plain["best"] == plain["ways"][plain["by"]] == max(plain["ways"].values()) > 0
assert all(way.split("/")[1] in ("batch", "own threads") for way in narrow["ways"])
assert set(chosen["ways"]) <= {"openblas/rows", "openblas/own threads"}
for wrong in "f32 f32 NN 4 4", "f64 f64 NN 4 4 4", "f32 bf16 NN 4 4 4", "f32 f32 NX 4 4 4", "f32 f32 NN 4 0 4":
    assert "no product" in run(rates, text=wrong, code=65).stderr

p = run(
    "step.py",
    "--cases",
    "tiny:1x16",
    "--rounds",
    "1",
    "--steps",
    "2",
    "--no-check",
    "--torch",
    "/no/such/python",
    "--rates",
    "--busy",
    "1",
    "--precision",
    "f32",
    "--json",
    "step.json",
    *fast,
)
assert "without it" in p.stdout and "floor" in p.stdout and "head dw" in p.stdout, p.stdout
(r,) = json.load(open("step.json"))["runs"]
assert r["params"] == 120576 and len(r["products"]) == 15
ours = r["results"][0]
assert (
    ours["name"] == "ours" and len(ours["ms"]) == 2 and ours["median_ms"] > 0 and ours["plan_memory"] > 12 * r["params"]
)
assert len(r["busy_ms"]) == 2 and "beside 1 busy process:" in p.stdout
assert 0 < r["floor_ms"] and abs(r["flop"] - 6 * 16 * (2 * 12 * 64 * 64 + 256 * 64 + 16 * 64 * 2)) < 1

p = run("kernels", "--case", "tiny:1x16", "--steps", "1", "--json", "kernels.json", "--top", "3", *fast)
rows = json.load(open("kernels.json"))["rows"]
assert {row["by"] for row in rows} >= {"copy", "product"} and all(row["limit"] > 0 for row in rows if row["by"])
assert [row["seconds"] for row in rows] == sorted((row["seconds"] for row in rows), reverse=True)
assert len(p.stdout.splitlines()) == 6, p.stdout

p = run("compile", "--models", "gpt2:demo", "--runs", "1", "--mtc", "-D layers=1", *at)
assert "gpt2:demo" in p.stdout and len(p.stdout.splitlines()) == 3
assert "failed" in run("compile", "--models", "gpt2:no_such_preset", "--runs", "1", *at, code=70).stdout

p = run("start", "--cases", "tiny:1x16,demo", "--runs", "1", "--steps", "1", "--json", "start.json", *at)
assert [len(r["first"]) for r in json.load(open("start.json"))] == [1, 1] and len(p.stdout.splitlines()) == 4
