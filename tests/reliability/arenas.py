"""A plan whose memory is a page too small is refused before anything runs, and the block that is too small is named.

usage: arenas.py MTC MTRUN MTDATA [CASE…]"""

import ctypes, ctypes.util
from mt import *

PAGE = 4096


class Hash(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


xxhash = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")
xxhash.XXH3_128bits.restype, xxhash.XXH3_128bits.argtypes = Hash, [ctypes.c_char_p, ctypes.c_size_t]


def with_hash(plan):
    """the file with the hash that fits what follows it"""
    magic, _, rest = plan.split(b"\n", 2)
    h = xxhash.XXH3_128bits(rest, len(rest))
    return magic + b"\nhash %016x%016x\n" % (h.high, h.low) + rest


def blocks(plan):
    """name -> bytes, from the rows `memory NAME BYTES`"""
    text = plan[: plan.index(b"\nbinary ")]
    return {name.decode(): int(n) for name, n in re.findall(rb"^memory (\w+) (\d+)$", text, re.M)}


def shrunk(plan, name, by=PAGE):
    was = b"\nmemory %s %d\n" % (name.encode(), blocks(plan)[name])
    assert plan.count(was) == 1
    return with_hash(plan.replace(was, b"\nmemory %s %d\n" % (name.encode(), blocks(plan)[name] - by)))


def a_page_less(path):
    plan = bytes_of(path)
    same(with_hash(plan), plan)
    assert "nothing wrong" in call([MTC, "verify", path]).stdout
    found = [name for name, n in blocks(plan).items() if n]
    for name in found:
        by = min(PAGE, blocks(plan)[name])
        write("less.plan", shrunk(plan, name, by))
        for argv in [MTC, "verify", "less.plan"], [MTRUN, "less.plan", "--batches", "none"]:
            said = call(argv, code=65).stderr
            assert "less.plan: " in said, said
            assert re.search(r"\b%s has %d bytes" % (name, blocks(plan)[name] - by), said), said
    return found


def model(name, *options, **settings):
    return compile(os.path.join(MODELS, name + ".mt"), "--no-objects", *options, **settings)


@case
def gpt2():
    # weights in f32 and bf16, products in both; a copy of the weights only in bf16
    for dtype in "f32", "bf16":
        small = sets(train_steps=10, train_schedule__warmup=0, train_micro_batch=4, train_global_batch=8)
        found = a_page_less(model("gpt2", "--preset", "demo", *sets(precision_compute=dtype), *small))
        assert {"scalars", "params", "grads", "moments", "inputs", "activations"} <= set(found), found
        assert ("copies" in found) == (dtype == "bf16"), found


@case
def others():
    small = sets(train_micro_batch=2, train_global_batch=4, train_steps=10, train_schedule__warmup=2)
    small += sets(precision_compute="f32")
    sizes = sets(hidden=32, inter=64, layers=2, nheads=4, nkv=2, headdim=8, ctx=32, nvocab=97)
    for name in "llama", "moe":
        a_page_less(model(name, *sizes, *small))


@case
def a_plan_that_is_right_or_not():
    plan = model("gpt2", "--preset", "demo")
    write("cut.plan", bytes_of(plan)[:-1])
    refused(MTC, ["verify", "cut.plan"], "cut.plan: it is damaged", 65)
    write("text.plan", "no plan")
    refused(MTC, ["verify", "text.plan"], "it is no plan", 65)
    refused(MTC, ["verify", "none.plan"], "none.plan: No such file", 66)
    refused(MTC, ["verify"], "usage: mtc verify PLAN", 64)


main()
