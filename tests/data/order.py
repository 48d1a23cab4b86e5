#!/usr/bin/env python3
"""The order of samples, through `mtdata samples --json`.

recorded: every case of order/cases.json, which Megatron-LM itself produced (its arrays, hashes and tokens).
random:   configurations drawn from a seed, against the small model of the order below.
usage: order.py MTDATA [COUNT [SEED]]
"""
import hashlib, json, math, os, random, re, struct, subprocess, sys, tempfile

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "order")
EOD = 499


# ---- the model ---------------------------------------------------------------------------------------------------
class Twister:
    def __init__(self, seed):
        self.s = [seed]
        for i in range(1, 624):
            self.s.append((1812433253 * (self.s[-1] ^ self.s[-1] >> 30) + i) % 2**32)
        self.at = 624

    def draw(self):
        if self.at == 624:
            s = self.s
            for i in range(624):
                y = s[i] & 2**31 | s[(i + 1) % 624] & 2**31 - 1
                s[i] = s[(i + 397) % 624] ^ y >> 1 ^ 0x9908B0DF * (y & 1)
            self.at = 0
        y = self.s[self.at]
        self.at += 1
        y ^= y >> 11
        y ^= y << 7 & 0x9D2C5680
        y ^= y << 15 & 0xEFC60000
        return y ^ y >> 18

    def shuffled(self, a):
        a = list(a)
        for i in reversed(range(1, len(a))):
            j = 2**32
            while j > i:
                j = self.draw() & 2 ** i.bit_length() - 1
            a[i], a[j] = a[j], a[i]
        return a


def pairwise(a):
    n = len(a)
    if n > 128:
        h = n // 16 * 8
        return pairwise(a[:h]) + pairwise(a[h:])
    if n < 8:
        r, rest = [0.0], a
    else:
        k = n // 8 * 8
        r, rest = list(a[:8]), a[k:]
        for i in range(8, k):
            r[i % 8] += a[i]
    while len(r) > 1:
        r = [x + y for x, y in zip(r[::2], r[1::2])]
    for x in rest:
        r[0] += x
    return r[0]


def normal(w):
    return [x / pairwise(w) for x in w]


def float32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def cut(text, n):
    """the ranges of the three splits, None where absent"""
    v = [float(x) for x in re.findall(r"[0-9.]+", text)]
    v, edge, out = normal((v + [0.0] * 3)[:3]), 0.0, []
    for x in v:
        out.append((round(edge * n), round((edge + x) * n)) if edge + x > edge else None)
        edge += x
    return out


class Refused(Exception):
    pass


class One:
    """one source, one split"""

    def __init__(self, docs, beg, end, want, partial, c):
        L, x, T = c["seq"], c["add_extra"], sum(map(len, docs[beg:end]))
        self.docs, self.beg, self.end, self.want, self.c = docs, beg, end, want, c
        if T < 2 or L < 2:
            raise Refused
        E = max(1, math.ceil((want * L + x) / T)) if want is not None else 1
        while want is not None and (E - 1) * T >= want * L + x and E > 1:
            E -= 1  # where the division above was inexact
        apart = before = 0
        if E > 1:
            before = ((E - 1) * T - x) // L
            apart = int(want - before < int(0.80 * ((T - x) // L)))
        g = Twister(c["seed"])
        self.D = g.shuffled(list(range(beg, end)) * (E - apart))
        if apart:
            self.D += g.shuffled(range(beg, end))
        N = math.ceil(float32(float32(E * T - x) / float32(L))) if partial else (E * T - x) // L
        # the windows, by counting tokens: a boundary token belongs to the document that holds it
        self.S, p, off = [(0, 0)], 0, 0
        for _ in range(N):
            left = L + x
            while len(docs[self.D[p]]) - off < left and p < len(self.D) - 1:
                left -= len(docs[self.D[p]]) - off
                p, off = p + 1, 0
            off = min(off + left, len(docs[self.D[p]])) - x
            self.S.append((p, off))
        before = before if apart else 0
        self.P = g.shuffled(range(before)) + g.shuffled(range(before, N))
        self.n = N

    def item(self, i):
        k, x, D = self.P[i], self.c["add_extra"], self.D
        (p, o), (q, e) = self.S[k], self.S[k + 1]
        if p == q:
            t = self.docs[D[p]][o : e + x]
        else:
            t = self.docs[D[p]][o:] + sum((self.docs[D[j]] for j in range(p + 1, q)), []) + self.docs[D[q]][: e + x]
        pad, L = self.c["pad"], self.c["seq"]
        t = t + [None] * (L + 1 - len(t))
        m, pos, at = [], [], 0
        for a, b in zip(t[:L], t[1 : L + 1]):
            m.append(int(b not in (None, pad) and not (self.c["eod_mask_loss"] and a == EOD)))
            pos.append(at)
            at = 0 if self.c["reset_position_ids"] and a == EOD else at + 1
        t = [0 if a in (None, pad) else a for a in t]
        return {"t": t[:L], "l": t[1 : L + 1], "m": m, "p": pos}


def interleave(w, n, limit=None):
    count, ids, sub = [0] * len(w), [], []
    for i in range(n):
        open_ = [k for k in range(len(w)) if not limit or count[k] < limit[k]]
        k = max(open_, key=lambda k: (w[k] * float(max(i, 1)) - count[k], -k))
        ids.append(k)
        sub.append(count[k])
        count[k] += 1
    return ids, sub, count


class Mixed:
    """one split of a blend"""

    def __init__(self, stores, weights, size, ranges, partial, c):
        if weights:
            if size is None:
                raise Refused
            w = normal([float(x) for x in weights])
            target = [math.ceil(size * x) for x in w]
            want = [math.ceil(t * (1.0 + c["surplus"])) for t in target]
        else:
            want = [None] * len(stores)
        self.mid = [One(d, *r, q, partial, c) for d, r, q in zip(stores, ranges, want)]
        lens = [m.n for m in self.mid]
        limit = None
        if weights:
            n, self.w = sum(target), normal(w)
        else:
            if min(lens) < 1:
                raise Refused
            n, self.w = sum(lens), lens
            if size is None:
                limit, share = lens, [x / n for x in lens]
            else:
                n, self.w = min(size, n), normal([float(x) for x in lens])
        self.ids, self.sub, count = interleave(share if limit else self.w, n, limit)
        if any(a > b for a, b in zip(count, lens)):
            raise Refused
        self.n = n

    def item(self, i):
        return self.mid[self.ids[i]].item(self.sub[i])


def build(c, stores):
    out = {}
    for k, name in enumerate(("train", "valid", "test")):
        own = "per_split" in c
        names, weights = (c["per_split"][k] or (None, None)) if own else (c["data"], c["weights"])
        partial = k == 1 and not c["drop_last_valid"]
        if names is None or not own and cut(c["split"], 1)[k] is None:
            out[name] = None
            continue
        docs = [stores[n] for n in names]
        ranges = [(0, len(d)) if own else cut(c["split"], len(d))[k] for d in docs]
        if len(names) == 1 and (own or not weights):
            out[name] = One(docs[0], *ranges[0], c["sizes"][k], partial, c)
        else:
            out[name] = Mixed(docs, weights, c["sizes"][k], ranges, partial, c)
    return out


# ---- the program -------------------------------------------------------------------------------------------------
def words(names, weights):
    return sum(([repr(w), n] for w, n in zip(weights, names)), []) if weights else list(names)


def run(mtdata, c, folder, more=()):
    a = [mtdata, "samples", "--json", "--seq=%d" % c["seq"], "--seed=%d" % c["seed"], "--pad=%d" % c["pad"], "--eod=%d" % EOD,
         "--size=" + ",".join("none" if s is None else str(s) for s in c["sizes"]), "--extra=%d" % c["add_extra"],
         "--surplus=%r" % c["surplus"], *more]
    a += ["--keep-partial-valid"] * (not c["drop_last_valid"]) + ["--eod-mask"] * c["eod_mask_loss"]
    a += ["--reset-positions"] * c["reset_position_ids"]
    if "per_split" in c:
        for name, d in zip(("train", "valid", "test"), c["per_split"]):
            if d:
                a += ["--%s-data" % name, " ".join(words(*d))]
    else:
        a += ["--split", c["split"]] + words(c["data"], c["weights"])
    p = subprocess.run(a, cwd=folder, capture_output=True, text=True)
    assert p.returncode in (0, 64, 65), (a, p.returncode, p.stderr[-2000:])
    return (json.loads(p.stdout) if p.returncode == 0 else None), p.stderr, a


def equal(what, got, want):
    if got != want:
        i = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), "length") if isinstance(got, list) else ""
        raise SystemExit("%s differs %s\n got  %s\n want %s" % (what, i, str(got)[:300], str(want)[:300]))


def same_array(what, got, rec, fmt):
    b = struct.pack("<%d%s" % (len(got), fmt), *got)
    equal(what + " length", len(got), rec["n"])
    equal(what, got[:16], rec.get("v", rec.get("head"))[:16])
    equal(what + " tail", got[-16:], rec.get("v", rec.get("tail"))[-16:])
    equal(what + " hash", hashlib.sha256(b).hexdigest(), rec["sha256"])


def same_recorded(what, got, rec):
    if rec.get("kind") != "blend":
        for k in ("requested", "documents", "len"):
            equal(what + " " + k, got[k], rec[k])
        for k, f in (("document_index", "i"), ("sample_index", "i"), ("shuffle_index", "I")):
            same_array(what + " " + k, got[k], rec[k], f)
    else:
        equal(what + " len", got["len"], rec["len"])
        equal(what + " weights", got["weights"], [float.fromhex(x) if isinstance(x, str) else x for x in rec["weights"]])
        same_array(what + " dataset_id", got["dataset_id"], rec["dataset_id"], "h")
        same_array(what + " sample_id", got["sample_id"], rec["sample_id"], "q")
        equal(what + " sources", len(got["mid"]), len(rec["mid"]))
        for k, (a, b) in enumerate(zip(got["mid"], rec["mid"])):
            same_recorded("%s source %d" % (what, k), a, b)
    for s in rec.get("samples", []):
        x = got["samples"][s["i"]]
        for k, long in (("i", "i"), ("t", "tokens"), ("l", "labels"), ("m", "mask"), ("p", "positions")):
            if k in s:
                equal("%s sample %d %s" % (what, s["i"], long), x[long], s[k])


def recorded(mtdata):
    cases = json.load(open(os.path.join(HERE, "cases.json")))["cases"]
    for c in cases:
        got, err, _ = run(mtdata, c, HERE)
        if "error" in c:
            assert got is None and "raise the surplus" in err, c["name"] + " must be refused"
            continue
        assert got, (c["name"], err)
        for split, rec in c["out"].items():
            what = c["name"] + " " + split
            if rec is None:
                equal(what, got[split], None)
            else:
                same_recorded(what, got[split], rec)


def same_model(what, got, m):
    equal(what + " len", got["len"], m.n)
    if isinstance(m, One):
        equal(what + " documents", got["documents"], [m.beg, m.end])
        equal(what + " document_index", got["document_index"], m.D)
        equal(what + " sample_index", got["sample_index"], [v for s in m.S for v in s])
        equal(what + " shuffle_index", got["shuffle_index"], m.P)
    else:
        equal(what + " weights", got["weights"], m.w)
        equal(what + " dataset_id", got["dataset_id"], m.ids)
        equal(what + " sample_id", got["sample_id"], m.sub)
        for k, x in enumerate(m.mid):
            same_model("%s source %d" % (what, k), got["mid"][k], x)
    for s in got.get("samples", []):
        x = m.item(s["i"])
        for k, long in (("t", "tokens"), ("l", "labels"), ("m", "mask"), ("p", "positions")):
            if long in s:
                equal("%s sample %d %s" % (what, s["i"], long), s[long], x[k])


def write_store(prefix, docs, r):
    code, fmt, = r.choice(((8, "H"), (4, "i"), (5, "q"), (3, "h")))
    size, at, offsets = struct.calcsize(fmt), 0, []
    with open(prefix + ".bin", "wb") as f:
        for d in docs:
            offsets.append(at)
            at += f.write(struct.pack("<%d%s" % (len(d), fmt), *d))
    n = len(docs)
    with open(prefix + ".idx", "wb") as f:
        f.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, n, n + 1))
        f.write(struct.pack("<%di" % n, *map(len, docs)) + struct.pack("<%dq" % n, *offsets))
        f.write(struct.pack("<%dq" % (n + 1), *range(n + 1)))


def random_store(r):
    n, most = r.choice((1, 2, 3, 5, 9, 30, 60)), r.choice((1, 3, 20, 60))
    docs = [[r.randrange(499) for _ in range(r.randint(0, most))] for _ in range(n)]
    for d in docs:
        if d and r.random() < 0.8:
            d[-1] = EOD
    return docs


def random_case(r, names):
    size = lambda: r.choice((None, 0, 1, r.randint(1, 60), r.randint(1, 300)))
    source = lambda: (lambda k: ([r.choice(names) for _ in range(k)], r.choice((None, [r.choice((0.1, 1.0, 0.3, 7.0, r.random() + 1e-3)) for _ in range(k)]))))(r.choice((1, 1, 2, 3, 9)))
    c = {"seq": r.choice((1, 2, 3, 5, 8, 16, 33)), "seed": r.choice((0, 1, 1234, 2**32 - 1, r.randrange(2**32))),
         "sizes": [size(), size(), size()], "pad": r.choice((-1, -1, 17)), "add_extra": r.choice((1, 1, 1, 0)),
         "drop_last_valid": r.randint(0, 1), "eod_mask_loss": r.randint(0, 1), "reset_position_ids": r.randint(0, 1),
         "surplus": r.choice((0.005, 0.005, 0.0, 0.5))}
    if r.random() < 0.2:
        c["per_split"] = [r.choice((None, source())) for _ in range(3)]
        if not any(c["per_split"]):
            c["per_split"][0] = source()
    else:
        c["data"], c["weights"] = source()
        c["split"] = r.choice(("1,0,0", "1,0,0", "80,15,5", "50,50", "990,10,0", "0.7, 0.15 0.15", "0,1,1", "%d,%d,%d" % (r.randint(0, 9), r.randint(0, 9), r.randint(1, 9))))
    return c


def drawn(mtdata, count, seed):
    r, ran = random.Random(seed), 0
    with tempfile.TemporaryDirectory() as folder:
        for i in range(count):
            if i % 20 == 0:
                stores = {n: random_store(r) for n in "abcd"}
                for n, docs in stores.items():
                    write_store(os.path.join(folder, n), docs, r)
            c = random_case(r, "abcd")
            what = "seed %d case %d %s:" % (seed, i, json.dumps(c))
            try:
                want = build(c, stores)
            except Refused:
                want = None
            got, err, args = run(mtdata, c, folder)
            if want and all(m is None or m.n == 0 and c["sizes"][k] is None for k, m in enumerate(want.values())):
                want = None  # nothing was asked for and there is nothing
            if want is None or got is None:
                if want or got:
                    raise SystemExit("%s %s, mtdata %s %s\n%s" % (what, "right" if want else "to be refused", err, "" if got is None else "took it", " ".join(args)))
                continue
            ran += 1
            for split, m in want.items():
                if m is None:
                    equal(what + split, got[split], None)
                else:
                    same_model(what + split, got[split], m)
    assert ran > count / 5, "only %d of %d configurations were possible" % (ran, count)


if __name__ == "__main__":
    mtdata = os.path.abspath(sys.argv[1])
    recorded(mtdata)
    drawn(mtdata, int(sys.argv[2]) if len(sys.argv) > 2 else 150, int(sys.argv[3]) if len(sys.argv) > 3 else 1)
