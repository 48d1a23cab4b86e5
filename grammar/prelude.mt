# prelude.mt -- the parts of models, written in the language itself.
#
# This text is the definition of right. Most of these functions also have a fast kernel; tests compare the two.
# `[*]` is any dims, `[*, d]` is d and any others, `d?` may be there. No dtype means float: the compute dtype,
# or the dtype of `keep` inside a function that `precision` keeps.

# ---- activations ------------------------------------------------------------------------------------------

fn relu(x: [*]) -> [*] { return max(x, 0) }

fn sigmoid(x: [*]) -> [*] { return 1 / (1 + exp(-x)) }

fn silu(x: [*]) -> [*] { return x * sigmoid(x) }

fn gelu(x: [*]) -> [*] { return 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ^ 3))) }

fn gelu_erf(x: [*]) -> [*] { return 0.5 * x * (1 + erf(x / sqrt(2))) }

# silu(first) * second, the two stacked along g
fn swiglu[g](u: [*, g]) -> [*] {
  a, b = unstack[g](u)
  return silu(a) * b
}

fn dropout(x: [*], p = 0.1) -> [*] {
  if training and p > 0 { x = select(random(x) >= p, x / (1 - p), 0) }
  return x
}

# ---- normalisation ----------------------------------------------------------------------------------------

fn layernorm[d](x: [*, d], g: [d], b: [d], eps = 1e-5) -> [*, d] {
  c = x - mean[d](x)
  c = c - mean[d](c)            # once more: where the mean is large, rounding it shifts all entries
  return c * rsqrt(mean[d](c * c) + eps) * g + b
}

fn rmsnorm[d](x: [*, d], g: [d], eps = 1e-5) -> [*, d] {
  return x * rsqrt(mean[d](x * x) + eps) * g
}

# entries where the mask is false are exactly 0; so is a whole row without a true entry
fn softmax[d](x: [*, d], where: bool[*, d] = true) -> [*, d] {
  x = select(where, x, -inf)
  e = exp(x - detach(max(max[d](x), -1e30)))      # -1e30: an all -inf row gives exp(-inf) = 0, not NaN
  n = sum[d](e)
  return e / select(n > 0, n, 1)
}

# ---- attention --------------------------------------------------------------------------------------------

# queries along s, keys and values along t, d contracted; grouped queries are a dim of q that k and v lack
fn attention[s, t, d](q: [*, s, d], k: [*, t, d], v: [*, t, d?], causal = false, where: bool[*, s?, t] = true,
                      window = 0, dropout = 0.0, scale = 1 / sqrt(extent(d))) -> [*, s, d?] {
  a = scale * (q @[d] k)
  if causal     { a = select(expand[s](index(t)) <= index(s), a, -inf) }
  if window > 0 { a = select(index(s) - expand[s](index(t)) < window, a, -inf) }
  return dropout(softmax[t](a, where = where), dropout) @[t] v
}

# Documents packed in one sample, numbered 1, 2, … `end` is the token that closes one and belongs to it.
fn segments[s](tokens: i32[*, s], end) -> i32[*, s] {
  return cumsum[s](i32(shift[s](tokens, 1, fill = end) == end))
}

# A mask that keeps them apart: attention[seq, kseq, hd](q, k, v, causal = true, where = same_segment[seq, kseq](segment))
fn same_segment[s, t](segment: i32[*, s]) -> bool[*, s, t] {
  return expand[s](rename[s -> t](segment)) == segment
}

# rotary positions, half rotation: entry i of d turns with entry i + d/2
fn rope[s, d](x: [*, s, d], theta = 10000.0) -> [*, s, d] {
  dim two  = 2
  dim half = extent(d) / 2
  a, b  = unstack[two](split[d -> two, half](x))
  angle = float(index(s)) @[] theta ^ (-2 * float(index(half)) / extent(d))      # [s, half]
  return merge[two, half -> d](stack[two](a * cos(angle) - b * sin(angle), b * cos(angle) + a * sin(angle)))
}

# ---- loss -------------------------------------------------------------------------------------------------

# one value per label; exactly 0, and no gradient, where the label is `ignore`
fn cross_entropy[v](logits: [*, v], labels: i32[*], ignore = -100, smooth = 0.0) -> f32[*] {
  z    = logits - detach(max[v](logits))
  lse  = log(sum[v](exp(z)))
  loss = lse - gather[v](z, labels)
  if smooth > 0 { loss = (1 - smooth) * loss + smooth * (lse - mean[v](z)) }
  return select(labels != ignore, loss, 0)
}

# ---- routing ----------------------------------------------------------------------------------------------

fn one_hot[d](i: i32[*]) -> bool[*, d] { return expand[d](i) == index(d) }

# true at the k largest entries along d; of equals the lower index wins
fn topk[d](x: [*, d], k) -> bool[*, d] {
  dim o = d
  y     = expand[d](rename[d -> o](x))
  first = expand[d](index(o)) < index(d)
  return sum[o](i32(y > x or (y == x and first))) < k
}

# The chosen tokens of t get the places c of expert r in order, until those are full: the place of each token, -1 where
# it has none, and the token of each place, -1 where that stays empty.
fn nth[t, r](chosen: bool[*, t, r]) -> i32[*, t, r] { return select(chosen, cumsum[t](i32(chosen)) - 1, -1) }

fn place_of[t, r, c](chosen: bool[*, t, r]) -> i32[*, t, r] {
  n = nth[t, r](chosen)
  return select(n < extent(c), n, -1)
}

fn token_of[t, r, c](chosen: bool[*, t, r]) -> i32[*, r, c] {
  return sum[t](select(expand[c](nth[t, r](chosen)) == index(c), index(t) + 1, 0)) - 1
}

# tokens to experts and back; each is the other's transpose. A token without a place is dropped. r is the router's
# role of the expert dim e: the router never sees e, so a mesh axis that splits experts may split tokens there.
fn dispatch[t, r, e, c](x: [*, t, r?], chosen: bool[*, t, r]) -> [*, e, c] {
  return rename[r -> e](gather[t](x, token_of[t, r, c](chosen)))
}

fn combine[t, r, e, c](y: [*, e, c], chosen: bool[*, t, r]) -> [*, t] {
  return sum[r](gather[c](rename[e -> r](y), place_of[t, r, c](chosen)))
}

# ---- blocks -----------------------------------------------------------------------------------------------

block LayerNorm[d](x: [*, d], eps = 1e-5) -> [*, d] {
  param g as "weight": [d] ~ ones
  param b as "bias":   [d] ~ zeros
  return layernorm[d](x, g, b, eps)
}

block RMSNorm[d](x: [*, d], eps = 1e-5) -> [*, d] {
  param g as "weight": [d] ~ ones
  return rmsnorm[d](x, g, eps)
}

# weights [out, in], as torch; a group of dims counts as one: Linear[embed, (heads, hd)](x)
block Linear[i, o](x: [*, i], bias = true, std = 0.02) -> [*, o] {
  param w as "weight": [o, i] ~ normal(std)
  y = x @[i] w
  if bias {
    param b as "bias": [o] ~ zeros
    y = y + b
  }
  return y
}

block Embedding[n, d](i: i32[*], std = 0.02) -> [*, d] {
  param w as "weight": [n, d] ~ normal(std)
  return gather[n](w, i)
}
