"""terminal.py MTC MTRUN MTDATA: colours and a bar where a person looks at a terminal, and nowhere else."""
import os, pty, subprocess, sys, tempfile

mtc, mtrun, mtdata = (os.path.abspath(p) for p in sys.argv[1:4])
folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
open("bad.mt", "w").write("dim seq = \n")
open("bad.ir", "w").write("nothing\n")
failed = 0


def run(args, terminal=True, term="xterm", **more):
    """What args write to standard error, which is a terminal or a pipe."""
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM")} | more
    if term is not None:
        env["TERM"] = term
    if not terminal:
        return subprocess.run(args, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE).stderr
    ours, theirs = pty.openpty()
    child = subprocess.Popen(args, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    said = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:                      # the other end is closed
            break
        if not part:
            break
        said += part
    os.close(ours)
    child.wait()
    return said


def check(what, wanted, said, mark=b"\33["):
    global failed
    if not said or (mark in said) != wanted:
        print("%s: %s %r in %r" % (what, "no" if wanted else "there is", mark, said[:300]))
        failed = 1


for command in (["check", "bad.mt"], ["opt", "bad.ir", "--pass=simplify"]):
    args = [mtc] + command
    check("a terminal", True, run(args))
    check("a pipe", False, run(args, terminal=False))
    check("NO_COLOR", False, run(args, NO_COLOR="1"))
    check("an empty NO_COLOR", True, run(args, NO_COLOR=""))
    check("TERM=dumb", False, run(args, term="dumb"))
    check("no TERM", False, run(args, term=None))
    check("--color=never", False, run(args + ["--color=never"]))
    check("--color=always", True, run(args + ["--color=always"], terminal=False, NO_COLOR="1"))
    check("--color=sometimes", False, run(args + ["--color=sometimes"]))

# progress goes over its own line, and only on a terminal
open("text", "w").write("some words\n" * 300000)
prepare = [mtdata, "prepare", "--format", "lines", "text", "-o", "t"]
check("mtdata's progress", True, run(prepare), b"docs/s")
check("mtdata -q", False, run(prepare + ["-q"]) + b".", b"docs/s")
check("mtdata in a pipe", False, run(prepare, terminal=False) + b".", b"docs/s")
check("mtdata, TERM=dumb", False, run(prepare, term="dumb") + b".", b"docs/s")

open("m.mt", "w").write("""
dim batch
dim seq = 8
dim embed = 8
dim vocab = 257
model M(tokens: i32[batch, seq], labels: i32[batch, seq]) -> loss: f32[] {
  logits = Linear[embed, vocab](Embedding[vocab, embed](tokens) as wte) as head
  loss = stepmean[batch, seq](cross_entropy[vocab](logits, labels), where = labels != -100)
}
train { micro_batch = 2; global_batch = 2; steps = 3 }
""")
subprocess.run([mtc, "compile", "m.mt", "-o", "m.plan"], check=True)
train = [mtrun, "m.plan", "--data", "t"]
check("mtrun's bar", True, run(train), b"3/3  eta")
check("mtrun in a pipe", False, run(train, terminal=False) + b".", b"eta")
check("mtrun, TERM=dumb", False, run(train, term="dumb") + b".", b"eta")
sys.exit(failed)
