"""A model of 96 layers of 12,288 on 128 ranks is laid out and resharded, text to collectives, in less than a second.

usage: large.py MTC MODELS [SECONDS]      of the processor; a build with sanitizers is given more"""

import os, resource, subprocess, sys

MTC, MODELS = sys.argv[1:3]
LIMIT = float(sys.argv[3]) if sys.argv[3:] else 1.0
SIZES = "hidden=12288 layers=96 nheads=96 ctx=2048 maxpos=2048".split()
TRAIN = "train.micro_batch=1 train.global_batch=1536".split()
options = [w for s in SIZES for w in ("-D", s)] + [w for s in TRAIN for w in ("--set", s)] + ["--mesh", "dp=16,tp=8"]


def spent():
    u = resource.getrusage(resource.RUSAGE_CHILDREN)
    return u.ru_utime + u.ru_stime


def seconds():
    before = spent()
    said = subprocess.run([MTC, "check", os.path.join(MODELS, "gpt2.mt"), *options], capture_output=True, text=True)
    assert said.returncode == 0 and "1156 parameters" in said.stdout, said.stdout + said.stderr
    return spent() - before


best = min(seconds() for _ in range(3))                            # others may compute beside
print("%.3f s" % best)
assert best < LIMIT, "%.3f s, %.3f are allowed" % (best, LIMIT)
