"""All ways to put a model on up to 8 ranks, and few of them that have every pair of what can be chosen."""
import itertools

AXES = ["dp", "ep", "cp", "tp"]
RANKS = 8


def fits(model, sizes, mesh):
    samples, heads = sizes["batch"] * sizes["micro"], sizes["heads"]
    ff = sizes.get("ffn", 4 * sizes["hidden"])
    if model in ("llama", "moe"):
        heads = sizes["kv_heads"]
        if heads % mesh["tp"] and sizes["heads"] // heads % mesh["tp"] == 0:
            heads = mesh["tp"]                             # its query heads are dealt out instead
    experts = sizes.get("experts", mesh["ep"])
    return (samples % (mesh["dp"] * mesh["ep"]) == 0 and experts % mesh["ep"] == 0 and sizes["seq"] % mesh["cp"] == 0 and
            heads % mesh["tp"] == 0 and ff % mesh["tp"] == 0)


def options_of(sizes, mesh, whole):
    """of mtc; whole: without sequence parallelism"""
    out = ["--mesh", ",".join("%s=%d" % (a, mesh[a]) for a in AXES if mesh[a] > 1)]
    if whole:
        out += ["--no-map", "seq"] + (["--map", "seq -> cp"] if mesh["cp"] > 1 else [])
    if sizes.get("kv_heads", mesh["tp"]) % mesh["tp"]:
        out += ["--no-map", "kv", "--map", "group -> tp"]
    return out


def all_ways(model, sizes):
    """(mesh, whole, options), fewest ranks first"""
    ways = []
    for extents in itertools.product(range(1, RANKS + 1), repeat=len(AXES)):
        mesh = dict(zip(AXES, extents))
        ranks = extents[0] * extents[1] * extents[2] * extents[3]
        if not 2 <= ranks <= RANKS or not fits(model, sizes, mesh):
            continue
        for whole in (False, True) if mesh["tp"] > 1 else (False,):
            ways.append((ranks, extents, whole, mesh))
    ways.sort(key=lambda w: w[:3])
    return [(mesh, whole, options_of(sizes, mesh, whole)) for _, _, whole, mesh in ways]


def pairs(way):
    mesh, whole, _ = way
    return set(itertools.combinations([(a, mesh[a]) for a in AXES] + [("whole", whole)], 2))


def covering(ways, most):
    """ways that have as many pairs as so few can, chosen one by one, the cheaper where two add the same"""
    left, missing, chosen = list(ways), set().union(*map(pairs, ways)) if ways else set(), []
    while left and len(chosen) < most:
        best = max(left, key=lambda w: len(pairs(w) & missing))
        if not pairs(best) & missing:
            break
        chosen.append(best)
        left.remove(best)
        missing -= pairs(best)
    return chosen, missing
