"""Gradients of several ranks: reduced where they lie, in buckets of any size, the optimizer's state and more shared out;
what a plan needs of memory falls by what is said, results stay.

usage: zero.py MTC MTRUN MTDATA [CASE…]"""

from mt import *

SIZES = dict(hidden=32, layers=3, nheads=4, ctx=16, maxpos=16, nvocab=251, pdrop=0)


def planned(plan):
    """bytes of each block of a plan's memory"""
    out = {}
    with open(plan, "rb") as f:
        for line in f:
            words = line.split()
            if words[:1] == [b"memory"]:
                out[words[1].decode()] = int(words[2])
            if words[:1] == [b"source"]:
                break
    return out


@case
def reduced_where_they_lie():
    # two ranks of one sample need no more memory for a step than one rank of one sample: sums are made in place
    memory = {}
    for mesh in ("dp=1", "dp=2"):
        plan = compile(
            os.path.join(MODELS, "gpt2.mt"), "--no-objects", "--mesh", mesh,
            **{**SIZES, "train_micro_batch": 1, "train_global_batch": 2, "parallel_zero": 0}
        )
        memory[mesh] = planned(plan)
    for block in ("params", "copies", "grads", "moments", "activations"):
        one, two = memory["dp=1"][block], memory["dp=2"][block]
        assert two <= one + 4096, (block, one, two)




main()
