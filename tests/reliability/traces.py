"""What holds for the trace of several ranks."""

import collections, json


def events_of(path):
    with open(path) as f:
        return json.load(f)["traceEvents"]


def check_trace(path, axes, steps, apart=2):
    """axes: of the mesh, [(name, size)], the last the fastest in ranks; apart: microseconds that clocks may be"""
    ranks = [{}]
    for name, size in axes:
        ranks = [{**r, name: i} for r in ranks for i in range(size)]
    events = events_of(path)
    by = lambda phase: [e for e in events if e["ph"] == phase]
    names = {e["pid"]: e["args"]["name"] for e in by("M") if e["name"] == "process_name"}
    assert names == {i: "rank %d (%s)" % (i, " ".join("%s%d" % c for c in r.items())) for i, r in enumerate(ranks)}, names
    owner = {}                               # viewers look a thread's name up by its number alone
    for e in by("M"):
        assert e["name"] not in ("thread_name", "thread_sort_index") or owner.setdefault(e["tid"], e["pid"]) == e["pid"], e
    slices = collections.defaultdict(list)
    for e in by("X"):
        assert owner[e["tid"]] == e["pid"] and e["ts"] >= 0 and e["dur"] >= 0, e
        slices[e["tid"]].append(e)
    for own in slices.values():              # one behind the other
        own.sort(key=lambda e: e["ts"])
        assert all(a["ts"] + a["dur"] <= b["ts"] + 0.002 for a, b in zip(own, own[1:]))
    for rank in range(len(ranks)):
        said = [e["name"] for e in by("X") if e["pid"] == rank and e["cat"] == "step"]
        assert said == ["step %d" % i for i in range(steps)], (rank, said)

    flows = collections.defaultdict(list)
    for e in events:
        if e["ph"] in "stf":
            inside = [s for s in slices[e["tid"]] if s["cat"] == "coll" and s["ts"] - 0.002 <= e["ts"] <= s["ts"] + s["dur"] + 0.002
                      and s["args"]["kernel"] == e["name"]]
            assert inside, e
            flows[e["id"]].append((e, inside[0]))
    for members in flows.values():           # in the file's order, which decides where times are equal
        assert [e["ph"] for e, _ in members] == ["s"] + ["t"] * (len(members) - 2) + ["f"], members
        assert members[-1][0]["bp"] == "e" and len({(e["name"], e["cat"]) for e, _ in members}) == 1, members
        over = members[0][1]["args"]["over"].split()
        size = 1
        for name in over:
            size *= dict(axes).get(name, 1)
        where = [ranks[e["pid"]] for e, _ in members]
        assert len(where) == size == len({tuple(w.items()) for w in where}), members
        assert all(w[name] == where[0][name] for w in where for name in w if name not in over), members
        assert len({(s["args"]["line"], s["args"]["function"], s["args"]["bytes"]) for _, s in members}) == 1, members
        # all are in it at one time: the clocks agree
        assert max(s["ts"] for _, s in members) <= min(s["ts"] + s["dur"] for _, s in members) + apart, members
    colls = [s for own in slices.values() for s in own if s["cat"] == "coll"]
    assert colls and sum(map(len, flows.values())) == len(colls), (len(flows), len(colls))
    return events
