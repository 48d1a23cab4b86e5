"""Gradients under tensor and sequence parallelism, from public reports: each has one right value, on any mesh.

usage: parallel.py MTC MTRUN MTDATA [CASE…]"""

from mt import *

MESHES = [[], ["--mesh", "tp=2"]]
TRAIN = "train { micro_batch = 1; global_batch = 1; steps = 1; optimizer = sgd(lr = 0) }\n"


@case
def gradients_of_norms():
    # G04 github.com/NVIDIA/Megatron-LM/issues/1446, EleutherAI/gpt-neox/pull/1259: summed over the ranks of a sequence, not
    # left apart (3 and 7) and no mean (5)
    text = """
dim batch
dim seq = 4
dim embed = 2
model M(x: [batch, seq, embed], c: [batch, seq, embed]) -> loss: f32[] {
  y = LayerNorm[embed](x) as ln
  loss = mean[batch](sum[seq, embed](y * c))
}
parallel { map weak seq -> tp }
""" + TRAIN
    x, c = [v for _ in range(4) for v in (-1000, 1000)], [v for t in range(1, 5) for v in (0, t)]
    save("b", {"x": reals((1, 1, 1, 4, 2), x), "c": reals((1, 1, 1, 4, 2), c)})
    for mesh in MESHES:
        r = run(compile(text, *floats("f64"), *mesh), "--batches", "b")
        near(r.grads["ln.weight"][1], 10, 1e-6)
        near(r.grads["ln.bias"], [0, 10], 1e-12)


@case
def padded_vocabulary():
    # G06 github.com/NVIDIA/Megatron-LM/issues/1754: ln 5, not ln 6
    text = """
dim batch
dim embed = 3
dim vocab = 5 pad 2
model M(x: [batch, embed], label: i32[batch]) -> loss: f32[] {
  param w as "w": [vocab, embed] ~ zeros
  loss = mean[batch](cross_entropy[vocab](x @ w, label))
}
parallel { map vocab -> tp }
""" + TRAIN
    save("b", {"x": reals((1, 1, 1, 3), [1, 2, 3]), "label": ints((1, 1, 1), [4])})
    for mesh in MESHES:
        r = run(compile(text, *floats("f64"), *mesh), "--batches", "b")
        near(r.log[0]["loss"], math.log(5), 1e-12)
        near(r.grads["w"], [(0.2 - (v == 4)) * e for v in range(5) for e in (1, 2, 3)], 1e-12)


@case
def input_of_a_split_head():
    # G09 github.com/apple/ml-cross-entropy/pull/42: the ranks' parts of dx are added
    text = """
dim batch
dim embed = 1
dim vocab = 2
model M(label: i32[batch]) -> loss: f32[] {
  param e as "e": [embed] ~ ones
  w = expand[embed](float(index(vocab)) + 1)
  loss = mean[batch](cross_entropy[vocab](expand[batch](e) @ w, label))
}
parallel { map vocab -> tp }
""" + TRAIN
    save("b", {"label": ints((1, 1, 1), [0])})
    for mesh in MESHES:
        near(run(compile(text, *floats("f64"), *mesh), "--batches", "b").grads["e"], [0.7310585786300049], 1e-9)


main()
