"""What a run reads: token files that are long, short, narrow or wrong, the order after a stop, documents
packed in one sample.

usage: data.py MTC MTRUN MTDATA [CASE…]"""

from mt import *

CODE = {"u8": (1, "B"), "i32": (4, "i"), "u16": (8, "H")}  # number of the format in an index


def token_file(name, dtype, documents, holes=False):
    """NAME.bin and NAME.idx; a document is a list of ids, or a count of zeros that take no room on the disk.
    holes: those counts are no documents, only room between others"""
    number, code = CODE[dtype]
    width, lengths, offsets, at = struct.calcsize(code), [], [], 0
    with open(name + ".bin", "wb") as f:
        for d in documents:
            n = d if isinstance(d, int) else len(d)
            if not (holes and isinstance(d, int)):
                lengths.append(n)
                offsets.append(at)
            if not isinstance(d, int):
                f.seek(at)
                f.write(struct.pack("<%d%s" % (n, code), *d))
            at += n * width
        f.truncate(at)
    n = len(lengths)
    write(
        name + ".idx",
        b"MMIDIDX\0\0"
        + struct.pack("<QBQQ", 1, number, n, n + 1)
        + struct.pack("<%di" % n, *lengths)
        + struct.pack("<%dq" % n, *offsets)
        + struct.pack("<%dq" % (n + 1), *range(n + 1)),
    )


# the loss is the mean id, whatever w is
MEAN = """
config { ctx = 8; nvocab = 256 }
dim batch
dim seq = ctx
dim vocab = nvocab
model M(tokens: i32[batch, seq], labels: i32[batch, seq]) -> loss: f32[] {
  param w: [vocab] ~ ones
  loss = stepmean[batch, seq](float(labels) * gather[vocab](w, tokens), where = labels != -100)
}
precision { compute = f64; params = f64; grads = f64 }
train { micro_batch = 1; global_batch = 1; steps = 1; optimizer = sgd(lr = 0) }
"""


@case
def beyond_31_bits():
    # D01 github.com/EleutherAI/gpt-neox/issues/493, deepspeedai/Megatron-DeepSpeed/pull/106,
    # NVIDIA/Megatron-LM/issues/1056: a last document of 64 sevens behind 2^31 tokens, held out. The tokens
    # before it are a hole of the file here, documents of zeros in the long mode, where their samples are
    # ordered too
    token_file(
        "huge", "u16", [2**27] * 16 + [[7] * 64] if LONG else [[0] * 64, 2**31 - 64, [7] * 64], holes=not LONG
    )
    r = run(
        compile(MEAN, ctx=63),
        "--data",
        "huge",
        "--split",
        "16,1,0" if LONG else "1,1,0",
        "--eval-every",
        1,
        "--eval-samples",
        1,
    )
    same([r.log[0]["loss"], r.log[0]["valid_loss"]], [0, 7])
    assert os.path.getsize("huge.bin") == 2 * (2**31 + 64)


@case
def too_short():
    # D02 github.com/maderix/ANE/pull/17: less than one window
    token_file("eight", "u8", [range(8)])
    token_file("nine", "u8", [range(9)])
    token_file("none", "u8", [])
    plan = compile(MEAN)
    refused(MTRUN, [plan, "--data", "eight"], "needs 9 tokens, has 8", 65)
    near(run(plan, "--data", "nine").log[0]["loss"], sum(range(1, 9)) / 8, 1e-15)
    refused(MTRUN, [plan, "--data", "none"], "none", 65)
    refused(MTRUN, [plan, "--data", "nothing"], "nothing", 66)
    refused(MTRUN, [plan, "--data", "nine", "--split", "0,1,0"], "no sample to train on", 65)


@case
def end_of_the_file():
    # D04 github.com/karpathy/build-nanogpt/issues/105 (+pull/109, /23): windows of 8 in N tokens, in steps of
    # 2 samples on 4 ranks, 8 samples: 1, 1, 2 whole steps an epoch. A tail shorter than a window is left out,
    # a run that is longer goes on with the next epoch
    for n, samples in ((100, 12), (128, 15), (129, 16)):
        token_file("n", "u8", [range(n)])
        seen = json.loads(call([MTDATA, "samples", "n", "--seq", 8, "--seed", 3, "--json"]).stdout)["train"][
            "samples"
        ]
        same(
            sorted(s["tokens"] + s["labels"][-1:] for s in seen),
            [list(range(8 * i, 8 * i + 9)) for i in range(samples)],
        )
        plan = compile(MEAN, train_global_batch=8, train_steps=samples // 8)
        r = run(plan, "--data", "n")
        assert "in 1 epoch" in r.stdout, r.stdout
        r = run(compile(MEAN, train_global_batch=8, train_steps=samples // 8 + 1), "--data", "n")
        assert "in 2 epochs" in r.stdout, r.stdout


# which samples a step has: sample i is all i's, and counts 2^i
WHICH = """
dim batch
dim seq = 4
dim vocab = 16
model M(tokens: i32[batch, seq]) -> (loss: f32[], ids: f32[]) {
  param w: [vocab] ~ ones
  ids = sum[batch](mean[seq](2 ^ float(tokens)))
  loss = mean[batch, seq](gather[vocab](w, tokens))
}
precision { compute = f64; params = f64; grads = f64 }
train { micro_batch = 2; global_batch = 2; steps = 15; optimizer = sgd(lr = 0.1) }
"""


@case
def order_after_a_stop():
    # D07 github.com/huggingface/accelerate/pull/4071, issues/2016: ten samples, two a step, stopped after
    # step 7 in the second epoch
    token_file("ten", "u8", [[i // 4 for i in range(40)]])
    orders = []
    for seed in 1, 2:
        plan = compile(WHICH, train_seed=seed)
        whole = [int(line["ids"]) for line in run(plan, "--data", "ten").log]
        same(sum(whole), 3 * (2**10 - 1), "seed %d: three epochs" % seed)
        run(plan, "--data", "ten", "--steps", 7, "--save", "ck%d" % seed)
        rest = run(plan, "--data", "ten", "--save", "ck%d" % seed, "--resume", "auto")
        same([int(line["ids"]) for line in rest.log], whole[7:])
        one = compile(
            WHICH, train_seed=seed, train_micro_batch=1, plan="one.plan"
        )  # in two microbatches the same samples: ids is their mean
        same([int(2 * line["ids"]) for line in run(one, "--data", "ten").log], whole)
        epoch = compile(WHICH, train_seed=seed, train_steps=5, plan="epoch.plan")
        same(
            sum(int(line["ids"]) for line in run(epoch, "--data", "ten").log),
            2**10 - 1,
            "seed %d: one epoch" % seed,
        )
        orders.append(whole)
    assert orders[0] != orders[1] and orders[0][:5] != orders[0][5:10]
    # other data, another seed, another length of the order: not the same run
    token_file("other", "u8", [[i // 4 for i in range(44)]])
    plan = compile(WHICH, train_seed=1)
    refused(MTRUN, [plan, "--data", "other", "--resume", "ck1/step_00000007"], "made with other data", 65)
    refused(
        MTRUN, [compile(WHICH, train_seed=2), "--data", "ten", "--resume", "ck1/step_00000007"], "seed 1", 65
    )


@case
def wide_ids():
    # D06 github.com/huggingface/transformers/issues/2825, alasdairforsythe/tokenmonster/issues/23,
    # mlfoundations/open_lm/pull/77
    for nvocab, dtype, high in ((119547, "i32", 65541), (65536, "u16", 65535), (119547, "i32", 119546)):
        token_file("wide", dtype, [[high, 3] * 4 + [high]])
        r = run(compile(MEAN, nvocab=nvocab), "--data", "wide")
        near(r.log[0]["loss"], (high + 3) / 2, 1e-15)
        g = r.grads["w"]
        near([g[high], g[3]], [3 * 4 / 8, high * 4 / 8], 1e-15)
        same(sum(x != 0 for x in g), 2)
    # an id that the model does not know, as a token and as the last label: its file, place and value
    for nvocab, dtype, high in (
        (65536, "i32", 65536),
        (65535, "u16", 65535),
        (256, "u16", 65535),
        (65536, "i32", -1),
    ):
        for place in 5, 8:
            ids = [1] * 9
            ids[place] = high
            token_file("bad", dtype, [ids])
            p = refused(
                MTRUN,
                [compile(MEAN, nvocab=nvocab), "--data", "bad"],
                "id %d, the model knows 0 to %d" % (high, nvocab - 1),
                65,
            )
            assert "bad" in p.stderr and str(place) in p.stderr.split("id %d" % high)[0], p.stderr


# documents end with id 9; the probe's gradient is the value
PACKED = """
config { ctx = 7 }
dim batch
dim seq = ctx
dim kseq = seq
dim embed = 6
dim hd = 6
dim vocab = 10
model M(tokens: i32[batch, seq]) -> loss: f32[] {
  param probe: [seq, embed] ~ ones
  x = Embedding[vocab, embed](tokens, std = 1) as wte
  mask = same_segment[seq, kseq](segments[seq](tokens, 9))
  q = rope[seq, hd](Linear[embed, hd](x, bias = false, std = 1) as q)
  k = rope[seq, hd](Linear[embed, hd](x, bias = false, std = 1) as k)
  v = Linear[embed, hd](x, bias = false, std = 1) as v
  a = attention[seq, kseq, hd](q, rename[seq -> kseq](k), rename[seq -> kseq](v), causal = true, where = mask)
  y = x + Linear[hd, embed](a, std = 1) as o
  loss = sum[batch, seq, embed](probe * y * y)
}
precision { compute = %(f)s; params = %(f)s; grads = %(f)s }
train { micro_batch = 1; global_batch = 1; steps = 1; optimizer = sgd(lr = 0) }
"""


def packed(plan, tokens, *options):
    save("t", {"tokens": ints((1, 1, 1, len(tokens)), tokens)})
    return run(plan, "--batches", "t", *options)


@case
def packed_documents():
    # D08 github.com/huggingface/nanoVLM/pull/204, facebookresearch/metaseq/pull/104: [a b c E][d e E],
    # changed in the first document
    for dtype in "f32", "f64":
        text = PACKED % {"f": dtype}
        plan = compile(text)
        r = packed(plan, [1, 2, 3, 9, 4, 5, 9])
        for other in ([7, 2, 3, 9, 4, 5, 9], [0, 0, 0, 9, 4, 5, 9]):
            changed = packed(plan, other)
            same(changed.grads["probe"][24:], r.grads["probe"][24:], "second document")
            assert changed.grads["probe"][:24] != r.grads["probe"][:24]
        changed = packed(plan, [1, 2, 3, 9, 6, 5, 9])
        same(changed.grads["probe"][:24], r.grads["probe"][:24], "first document")
        assert changed.grads["probe"][24:] != r.grads["probe"][24:]
    # gradients of the pack are the sum of those of its documents alone
    whole = packed(plan, [1, 2, 3, 9, 4, 5, 9], "--save", "ck")
    init = load("ck/step_00000001/model.safetensors")
    parts = []
    for n, tokens in ((4, [1, 2, 3, 9]), (3, [4, 5, 9])):
        part = compile(text, ctx=n, plan="part.plan")
        save(
            "w",
            {
                name: reals(
                    {"probe": (n, 6), "wte.weight": (10, 6), "o.bias": (6,)}.get(name, (6, 6)),
                    values[: n * 6] if name == "probe" else values,
                )
                for name, values in init.items()
            },
        )
        parts.append(packed(part, tokens, "--init", "w"))
    for name, g in whole.grads.items():
        if name != "probe":
            near(g, [a + b for a, b in zip(parts[0].grads[name], parts[1].grads[name])], 1e-12, name)
    near(whole.grads["probe"], list(parts[0].grads["probe"]) + list(parts[1].grads["probe"]), 1e-12, "probe")


@case
def prepared_text():
    # D06: any text through the byte tokenizer and back
    text = "".join(map(chr, range(1, 300))) + "\u20ac\U0001f600\n\r\n\0end"
    prefix = prepare("t", [text, "", "x"])
    ids = [
        x for x in struct.unpack("<%dH" % (os.path.getsize(prefix + ".bin") // 2), bytes_of(prefix + ".bin"))
    ]
    want = [b for d in (text, "", "x") for b in [*d.encode(), 256]]
    assert ids == want or ids == [b for d in (text, "x") for b in [*d.encode(), 256]]


@case
def file_that_shrinks():
    # T10: the file loses its end while the run goes on: its name and the place, no signal; what was saved
    # stays
    token_file("d", "u16", [[i % 200 for i in range(200000)]])
    plan = compile(MEAN, ctx=64, train_global_batch=4, train_steps=100000)
    p = subprocess.Popen(
        [MTRUN, plan, "--data", "d", "--save", "ck", "--save-every", "200", "--log-every", "200"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not re.match(r"step +199/", line := p.stdout.readline()):
        assert line or p.poll() is None, p.stderr.read()
    os.truncate("d.bin", 1000)
    err = p.communicate(timeout=120)[1]
    assert p.returncode in (65, 74), (p.returncode, err)
    assert "d.bin: ends at byte 1000" in err, err
    refused(MTRUN, [plan, "--data", "d", "--save", "ck", "--resume", "auto"], "d.bin has 1000 bytes", 65)
    os.remove("d.bin")
    os.mkdir("d.bin")
    refused(MTRUN, [plan, "--data", "d"], "d.bin: not a regular file", 65)


main()
