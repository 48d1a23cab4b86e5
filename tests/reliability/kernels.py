"""Small computations that fusion, memory reuse and odd sizes have broken in other systems, compiled and run.
A value is read as the gradient of a probe: loss = sum of probe · y.

usage: kernels.py MTC MTRUN MTDATA [CASE…]"""

from mt import *

HEAD = """
dim batch
%(dims)s
parallel { mesh pp = 1, dp = 1, ep = 1, cp = 1, tp = 1 }
model M(one: [batch]) -> loss: f32[] {
%(body)s
  loss = stepmean[batch](one * (%(loss)s))
}
train { micro_batch = 1; global_batch = 1; steps = 1; optimizer = sgd(lr = 1) }
"""


def compute(dims, params, body, outputs, dtype="f64", code=0, options=()):
    """dims: name -> extent. params: name -> (dims, values). outputs: expression -> its dims. The values of
    the outputs by name, and d(sum of outputs with weights 1, 2, …)/d(params) under their names"""
    lines, init, terms = [], {}, []
    for name, (of, values) in params.items():
        lines.append("  param %s: [%s] ~ zeros" % (name, ", ".join(of)))
        init[name] = reals([dims[d] for d in of], values)
    for i, (y, of) in enumerate(outputs.items()):
        n = math.prod(dims[d] for d in of)
        lines.append("  param probe%d: [%s] ~ zeros" % (i, ", ".join(of)))
        init["probe%d" % i] = reals([dims[d] for d in of], range(1, n + 1))
        terms.append("sum[%s](probe%d * %s)" % (", ".join(of), i, y) if of else "probe%d * %s" % (i, y))
    text = HEAD % {
        "dims": "\n".join("dim %s = %s" % (d, n) for d, n in dims.items()),
        "body": "\n".join(lines + ["  " + s for s in body]),
        "loss": " + ".join(terms),
    }
    if code:
        return compile(text, *floats(dtype), *options, code=code)
    save("one", {"one": reals((1, 1, 1), [1], dtype.upper())})
    save("w", init)
    r = run(compile(text, *floats(dtype), *options), "--batches", "one", "--init", "w")
    out = {y: list(r.grads["probe%d" % i]) for i, y in enumerate(outputs)}
    return out, {name: list(r.grads[name]) for name in params}


@case
def guard_of_a_pad():
    # K01 github.com/pytorch/pytorch/issues/189895: a sum over 16384, then a zero put before it
    y, _ = compute(
        {"n": 16384, "two": 2},
        {"x": (["n"], [1] * 16384)},
        ["s = shift[two](expand[two](sum[n](x)), 1)", "t = stack[two](0.0, sum[n](x))"],
        {"s": ["two"], "t": ["two"]},
        "f32",
    )
    same(y, {"s": [0, 16384], "t": [0, 16384]})


@case
def alias():
    # K02 github.com/pytorch/pytorch/pull/100332: y is a view of a, and a is used again
    y, dx = compute(
        {"n": 3, "b": 3, "one": 1},
        {"x": (["n"], [1, 2, 3])},
        ["a = x * 1", "y = merge[one, n -> b](expand[one](a))", "z = a + 1"],
        {"y": ["b"], "z": ["n"]},
    )
    same(y, {"y": [1, 2, 3], "z": [2, 3, 4]})
    same(dx["x"], [2, 4, 6])
    y, dx = compute(
        {"n": 3},
        {"x": (["n"], [1, 2, 3])},
        ["a = exp(x)", "b = a", "a = a + b", "c = a * b"],
        {"b": ["n"], "a": ["n"], "c": ["n"]},
    )
    near(y["b"], [math.exp(v) for v in (1, 2, 3)], 1e-14)
    near(y["a"], [2 * math.exp(v) for v in (1, 2, 3)], 1e-14)
    near(y["c"], [2 * math.exp(2 * v) for v in (1, 2, 3)], 1e-14)
    near(dx["x"], [i * (3 * math.exp(i) + 4 * math.exp(2 * i)) for i in (1, 2, 3)], 1e-13)


@case
def mutation():
    # K03 github.com/pytorch/pytorch/pull/196639: softmax, with a doubled copy of its input beside it
    y, _ = compute(
        {"n": 2},
        {"x": (["n"], [0, 1])},
        ["c = x * 1", "c = c + c", "y = softmax[n](x)"],
        {"y": ["n"], "c": ["n"]},
    )
    near(y["y"], [0.2689414213699951, 0.7310585786300049], 1e-14)
    same(y["c"], [0, 2])


@case
def columns():
    # K05 github.com/karpathy/llm.c/pull/445: gradients of a norm's bias and of a bias, for channels that fill
    # no block
    for c in (33, 1, 31, 32, 63, 65, 1600) if LONG else (33, 1, 65):
        y, dx = compute(
            {"c": c, "t": 6},
            {
                "x": (["t", "c"], [math.sin(i) for i in range(6 * c)]),
                "g": (["c"], [1] * c),
                "b": (["c"], [0] * c),
                "o": (["c"], [0] * c),
            },
            ["y = layernorm[c](x, g, b)", "l = sum[t, c](y)", "h = sum[t, c](x + o)"],
            {"l": [], "h": []},
            "f32",
        )
        same(dx["b"], [6] * c, "channels %d" % c)
        same(dx["o"], [6] * c, "channels %d" % c)
        if c == 1:  # K14: nothing varies, so the norm is its bias
            same(dx["g"], [0])
            same(dx["x"], [1] * 6)


@case
def slice_past_the_end():
    # K07 github.com/openxla/xla/issues/49122, /49118: refused when compiled, on one rank and on two
    dims = {"r": 2, "n": 8, "part": 6}
    params = {"x": (["r", "n"], range(16))}
    y, dx = compute(dims, params, ["y = slice[n -> part](x, at = 2)"], {"y": ["r", "part"]})
    same(y["y"], [2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15])
    same(dx["x"], [0, 0, 1, 2, 3, 4, 5, 6, 0, 0, 7, 8, 9, 10, 11, 12])
    for at in (7, 3, -1, 2**31, 2**52):
        for options in (), ("--mesh", "tp=2", "--map", "r -> tp"):
            said = compute(
                dims,
                params,
                ["y = slice[n -> part](x, at = %d)" % at],
                {"y": ["r", "part"]},
                code=1,
                options=options,
            )
            assert "error MT" in said and "slice" in said, said


@case
def strides():
    # K08 github.com/Dao-AILab/flash-attention/issues/355, ggml-org/llama.cpp/pull/21467: what comes back
    # through a transpose, slice, expand, merge is no row-major block
    dims = {"a": 2, "b": 3, "ab": 6, "ba": 6, "w": 2}
    x = {"x": (["a", "b"], [1, 2, 3, 4, 5, 6])}
    y, dx = compute(
        dims, x, ["y = merge[b, a -> ba](x)"], {"y": ["ba"]}
    )  # = transpose, weights [[1,2],[3,4],[5,6]]
    same(y["y"], [1, 4, 2, 5, 3, 6])
    same(dx["x"], [1, 3, 5, 2, 4, 6])
    rows = {
        "exp(x)": lambda v: math.exp(v),
        "x * x": lambda v: 2 * v,
        "tanh(x)": lambda v: 1 - math.tanh(v) ** 2,
    }
    for op, slope in rows.items():
        y, dx = compute(dims, x, ["y = merge[b, a -> ba](%s)" % op], {"y": ["ba"]})
        near(dx["x"], [slope(v) * c for v, c in zip((1, 2, 3, 4, 5, 6), (1, 3, 5, 2, 4, 6))], 1e-13, op)
    # reductions, a product and a norm fed through slices and expanded values
    y, dx = compute(
        dims,
        x,
        [
            "t = slice[b -> w](x, at = 1)",
            "s = sum[a](t)",
            "p = t @[w] s",
            "q = sum[w](expand[b](t) * expand[w](x))",
        ],
        {"s": ["w"], "p": ["a"], "q": ["a", "b"]},
    )
    same(
        y,
        {
            "s": [7, 9],
            "p": [2 * 7 + 3 * 9, 5 * 7 + 6 * 9],
            "q": [5 * 1, 5 * 2, 5 * 3, 11 * 4, 11 * 5, 11 * 6],
        },
    )
    t, want = [[2, 3], [5, 6]], []
    for i in range(2):
        for j in range(3):
            d = 5 * (1 + j) if i == 0 else 11 * (4 + j)  # of q: the weight times the sum of t
            if j:
                k = j - 1
                d += k + 1 + (i + 1) * (7, 9)[k] + 1 * t[0][k] + 2 * t[1][k]
                d += sum((3 * i + n + 1) * (1 + n if i == 0 else 4 + n) for n in range(3))
            want.append(d)
    near(dx["x"], want, 1e-14)


@case
def one_entry():
    # K14 github.com/pytorch/pytorch/issues/102546, csarofeen/pytorch/issues/390: axes of one entry, and
    # values without any
    dims = {"a": 3, "one": 1}
    x = [1.5, -2, 4]
    y, dx = compute(
        dims,
        {"x": (["a", "one"], x), "g": (["one"], [3]), "b": (["one"], [0.25]), "s": ([], [5])},
        [
            "m = mean[one](x)",
            "t = sum[one](x)",
            "h = max[one](x)",
            "p = softmax[one](x)",
            "n = layernorm[one](x, g, b)",
            "c = cumsum[one](x)",
            "q = s * s",
            "r = max(s, 2)",
        ],
        {
            "m": ["a"],
            "t": ["a"],
            "h": ["a"],
            "p": ["a", "one"],
            "n": ["a", "one"],
            "c": ["a", "one"],
            "q": [],
            "r": [],
        },
    )
    same(y, {"m": x, "t": x, "h": x, "p": [1] * 3, "n": [0.25] * 3, "c": x, "q": [25], "r": [5]})
    same(dx, {"x": [4, 8, 12], "g": [0], "b": [6], "s": [11]})


@case
def one_mask():
    # R02 github.com/allenai/OLMo-core/pull/828, pytorch/pytorch/issues/190758: the gradient sees the
    # forward's dropout mask: the loss is twice what was kept, and so is its slope
    text = """
dim batch
dim n = 1000
model M(x: [batch, n]) -> loss: f32[] {
  param w: [] ~ ones
  loss = stepmean[batch](sum[n](dropout(x * w, 0.5)))
}
train { micro_batch = 2; global_batch = 4; steps = 3; optimizer = sgd(lr = 0) }
"""
    save("b", {"x": reals((3, 2, 2, 1000), [1] * 12000)})
    r = run(compile(text, *floats("f64")), "--batches", "b")
    same(r.grads["w"][0], r.log[0]["loss"])
    losses = [line["loss"] for line in r.log]
    assert len(set(losses)) == 3 and all(900 < loss < 1100 for loss in losses), losses
    same(run(compile(text, *floats("f64"), train_micro_batch=1), "--batches", "b").log[0]["loss"], losses[0])
    assert run(compile(text, *floats("f64"), train_seed=5), "--batches", "b").log[0]["loss"] != losses[0]


@case
def embedding_gradient():
    # K15 github.com/karpathy/llm.c/pull/442: 4096 times the same token: the same bits each time, with any
    # number of threads, and the true sum
    text = """
dim batch
dim seq = 4096
dim vocab = 5
dim d = 8
model M(tokens: i32[batch, seq], c: [batch, seq, d]) -> loss: f32[] {
  x = Embedding[vocab, d](tokens) as wte
  loss = sum[batch, seq, d](f32(x * c))
}
train { micro_batch = 1; global_batch = 1; steps = 1 }
"""
    values = [math.sin(i) for i in range(4096 * 8)]
    save("b", {"tokens": ints((1, 1, 1, 4096), [3] * 4096), "c": reals((1, 1, 1, 4096, 8), values, "F32")})
    for dtype in "f32", "bf16":
        plan, got = compile(text, *floats(dtype)), set()
        for i in range(6):
            run(plan, "--batches", "b", threads=1 + i % 3)
            got.add(bytes_of("grads.out"))
        same(len(got), 1, dtype)
        g = load("grads.out")["wte.weight"]
        rounded = values if dtype == "f64" else [narrow(v, dtype) for v in values]
        near(g[24:32], [math.fsum(rounded[k::8]) for k in range(8)], 1e-6 * 64, dtype)
        same([x for i, x in enumerate(g) if not 24 <= i < 32], [0] * 32)


@case
def experts_compute_what_came():
    # 8 experts, 2 of them for a token: products run over the tokens that came, not over all places
    hidden, inter, ctx, k, layers = 64, 96, 128, 2, 2
    with open(os.path.join(MODELS, "moe.mt")) as f:
        (line,) = [i + 1 for i, text in enumerate(f) if "@[embed] w13" in text]
    sizes = dict(hidden=hidden, layers=layers, nheads=4, nkv=2, headdim=16, inter=inter, nvocab=257, ctx=ctx, nexp=8, topk=k)
    train = dict(train_micro_batch=2, train_global_batch=2, train_steps=3, train_schedule__warmup=0)
    feed = ["--data", prepare("text", ["abcdefgh " * 100, "hgfedcba " * 90])]
    for dtype in "f64", "f32", "bf16":
        plan = compile(os.path.join(MODELS, "moe.mt"), *floats(dtype), **sizes, **train)
        run(plan, *feed, "--profile-json", "profile")
        with open("profile") as f:
            profile = json.load(f)
        rows = [r for r in profile["rows"] if r["kind"] == "gemm" and r["line"].split(":")[-2] == str(line)]
        done = sum(r["flops"] for r in rows) / profile["steps"]
        least = 2 * ctx * k * layers * 3 * (3 * hidden * inter) * 2  # samples, tokens … forward and two gradients
        assert 0.999 < done / least < (1.1 if dtype != "bf16" else 1.5), (dtype, done / least)


def narrow(v, dtype):
    """to the nearest f32 or bf16"""
    (bits,) = struct.unpack("<I", struct.pack("<f", v))
    if dtype == "bf16":
        bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return struct.unpack("<f", struct.pack("<I", bits))[0]


main()
