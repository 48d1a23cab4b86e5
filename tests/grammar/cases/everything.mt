# every construct once
import "blocks.mt"
config { hidden = 64; name = "a b"; tied = true; require hidden % 8 == 0 and tied }
preset demo { hidden = 8; train.steps = 9; precision.compute = f32; train.no_decay = "*.b", "g" }
dim batch
dim seq = hidden / 2
dim vocab = 257 pad 128
fn f[d, e](x: [*, d], m: bool[*, d?] = true, k, eps = 1e-5) -> ([*, e], f32[]) {
  dim half = extent(d) / 2
  if training and k > 0 { x = x ^ 2 } else if m { x = -x } else { x = float(i32(x)) }
  y = x @ x + x @[d, e] x - x @[] x
  return rename[d -> e](x, y), sum[(d, e), half](x, where = m,)
}
block B[i](x: [*, i]) -> [*, i] {
  param w as "weight": [i] ~ normal(0.02)
  param g: f32[i] ~ ones()
  a, b = f[i, i](x), g
  return x
}
model M(tokens: i32[batch, seq]) -> (loss: f32[], logits: [batch, seq, vocab]) {
  repeat hidden as j { x = B[seq](x) as "h.{j}" }
  repeat 3 as j { }
  repeat (hidden + 1) as j { x = B[seq](x) as name }
  loss = stepmean[batch, seq](x, where = tokens != -100)
}
precision { compute = bf16; keep f32: layernorm, softmax }
parallel { mesh dp = 2, tp = 2; map heads, ff -> tp; map weak seq -> tp, cp; pipeline = 1f1b(cut = balanced); bucket = 25 MiB }
train { minimize = loss + aux_loss; optimizer = adamw(lr = 6e-4); on = off }
# > (
# >   (import blocks.mt)
# >   (config (
# >     (set hidden ((num 64)))
# >     (set name ((str "a b")))
# >     (set tied ((bool true)))
# >     (require (binary and (binary == (binary % (name hidden) (num 8)) (num 0)) (name tied)))))
# >   (preset demo (
# >     (set hidden ((num 8)))
# >     (set train.steps ((num 9)))
# >     (set precision.compute ((dtype f32)))
# >     (set train.no_decay ((str "*.b") (str "g")))))
# >   (dim batch _ _)
# >   (dim seq (binary / (name hidden) (num 2)) _)
# >   (dim vocab (num 257) (num 128))
# >   (fn f ((name d) (name e)) ((formal x (type float ((star) (name d))) _) (formal m (type bool ((star) (maybe d))) (bool true)) (formal k _ _) (formal eps _ (num 1.0000000000000001e-05))) ((type float ((star) (name e))) (type f32 ())) (
# >     (dim half (binary / (call extent () () ((arg "" (name d))) _) (num 2)) _)
# >     (if (binary and (name training) (binary > (name k) (num 0))) (
# >       (assign ((name x)) ((binary ^ (name x) (num 2))))) (
# >       (if (name m) (
# >         (assign ((name x)) ((unary - (name x))))) (
# >         (assign ((name x)) ((convert float (convert i32 (name x)))))))))
# >     (assign ((name y)) ((binary - (binary + (contract (name x) (name x) _) (contract (name x) (name x) ((name d) (name e)))) (contract (name x) (name x) ()))))
# >     (return ((call rename ((name d)) ((name e)) ((arg "" (name x)) (arg "" (name y))) _) (call sum ((group (name d) (name e)) (name half)) () ((arg "" (name x)) (arg where (name m))) _)))))
# >   (block B ((name i)) ((formal x (type float ((star) (name i))) _)) ((type float ((star) (name i)))) (
# >     (param w (as weight) (type float ((name i))) (call normal () () ((arg "" (num 0.02))) _))
# >     (param g _ (type f32 ((name i))) (call ones () () () _))
# >     (assign ((name a) (name b)) ((call f ((name i) (name i)) () ((arg "" (name x))) _) (name g)))
# >     (return ((name x)))))
# >   (model M ((formal tokens (type i32 ((name batch) (name seq))) _)) ((formal loss (type f32 ()) _) (formal logits (type float ((name batch) (name seq) (name vocab))) _)) (
# >     (repeat j (name hidden) (
# >       (assign ((name x)) ((call B ((name seq)) () ((arg "" (name x))) (as h.{j}))))))
# >     (repeat j (num 3) ())
# >     (repeat j (binary + (name hidden) (num 1)) (
# >       (assign ((name x)) ((call B ((name seq)) () ((arg "" (name x))) (as name))))))
# >     (assign ((name loss)) ((call stepmean ((name batch) (name seq)) () ((arg "" (name x)) (arg where (binary != (name tokens) (unary - (num 100))))) _)))))
# >   (precision (
# >     (set compute ((dtype bf16)))
# >     (keep f32 ((name layernorm) (name softmax)))))
# >   (parallel (
# >     (mesh (
# >       (set dp ((num 2)))
# >       (set tp ((num 2)))))
# >     (map "" ((name heads) (name ff)) ((name tp)))
# >     (map weak ((name seq)) ((name tp) (name cp)))
# >     (set pipeline ((call 1f1b () () ((arg cut (name balanced))) _)))
# >     (set bucket ((num 26214400)))))
# >   (train (
# >     (set minimize ((binary + (name loss) (name aux_loss))))
# >     (set optimizer ((call adamw () () ((arg lr (num 0.00059999999999999995))) _)))
# >     (set on ((name off))))))
