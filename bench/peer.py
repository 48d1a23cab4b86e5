#!/usr/bin/env python3
# peer.py -- GPT-2 in PyTorch, as plain as PyTorch users write it: the peer of step.py, which starts it.
#
#   peer.py JSON     what to train and how; a line N on standard input makes one step, then N measured ones
#
# Answers are lines of JSON: what was found, then seconds of each measured step, the last loss and the peak memory.
import contextlib, json, sys, time


def peak(word="VmHWM"):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith(word))


def answer(**what):
    print(json.dumps(what), flush=True)


def build(torch, about):
    nn, F = torch.nn, torch.nn.functional
    hidden, heads = about["hidden"], about["heads"]

    def attend(q, k, v):
        if hasattr(F, "scaled_dot_product_attention"):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        t = q.shape[-2]
        mask = torch.ones(t, t, dtype=torch.bool).tril()
        scores = (q @ k.transpose(-2, -1)) * (q.shape[-1] ** -0.5)
        return F.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1) @ v

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
            self.c_attn, self.c_proj = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
            self.c_fc, self.mlp_proj = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = (
                y.view(b, t, heads, c // heads).transpose(1, 2) for y in self.c_attn(self.ln_1(x)).split(c, dim=2)
            )
            x = x + self.c_proj(attend(q, k, v).transpose(1, 2).reshape(b, t, c))
            return x + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))

    class Gpt2(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(about["vocab"], hidden), nn.Embedding(about["positions"], hidden)
            self.h = nn.ModuleList(Layer() for _ in range(about["layers"]))
            self.ln_f = nn.LayerNorm(hidden)
            for p in self.parameters():
                if p.dim() == 2:
                    nn.init.normal_(p, std=0.02)

        def forward(self, tokens, labels):
            x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
            for layer in self.h:
                x = layer(x)
            logits = F.linear(self.ln_f(x), self.wte.weight)
            return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())

    return Gpt2()


def adamw(torch, params):
    settings = dict(lr=6e-4, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    for more in {"fused": True}, {"foreach": True}, {}:  # the fastest that this version has
        try:
            return torch.optim.AdamW(params, **settings, **more), next(iter(more), "plain")
        except (TypeError, RuntimeError):
            pass


class Trainer:
    def __init__(self, torch, about):
        torch.manual_seed(1)
        self.torch, self.model = torch, build(torch, about)
        self.params = list(self.model.parameters())
        self.master = self.params
        if about["mode"].endswith("pure"):  # weights and gradients in bf16, masters and moments in f32
            self.master = [p.detach().clone() for p in self.params]
            self.model.bfloat16()
        self.pure = self.master is not self.params
        self.cast = about["precision"] == "bf16" and not self.pure
        self.optimizer, self.kind = adamw(torch, self.master)
        self.call = torch.compile(self.model) if about["mode"].startswith("compile") else self.model
        shape = (about["batch"], about["tokens"])
        self.batches = [[torch.randint(about["below"], shape) for _ in "xy"] for _ in range(8)]
        self.made = 0

    def step(self):
        torch, (tokens, labels) = self.torch, self.batches[self.made % len(self.batches)]
        self.made += 1
        with torch.autocast("cpu", dtype=torch.bfloat16) if self.cast else contextlib.nullcontext():
            loss = self.call(tokens, labels)
        loss.backward()
        if self.pure:
            with torch.no_grad():
                for m, p in zip(self.master, self.params):
                    m.grad = p.grad.float()
                self.optimizer.step()
                for m, p in zip(self.master, self.params):
                    p.copy_(m)
            for m in self.master:
                m.grad = None
        else:
            self.optimizer.step()
        self.model.zero_grad(set_to_none=True)
        return loss.item()


def main():
    about = json.loads(sys.argv[1])
    import torch

    torch.set_num_threads(about["threads"])
    torch.set_num_interop_threads(1)
    before = peak("VmRSS")
    try:
        if about["mode"].startswith("compile") and not hasattr(torch, "compile"):
            raise RuntimeError("this version has no torch.compile")
        t = Trainer(torch, about)
        for _ in range(3):
            t.step()
    except Exception as e:  # whatever a version lacks: the other modes go on
        answer(error="%s: %s" % (type(e).__name__, str(e).strip().splitlines()[0] if str(e).strip() else "no message"))
        return
    answer(before=before, adamw=t.kind)
    for line in sys.stdin:
        loss, seconds = t.step(), []
        for _ in range(int(line)):
            begin = time.monotonic()
            loss = t.step()
            seconds.append(time.monotonic() - begin)
        answer(seconds=seconds, loss=loss, peak=peak())


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print("peer.py JSON: the peer that step.py starts; see step.py --help")
        sys.exit(0 if sys.argv[1:] in (["--help"], ["-h"]) else 64)
    main()
