#!/usr/bin/env python3
"""The command line of mtdata: what it writes, prints and refuses. usage: mtdata.py MTDATA"""
import json, os, pty, struct, subprocess, sys, tempfile

MTDATA = os.path.abspath(sys.argv[1])


def run(*args, stdin=None, **more):
    return subprocess.run([MTDATA, *args], input=stdin, capture_output=True, timeout=60, **more)


def good(*args, **more):
    p = run(*args, **more)
    assert p.returncode == 0 and not p.stderr, (args, p)
    return p.stdout.decode()


def bad(code, message, *args, **more):
    p = run(*args, **more)
    assert p.returncode == code and message in p.stderr.decode(), (args, code, message, p)


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def tokens(prefix):
    """the documents of a token file of u16, one sequence each"""
    b, t = open(prefix + ".idx", "rb").read(), open(prefix + ".bin", "rb").read()
    assert b[:9] == b"MMIDIDX\0\0" and struct.unpack_from("<QB", b, 9) == (1, 8)
    n, m = struct.unpack_from("<QQ", b, 18)
    lengths = struct.unpack_from("<%di" % n, b, 34)
    offsets = struct.unpack_from("<%dq" % n, b, 34 + 4 * n)
    assert list(struct.unpack_from("<%dq" % m, b, 34 + 12 * n)) == list(range(n + 1)) and len(b) == 34 + 12 * n + 8 * m
    assert len(t) == 2 * sum(lengths)
    return [list(struct.unpack_from("<%dH" % k, t, o)) for k, o in zip(lengths, offsets)]


def prepare():
    text = bytes(range(256)) * 700 + "naïve \u2713".encode()
    write("a.txt", text)
    write("b.txt", b"")
    out = good("prepare", "a.txt", "b.txt", "-o", "t")
    assert "2 documents" in out and "nvocab = 257" in out, out
    assert tokens("t") == [list(text) + [256], [256]]
    lines = [json.dumps({"text": s, "id": i}) for i, s in enumerate(("one", "", "zwei\n", "naïve \u2713", "nul\0"))]
    write("j.jsonl", ("\n".join(lines) + "\r\n\n  \n").encode())
    good("prepare", "j.jsonl", "-o", "j")
    want = [list(json.loads(x)["text"].encode()) + [256] for x in lines]
    assert tokens("j") == want
    good("prepare", "--format=jsonl", "-o", "k", "-", stdin=open("j.jsonl", "rb").read())
    assert tokens("k") == want
    write("l.txt", b"a b\n\nlast")
    good("prepare", "--format", "lines", "l.txt", "-o", "l")
    assert tokens("l") == [[97, 32, 98, 256], [256], list(b"last") + [256]]
    write("body.jsonl", b'{"body": "x"}\n')
    good("prepare", "body.jsonl", "--jsonl-key", "body", "-o", "m")
    assert tokens("m") == [[120, 256]]
    write("empty.txt", b"")
    assert "1 document," in good("prepare", "empty.txt", "-o", "e")
    assert "e: 1 token of u16 in 1 sequence, 1 document; 2 bytes\n" in good("inspect", "e")

    bad(65, "body.jsonl:1: no text under the key 'text'", "prepare", "body.jsonl", "-o", "n")
    for name, data, message in (("1", b'{"text": "a"}\n{"text": 7}\n', ":2: no text"), ("2", b'{"text": "a"\n', ":1: JSON"),
                                ("3", b'{"text": "\xff"}', ":1: JSON"), ("4", b'{"text": "a", "text": "b"}', ":1: JSON"),
                                ("5", b'{"text": "a"} x', ":1: JSON"), ("6", b'[' * 100000, ":1: JSON"), ("7", b'\n\n', "no document")):
        write(name + ".jsonl", data)
        bad(65, name + ".jsonl" + (message if message[0] == ":" else ": " + message), "prepare", name + ".jsonl", "-o", "n")
    bad(66, "gone.txt: No such file", "prepare", "gone.txt", "-o", "n")
    bad(65, ".: a folder", "prepare", ".", "-o", "n")
    bad(73, "cannot write no/n.bin", "prepare", "a.txt", "-o", "no/n")
    assert not [f for f in os.listdir(".") if f.startswith("n.") or "tmp" in f], os.listdir(".")
    bad(64, "did you mean bytes", "prepare", "a.txt", "-o", "n", "--tokenizer", "byte")
    bad(64, "did you mean jsonl", "prepare", "a.txt", "-o", "n", "--format=json")
    bad(64, "needs an INPUT", "prepare", "-o", "n")
    bad(64, "needs -o", "prepare", "a.txt")
    bad(64, "no command 'prepair'; did you mean 'prepare'?", "prepair", "a.txt")
    bad(64, "no command 'xyzzy'; see mtdata --help", "xyzzy")
    bad(66, "mtdata prepare makes token files: mtdata prepare TEXT -o gone", "inspect", "gone")
    bad(66, "m.bin.idx: No such file or directory; did you mean 'm'?", "samples", "m.bin", "--seq", "2")
    # a prefix that is written again is replaced
    good("prepare", "l.txt", "-o", "t")
    assert tokens("t") == [list(b"a b\n\nlast") + [256]]


def progress():
    """a bar on a terminal, silence elsewhere"""
    write("big.txt", b"x" * 3000000)
    assert not run("prepare", "big.txt", "-o", "big").stderr
    master, slave = pty.openpty()
    p = subprocess.Popen([MTDATA, "prepare", "-", "-o", "big"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                         stderr=slave, env=os.environ | {"TERM": "xterm"})
    os.close(slave)
    import time
    for _ in range(4):
        p.stdin.write(b"y" * 100000)
        p.stdin.flush()
        time.sleep(0.12)
    p.stdin.close()
    assert p.wait() == 0
    shown = b""
    try:
        while True:
            more = os.read(master, 4096)
            if not more:
                break
            shown += more
    except OSError:
        pass
    assert b"docs/s" in shown and b"MB/s" in shown and b"\r" in shown, shown
    os.close(master)


def inspect():
    out = good("inspect", "j")
    assert "27 tokens of u16 in 5 sequences, 5 documents" in out and "1 to 11" in out, out
    for name in ("j", "j.idx", "j.bin"):
        x = json.loads(good("inspect", name, "--json", "--scan", "--show", "0"))
        assert x["tokens"] == 27 and x["largest_id"] == 256 and x["least_id"] == 0 and x["shown"] == [111, 110, 101, 256], x
    assert 'as bytes: "one"' in good("inspect", "j", "--show=0")
    bad(64, "there are 5 sequences", "inspect", "j", "--show", "5")
    bad(66, "gone.idx", "inspect", "gone")
    bad(64, "needs one PREFIX", "inspect")
    write("cut.idx", open("j.idx", "rb").read()[:50])
    write("cut.bin", b"")
    bad(65, "cut.idx: 5 sequences", "inspect", "cut")
    bad(64, "--show -1 is too small: at least 0", "inspect", "j", "--show", "-1")


def samples():
    x = json.loads(good("samples", "j", "--seq", "5", "--seed", "3", "--size", "4", "--json"))
    assert x["train"]["len"] == 5 and x["valid"] is None and len(x["train"]["samples"]) == 5, x
    assert x["train"]["samples"][0]["tokens"][1:] == x["train"]["samples"][0]["labels"][:-1]
    assert "train: 5 samples of 5 tokens" in good("samples", "j", "--seq", "5", "--seed", "3")
    x = json.loads(good("samples", "0.3", "j", "0.7", "l", "--seq=2", "--seed=3", "--size=9", "--json", "--first", "2"))
    assert x["train"]["len"] == 10 and len(x["train"]["dataset_id"]) == 10 and len(x["train"]["samples"]) == 2
    assert x == json.loads(good("samples", "0.3 j 0.7 l", "--seq=2", "--seed=3", "--size=9", "--json", "--first", "2"))
    x = json.loads(good("samples", "j", "--seq=2", "--split", "1,1", "--which=valid", "--json"))
    assert "train" not in x and x["valid"]["documents"] == [2, 5], x
    write("eight.txt", b"1234567")
    good("prepare", "eight.txt", "-o", "eight")
    bad(65, "eight: the train split needs 9 tokens, has 8", "samples", "eight", "--seq=8")
    bad(65, "there is no such split", "samples", "eight", "--seq=8", "--which=test")
    bad(64, "did you mean valid", "samples", "eight", "--seq=8", "--which=valyd")
    bad(64, "--first -5 is too small: at least 0", "samples", "j", "--seq=5", "--first", "-5")
    bad(64, "--pad -2 is too small: at least -1", "samples", "j", "--seq=5", "--pad=-2")
    bad(64, "--size: ", "samples", "j", "--seq=5", "--size=1,2,3,4")
    bad(64, "'x' is not a whole number", "samples", "j", "--seq=5", "--size=x")
    bad(64, "'5x' is not a whole number", "samples", "j", "--seq=5x")
    bad(64, "fits in 64 bits", "samples", "j", "--seq=99999999999999999999")
    bad(64, "seed 4294967296", "samples", "j", "--seq=5", "--seed=4294967296")
    bad(64, "needs --seq", "samples", "j")
    bad(64, "do not go together", "samples", "j", "--seq=5", "--train-data=j")
    bad(65, "memory", "samples", "j", "--seq=5", "--size=%d" % 10**15)


def command_line():
    for command in ((), ("prepare",), ("inspect",), ("samples",)):
        out = good(*command, "--help")
        assert out.startswith("usage: mtdata"), out
        assert max(map(len, out.split("\n"))) <= 110, out
    assert "(default 0.005)" in good("samples", "-h")
    assert "(default 0.005)" in good("samples", "--surplus=1", "--help")
    bad(64, "usage: mtdata COMMAND")
    bad(64, "did you mean 'samples'?", "sample")
    bad(64, "unknown option --seded, did you mean --seed?", "samples", "--seded", "3")
    bad(64, "unknown option --jsn, did you mean --json?", "inspect", "--jsn")
    bad(64, "unknown option --zzzzzz (mtdata samples --help", "samples", "--zzzzzz")
    bad(64, "unknown option -z", "inspect", "-z", "j")
    bad(64, "--json takes no value", "inspect", "--json=1", "j")
    bad(64, "--out needs a value: --out PREFIX", "prepare", "a.txt", "--out")
    bad(64, "--out needs a value", "prepare", "a.txt", "--out", "--quiet")
    bad(64, "-o needs a value", "prepare", "a.txt", "-o")
    write("-dash", b"x")
    good("prepare", "-oq", "--", "-dash")
    assert tokens("q") == [[120, 256]]
    p = subprocess.run([MTDATA, "samples", "j", "--seq=5", "--json"], stdout=open("/dev/full", "w"), stderr=subprocess.PIPE)
    assert p.returncode == 74 and b"standard output" in p.stderr, p


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for check in (prepare, progress, inspect, samples, command_line):
        check()
