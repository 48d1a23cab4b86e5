"""syntax.py ROOT VIM FTDETECT TEXTMATE: editors know every reserved word, and colour a text as it is meant."""
import json, os, re, shutil, subprocess, sys, tempfile

root, vim, detect, textmate = (os.path.abspath(p) for p in sys.argv[1:5])
failed = 0


def wrong(text):
    global failed
    failed = 1
    print(text)


rows = re.findall(r'^X\((\w+), *"(\w+)", *(\w+),', open(root + "/grammar/keywords.def").read(), re.M)
if len(rows) < 30:
    wrong("few reserved words: %s" % rows)

# A text, and how its words are to be coloured: word -> (line, column, class). Reserved words, each where it may stand.
text, places = [], []
for _, word, kind in rows:
    text.append(word + " {" if kind == "top" else word)
    places.append((word, len(text), 1, kind))
more = [
    ('repeat layers as i { x = Layer(x) as "h.{i}" }  # repeat',
     ["repeat:statement", "layers:", "as:clause", '"h:string', "{i}:place", "# repeat:comment"]),
    ("block MLP(x: [batch]) -> [batch] {", ["block:item", "MLP:name", "batch:"]),
    ("preset demo { train.steps = 300; parallel.mesh = 2 }",
     ["preset:item", "train.steps:setting", "mesh:setting", "300:number"]),
    ("  train = 3", ["train:", "3:number"]),
    ("  lr = 6e-4 + 1.5 + 8 MiB", ["lr:", "6e-4:number", "1.5:number", "8 MiB:number"]),
    ("  embedding = repeated or x2", ["embedding:", "repeated:", "or:operator", "x2:"]),
    ("  c = x: bf16 if not true", ["bf16:dtype", "if:statement", "not:operator", "true:constant"]),
]
for line, words in more:
    text.append(line)
    for word in words:
        word, kind = word.rsplit(":", 1)
        places.append((word, len(text), line.index(word) + 1, kind))

# TextMate: valid JSON, patterns that compile, and at each place the scope of the first pattern that matches there
grammar = json.load(open(textmate))
if grammar["scopeName"] != "source.mt" or "mt" not in grammar["fileTypes"]:
    wrong("%s: %s, %s" % (textmate, grammar["scopeName"], grammar["fileTypes"]))
scope = {"item": "keyword.control.item", "top": "keyword.control.item", "statement": "keyword.control.mt",
         "clause": "keyword.other", "operator": "keyword.operator.word", "constant": "constant.language",
         "dtype": "storage.type", "string": "string.quoted", "place": "constant.other.placeholder",
         "comment": "comment.line", "name": "entity.name.function", "setting": "variable.other.setting",
         "number": "constant.numeric", "": ""}


def scopes(line):
    """The scope of each character, by the rules of TextMate: the earliest match, of those the first pattern."""
    found, at, inside = [""] * len(line), 0, None
    while at < len(line):
        patterns = inside["patterns"] if inside else grammar["patterns"]
        options = [(m.start(), i, m, p) for i, p in enumerate(patterns)
                   for m in [re.compile(p.get("match") or p["begin"]).search(line, at)] if m]
        end = re.compile(inside["end"]).search(line, at) if inside else None
        first = min(options, key=lambda o: o[:2], default=None)
        if end and (not first or end.start() <= first[0]):
            found[at:end.end()] = [inside["name"]] * (end.end() - at)
            at, inside = max(end.end(), at + 1), None
            continue
        if not first:
            if inside:
                found[at:] = [inside["name"]] * (len(line) - at)
            break
        start, _, m, p = first
        if inside:
            found[at:start] = [inside["name"]] * (start - at)
        if "begin" in p:
            found[start:m.end()] = [p["name"]] * (m.end() - start)
            at, inside = m.end(), p
            continue
        if "name" in p:
            found[start:m.end()] = [p["name"]] * (m.end() - start)
        for group, what in p.get("captures", {}).items():
            for i in range(*m.span(int(group))):
                found[i] = what["name"]
        at = max(m.end(), at + 1)
    return found


for word, line, column, kind in places:
    got = scopes(text[line - 1])[column - 1]
    if not got.startswith(scope[kind]) or (not kind and got):
        wrong("TextMate: '%s' in '%s' is '%s', not '%s'" % (word, text[line - 1], got, scope[kind]))

def has_syntax():
    if not shutil.which("vim"):
        return False
    said = subprocess.run(["vim", "--version"], capture_output=True, text=True).stdout
    return "+syntax" in said and "+eval" in said


# Vim, asked for the group at each place
if has_syntax():
    group = {"item": "mtItem", "top": "mtTop", "statement": "mtStatement", "clause": "mtClause",
             "operator": "mtOperator", "constant": "mtConstant", "dtype": "mtType", "string": "mtString",
             "place": "mtPlace", "comment": "mtComment", "name": "mtName", "setting": "mtSetting",
             "number": "mtNumber", "": ""}
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(folder + "/rtp/syntax")
        os.makedirs(folder + "/rtp/ftdetect")
        shutil.copy(vim, folder + "/rtp/syntax/mt.vim")
        shutil.copy(detect, folder + "/rtp/ftdetect/mt.vim")
        open(folder + "/x.mt", "w").write("\n".join(text) + "\n")
        asked = ", ".join("synIDattr(synID(%d, %d, 1), 'name')" % (line, column) for _, line, column, _ in places)
        open(folder + "/ask.vim", "w").write(
            "set runtimepath^=%s/rtp\nfiletype on\nsyntax on\nedit %s/x.mt\n"
            "call writefile([&filetype, synIDattr(synIDtrans(hlID('mtStatement')), 'name'), %s], '%s/out')\nqa!\n"
            % (folder, folder, asked, folder))
        ask = ["vim", "-es", "-u", "NONE", "-i", "NONE", "-N", "-S", folder + "/ask.vim"]
        done = subprocess.run(ask, timeout=50, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if not os.path.exists(folder + "/out"):
            wrong("vim: %s" % done)
        else:
            kind_of_file, look, *got = open(folder + "/out").read().split("\n")[:-1]
            if kind_of_file != "mt":
                wrong("vim: x.mt is '%s'" % kind_of_file)
            if look not in ("Keyword", "Statement"):
                wrong("vim: statements look like '%s'" % look)
            for (word, line, column, kind), name in zip(places, got, strict=True):
                if name != group[kind]:
                    wrong("vim: '%s' in '%s' is '%s', not '%s'" % (word, text[line - 1], name, group[kind]))
else:
    print("there is no vim with +syntax; its file is only looked at")
    said = open(vim).read()
    for _, word, _ in rows:
        if not re.search(r"\b%s\b" % word, said):
            wrong("%s does not know %s" % (vim, word))
sys.exit(failed)
