"""Random sizes of the four models, with weights and batches to train them on."""
from train import save


def chosen(r, model):
    """sizes by the names of the model texts"""
    c = {"layers": r.randint(1, 3), "nheads": r.choice([3, 3, 4, 5, 6, 7, 8]), "nvocab": r.choice([17, 31, 53, 101, 131, 257]),
         "ctx": r.choice([1, 2, 3, 5, 7, 8, 12, 13, 19, 21, 24])}
    headdim = r.choice([2, 4, 6, 8, 10, 16])
    if model in ("gpt2", "bert"):
        if model == "gpt2" or r.random() < 0.5:
            headdim = r.choice([1, 3, 5, headdim])
        c.update(hidden=c["nheads"] * headdim, maxpos=c["ctx"] + r.choice([0, 0, 3]), pdrop=r.choice([0, 0, 0.1]))
    else:
        c.update(hidden=r.choice([c["nheads"] * headdim, r.randint(3, 40)]), headdim=headdim, theta=r.choice([10000.0, 500000.0]),
                 eps=r.choice([1e-5, 1e-6]), nkv=r.choice([1] + [k for k in range(1, c["nheads"] + 1) if c["nheads"] % k == 0]))
    if model != "gpt2":
        c["inter"] = r.randint(3, 70)
    if model == "moe":
        c["nexp"] = r.choice([2, 3, 4, 5, 8])
        c.update(topk=r.choice([1, 1, 2, c["nexp"]]), auxw=r.choice([0.01, 0.1]), capacity=r.choice([0, 0, 0, 1.25]))
    return c


def parameters(model, c):
    """name -> shape, as Hugging Face's checkpoints have them"""
    h, v, f = c["hidden"], c["nvocab"], c.get("inter", 4 * c["hidden"])
    norm = lambda name: {name + ".weight": [h], name + ".bias": [h]}
    linear = lambda name, i, o: {name + ".weight": [o, i], name + ".bias": [o]}
    conv = lambda name, i, o: {name + ".weight": [i, o], name + ".bias": [o]}
    layers = range(c["layers"])
    if model == "gpt2":
        p = {"wte.weight": [v, h], "wpe.weight": [c["maxpos"], h], **norm("ln_f")}
        for i in layers:
            n = "h.%d." % i
            p.update({**norm(n + "ln_1"), **conv(n + "attn.c_attn", h, 3 * h), **conv(n + "attn.c_proj", h, h),
                      **norm(n + "ln_2"), **conv(n + "mlp.c_fc", h, f), **conv(n + "mlp.c_proj", f, h)})
        return p
    if model == "bert":
        e = "bert.embeddings."
        p = {e + "word_embeddings.weight": [v, h], e + "position_embeddings.weight": [c["maxpos"], h],
             e + "token_type_embeddings.weight": [2, h], **norm(e + "LayerNorm"),
             **linear("cls.predictions.transform.dense", h, h), **norm("cls.predictions.transform.LayerNorm"), "cls.predictions.bias": [v]}
        for i in layers:
            n = "bert.encoder.layer.%d." % i
            for x in "query", "key", "value":
                p.update(linear(n + "attention.self." + x, h, h))
            p.update({**linear(n + "attention.output.dense", h, h), **norm(n + "attention.output.LayerNorm"),
                      **linear(n + "intermediate.dense", h, f), **linear(n + "output.dense", f, h), **norm(n + "output.LayerNorm")})
        return p
    p = {"model.embed_tokens.weight": [v, h], "model.norm.weight": [h], "lm_head.weight": [v, h]}
    for i in layers:
        n = "model.layers.%d." % i
        q, kv = c["nheads"] * c["headdim"], c["nkv"] * c["headdim"]
        p.update({n + "input_layernorm.weight": [h], n + "post_attention_layernorm.weight": [h], n + "self_attn.q_proj.weight": [q, h],
                  n + "self_attn.k_proj.weight": [kv, h], n + "self_attn.v_proj.weight": [kv, h], n + "self_attn.o_proj.weight": [h, q]})
        if model == "llama":
            p.update({n + "mlp.gate_proj.weight": [f, h], n + "mlp.up_proj.weight": [f, h], n + "mlp.down_proj.weight": [h, f]})
        else:
            p[n + "block_sparse_moe.gate.weight"] = [c["nexp"], h]
            for e in range(c["nexp"]):
                x = n + "block_sparse_moe.experts.%d." % e
                p.update({x + "w1.weight": [f, h], x + "w3.weight": [f, h], x + "w2.weight": [h, f]})
    return p


def count(shape):
    n = 1
    for extent in shape:
        n *= extent
    return n


def write_weights(r, model, c, path):
    """gains near 1, the rest near 0, wide enough that attention and routing are far from even"""
    tensors = {}
    for name, shape in parameters(model, c).items():
        gain = len(shape) == 1 and name.endswith("weight")
        std = 0.1 if len(shape) == 1 else r.choice([0.1, 0.3, 1.0 / shape[-1] ** 0.5])
        tensors[name] = ("F32", shape, [r.gauss(1 if gain else 0, std) for _ in range(count(shape))])
    save(path, tensors)


def write_batches(r, model, c, path, steps, micro, batch):
    """labels masked here and there, now and then for a whole sample, and all of a step at most once"""
    shape = [steps, micro, batch, c["ctx"]]
    n = count(shape)
    labels = [r.randrange(c["nvocab"]) for _ in range(n)]
    for s in range(0, n, c["ctx"]):
        masked = r.choice([0, 0.2, 0.6, 1])
        for i in range(s, s + c["ctx"]):
            if r.random() < masked:
                labels[i] = -100
    for step in range(steps):
        i = step * (n // steps)
        if labels[i:i + n // steps] == [-100] * (n // steps):
            labels[i] = 0
    tensors = {"tokens": ("I32", shape, [r.randrange(c["nvocab"]) for _ in range(n)]), "labels": ("I32", shape, labels)}
    if model == "bert":
        tensors["segments"] = ("I32", shape, [r.randrange(2) for _ in range(n)])
        tensors["lengths"] = ("I32", shape[:3], [r.randint(1, c["ctx"]) for _ in range(n // c["ctx"])])
    save(path, tensors)
