"""The trace of several ranks in one file.

usage: trace.py MTC MTRUN MTDATA [CASE…]"""

from mt import *
from traces import check_trace


def traced(mesh, *options):
    plan = compile(os.path.join(MODELS, "gpt2.mt"), *floats("f32"), "--mesh", mesh, hidden=24, layers=2, nheads=4, ctx=12,
                   nvocab=257, train_global_batch=8, train_micro_batch=2, train_steps=3, train_schedule__warmup=1,
                   parallel_bucket=1)        # all members are at a collective at one time, if it has a meeting for itself
    feed = prepare("text", "of many words, again and again " * 60)
    call([MTRUN, plan, "--data", feed, "--threads", 1, "--trace", "t.json", *options])


@case
def processes():
    traced("dp=2,tp=2")
    check_trace("t.json", [("dp", 2), ("tp", 2)], 3)


@case
def threads():
    traced("cp=2,tp=2", "--ranks", "threads")
    check_trace("t.json", [("cp", 2), ("tp", 2)], 3)


main()
