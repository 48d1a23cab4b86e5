#!/usr/bin/env python3
"""Records a run of a random small model, computed by JAX in float64, for golden.py to compare with. Needs jax; the suite does
not run this, it reads what lies in the folders.

usage: record.py MODEL SEED FOLDER"""
import json, math, os, random, sys
import jax, jax.numpy as jnp, numpy
from cases import chosen, count, parameters, write_batches, write_weights
from train import load, save

jax.config.update("jax_enable_x64", True)
MODEL, SEED, FOLDER = sys.argv[1], int(sys.argv[2]), sys.argv[3]


def layernorm(p, name, x, eps):
    c = x - x.mean(-1, keepdims=True)
    return c / jnp.sqrt((c * c).mean(-1, keepdims=True) + eps) * p[name + ".weight"] + p[name + ".bias"]


def rmsnorm(p, name, x, eps):
    return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + eps) * p[name + ".weight"]


def linear(p, name, x):
    y = x @ p[name + ".weight"].T
    return y + p[name + ".bias"] if name + ".bias" in p else y


def attention(q, k, v, heads, kv_heads, mask):
    """q [batch, seq, heads·hd], k and v [batch, seq, kv_heads·hd], mask [batch or 1, seq, seq]"""
    b, s, _ = q.shape
    q = q.reshape(b, s, heads, -1)
    k, v = (jnp.repeat(t.reshape(b, s, kv_heads, -1), heads // kv_heads, axis=2) for t in (k, v))
    scores = jnp.einsum("bshd,bthd->bhst", q, k) / math.sqrt(q.shape[-1])
    scores = jnp.where(mask[:, None], scores, -jnp.inf)
    return jnp.einsum("bhst,bthd->bshd", jax.nn.softmax(scores, axis=-1), v).reshape(b, s, -1)


def rope(x, headdim, theta):
    b, s, _ = x.shape
    half = headdim // 2
    x = x.reshape(b, s, -1, headdim)
    angle = jnp.arange(s)[:, None] * theta ** (-2.0 * jnp.arange(half) / headdim)
    cos, sin = jnp.cos(angle)[:, None], jnp.sin(angle)[:, None]
    first, second = x[..., :half], x[..., half:]
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], -1).reshape(b, s, -1)


def gpt2(p, c, data):
    s = c["ctx"]
    mask = jnp.tril(jnp.ones((s, s), bool))[None]
    conv = lambda name, x: x @ p[name + ".weight"] + p[name + ".bias"]
    x = p["wte.weight"][data["tokens"]] + p["wpe.weight"][:s]
    for i in range(c["layers"]):
        n = "h.%d." % i
        q, k, v = jnp.split(conv(n + "attn.c_attn", layernorm(p, n + "ln_1", x, 1e-5)), 3, -1)
        x = x + conv(n + "attn.c_proj", attention(q, k, v, c["nheads"], c["nheads"], mask))
        x = x + conv(n + "mlp.c_proj", jax.nn.gelu(conv(n + "mlp.c_fc", layernorm(p, n + "ln_2", x, 1e-5)), approximate=True))
    return layernorm(p, "ln_f", x, 1e-5) @ p["wte.weight"].T, 0.0


def bert(p, c, data):
    s, eps, e = c["ctx"], c["eps"], "bert.embeddings."
    mask = jnp.arange(s)[None, None, :] < data["lengths"][:, None, None]
    x = p[e + "word_embeddings.weight"][data["tokens"]] + p[e + "token_type_embeddings.weight"][data["segments"]]
    x = layernorm(p, e + "LayerNorm", x + p[e + "position_embeddings.weight"][:s], eps)
    for i in range(c["layers"]):
        n = "bert.encoder.layer.%d." % i
        q, k, v = (linear(p, n + "attention.self." + w, x) for w in ("query", "key", "value"))
        a = linear(p, n + "attention.output.dense", attention(q, k, v, c["nheads"], c["nheads"], mask))
        x = layernorm(p, n + "attention.output.LayerNorm", x + a, eps)
        h = linear(p, n + "output.dense", jax.nn.gelu(linear(p, n + "intermediate.dense", x), approximate=False))
        x = layernorm(p, n + "output.LayerNorm", x + h, eps)
    t = "cls.predictions."
    x = layernorm(p, t + "transform.LayerNorm", jax.nn.gelu(linear(p, t + "transform.dense", x), approximate=False), eps)
    return x @ p[e + "word_embeddings.weight"].T + p[t + "bias"], 0.0


def experts(p, n, c, x):
    prob = jax.nn.softmax(linear(p, n + "gate", x), -1)
    best, index = jax.lax.top_k(prob, c["topk"])
    best = best / best.sum(-1, keepdims=True)
    y = 0.0
    for e in range(c["nexp"]):
        m = n + "experts.%d." % e
        weight = jnp.where(index == e, best, 0).sum(-1)
        y = y + weight[..., None] * linear(p, m + "w2", jax.nn.silu(linear(p, m + "w1", x)) * linear(p, m + "w3", x))
    share = jnp.stack([(index == e).sum() / index.size for e in range(c["nexp"])])
    return y, c["nexp"] * (share * prob.mean((0, 1))).sum()


def llama(p, c, data):
    """also moe: mixtures in place of the MLP"""
    s, eps, balance = c["ctx"], c["eps"], 0.0
    mask = jnp.tril(jnp.ones((s, s), bool))[None]
    x = p["model.embed_tokens.weight"][data["tokens"]]
    for i in range(c["layers"]):
        n = "model.layers.%d." % i
        h = rmsnorm(p, n + "input_layernorm", x, eps)
        q, k, v = (linear(p, n + "self_attn." + w + "_proj", h) for w in "qkv")
        q, k = rope(q, c["headdim"], c["theta"]), rope(k, c["headdim"], c["theta"])
        x = x + linear(p, n + "self_attn.o_proj", attention(q, k, v, c["nheads"], c["nkv"], mask))
        h = rmsnorm(p, n + "post_attention_layernorm", x, eps)
        if MODEL == "moe":
            h, b = experts(p, n + "block_sparse_moe.", c, h)
            balance = balance + b
        else:
            h = linear(p, n + "mlp.down_proj", jax.nn.silu(linear(p, n + "mlp.gate_proj", h)) * linear(p, n + "mlp.up_proj", h))
        x = x + h
    return linear(p, "lm_head", rmsnorm(p, "model.norm", x, eps)), balance * c.get("auxw", 0)


FORWARD = {"gpt2": gpt2, "bert": bert, "llama": llama, "moe": llama}[MODEL]


def microbatch(p, c, data, denominator, micro):
    """one microbatch's part of the step's objective, and of its two outputs"""
    logits, balance = FORWARD(p, c, data)
    labels = data["labels"]
    each = -jnp.take_along_axis(jax.nn.log_softmax(logits, -1), jnp.maximum(labels, 0)[..., None], -1)[..., 0]
    loss = jnp.where(labels == -100, 0, each).sum() / denominator
    return loss + balance / micro, (loss, balance / micro)


r = random.Random("%s %d" % (MODEL, SEED))
c = {**chosen(r, MODEL), "pdrop": 0, "capacity": 0}
if MODEL == "bert":
    c["eps"] = 1e-12
batch, micro, steps = r.randint(1, 3), r.randint(1, 3), r.randint(2, 4)
t = {"optimizer": "adamw", "lr": r.choice([1e-3, 3e-3]), "min_lr": 3e-4, "warmup": r.randint(1, 2), "beta1": 0.9, "beta2": 0.95,
     "adam_eps": 1e-8, "weight_decay": 0.1, "clip": r.choice([0.3, 1.0])}
os.makedirs(FOLDER, exist_ok=True)
write_weights(r, MODEL, c, os.path.join(FOLDER, "weights.safetensors"))
write_batches(r, MODEL, c, os.path.join(FOLDER, "batches.safetensors"), steps, micro, batch)

shape = parameters(MODEL, c)
p = {k: jnp.array(numpy.array(v, numpy.float64).reshape(shape[k])) for k, v in load(os.path.join(FOLDER, "weights.safetensors")).items()}
data = {k: numpy.array(v).reshape([steps, micro, batch] + ([] if k == "lengths" else [c["ctx"]]))
        for k, v in load(os.path.join(FOLDER, "batches.safetensors")).items()}
gradient = jax.jit(jax.grad(lambda p, data, denominator: microbatch(p, c, data, denominator, micro), has_aux=True))
m = {k: jnp.zeros_like(v) for k, v in p.items()}
v = dict(m)
log = []
for n in range(steps):
    total, loss, balance = None, 0.0, 0.0
    denominator = int((data["labels"][n] != -100).sum())
    for j in range(micro):
        g, (l, b) = gradient(p, {k: jnp.array(x[n, j]) for k, x in data.items()}, denominator)
        total = g if total is None else {k: total[k] + g[k] for k in g}
        loss, balance = loss + float(l), balance + float(b)
    if n == 0:
        first = total
    norm = math.sqrt(sum(float((g * g).sum()) for g in total.values()))
    if n <= t["warmup"]:
        lr = t["lr"] * n / t["warmup"]
    else:
        lr = t["min_lr"] + (t["lr"] - t["min_lr"]) * 0.5 * (1 + math.cos(math.pi * (n - t["warmup"]) / (steps - t["warmup"])))
    log.append({"step": n, "loss": loss, "grad_norm": norm, "lr": lr, **({"aux_loss": balance} if MODEL == "moe" else {})})
    clip = min(1, t["clip"] / (norm + 1e-6))
    for k in p:
        g = total[k] * clip
        m[k] = t["beta1"] * m[k] + (1 - t["beta1"]) * g
        v[k] = t["beta2"] * v[k] + (1 - t["beta2"]) * g * g
        step = m[k] / (1 - t["beta1"] ** (n + 1)) / (jnp.sqrt(v[k] / (1 - t["beta2"] ** (n + 1))) + t["adam_eps"])
        p[k] = p[k] * (1 - lr * (t["weight_decay"] if p[k].ndim > 1 else 0)) - lr * step

for name, tensors in (("grads", first), ("final", p)):
    save(os.path.join(FOLDER, name + ".safetensors"), {k: ("F64", shape[k], numpy.array(x).reshape(-1).tolist()) for k, x in tensors.items()})
names = {"layers": "layers", "hidden": "hidden", "nheads": "heads", "nkv": "kv_heads", "headdim": "headdim", "inter": "ffn", "nvocab": "vocab",
         "ctx": "seq", "maxpos": "maxpos", "theta": "rope_theta", "eps": "eps", "nexp": "experts", "topk": "topk", "auxw": "aux"}
sizes = {**{names[k]: x for k, x in c.items() if k in names}, "batch": batch, "micro": micro, "steps": steps, "seed": SEED}
for name, value in (("config", {"case": MODEL, "sizes": sizes, "train": t}), ("expected", log)):
    with open(os.path.join(FOLDER, name + ".json"), "w") as f:
        json.dump(value, f, indent=1)
        f.write("\n")
