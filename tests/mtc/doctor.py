"""doctor.py MTC CC: mtc doctor finds what is there, and says of what is not how to get it."""
import json, os, shutil, subprocess, sys, tempfile

mtc, cc = os.path.abspath(sys.argv[1]), sys.argv[2]
folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
os.mkdir("tmp")
own = {"XDG_CACHE_HOME": folder.name + "/cache", "TMPDIR": folder.name + "/tmp"}
without = ("MT_CC", "MTRUN_OPENBLAS", "MTRUN_ONEDNN", "NO_COLOR")
failed = 0


def wrong(text):
    global failed
    failed = 1
    print(text)


def run(*args, limit="", **more):
    env = {k: v for k, v in os.environ.items() if k not in without} | own | more
    env = {k: v for k, v in env.items() if v is not None}
    shell = ["/bin/sh", "-c", 'ulimit -c 0; %s exec "$@"' % limit, "sh"]
    return subprocess.run(shell + [mtc, "doctor", *args], env=env, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True)


def look(status=None, **more):
    got = run("--json", **more)
    if status is not None and got.returncode != status:
        wrong("%s: exit %d, wanted %d\n%s%s" % (more, got.returncode, status, got.stdout, got.stderr))
    if got.stderr:
        wrong("%s: says %s" % (more, got.stderr))
    said = json.loads(got.stdout)
    if said["ready"] != (got.returncode == 0):
        wrong("%s: exit %d and ready %s" % (more, got.returncode, said["ready"]))
    return said, {c["name"]: c for c in said["checks"]}


def want(found, name, state, says="", mend=None, packages=None):
    c = found[name]
    right = c["state"] == state and says in c["says"] and packages == c["packages"]
    if not right or (mend or "") not in (c["mend"] or ""):
        wrong("%s is %s, wanted %s, '%s', '%s', %s" % (name, c, state, says, mend, packages))


def script(name, text):
    open(name, "w").write("#!/bin/sh\n" + text)
    os.chmod(name, 0o755)
    return os.path.abspath(name)


def library(name, text):
    open("lib.c", "w").write(text)
    subprocess.run([cc, "-shared", "-fPIC", "-o", name, "lib.c"], check=True)
    return os.path.abspath(name)


# as it is: compiler and OpenBLAS are what the tests need, too
all_here, found = look(0)
want(found, "C compiler", "ok", "what it compiles loads and runs")
want(found, "OpenBLAS", "ok", "products of f32 and f64")
want(found, "kernel cache", "ok", own["XDG_CACHE_HOME"] + "/mt/kernels: 0 objects, 0 B, mode 700")
want(found, "terminal", "note", "no terminal")
for name in ("CPU", "cores", "memory", "huge pages", "graphviz", "oneDNN"):
    if found[name]["state"] == "missing" or not found[name]["says"]:
        wrong("%s: %s" % (name, found[name]))
for name, word in ("Open MPI", "openmpi"), ("MPICH", "mpich"):
    here = os.path.exists(os.path.join(os.path.dirname(mtc), "runtime", "libmt_%s.so" % word))
    want(found, name, "ok" if here else "note", name if here else "not here",
         packages=None if here else {"openmpi": "libopenmpi-dev openmpi-bin", "mpich": "libmpich-dev mpich"}[word])
flags = next((l.split() for l in open("/proc/cpuinfo") if l.startswith("flags")), None)
if flags and ("avx2" in flags) != (" avx2" in found["CPU"]["says"] and "no avx2" not in found["CPU"]["says"]):
    wrong("avx2: %s" % found["CPU"])
if not found["cores"]["says"].startswith(str(len(os.sched_getaffinity(0)))):
    wrong("cores: %s" % found["cores"])

# the table says the same
table = run()
for c in all_here["checks"]:
    line = next((l for l in table.stdout.splitlines() if l[9:].startswith(c["name"] + " ")), "")
    if line.split()[0] != c["state"] or (c["name"] != "memory" and c["says"] not in line):
        wrong("%s: %s" % (c, line))
if table.returncode or "ready: all" not in table.stdout or "\33" in table.stdout:
    wrong("table: %s" % table)
if "\33[32mok" not in run("--color=always").stdout:
    wrong("no colours")

# no compiler, or one that is not right
want(look(69, MT_CC="/nonexistent/cc")[1], "C compiler", "missing", "/nonexistent/cc", "unset MT_CC")
broken = script("broken", "echo 'no space left' >&2; exit 3")
want(look(69, MT_CC=broken)[1], "C compiler", "missing", "no space left", "unset MT_CC")
empty = script("empty", 'while [ "$1" != -o ]; do shift; done; : > "$2"')
want(look(69, MT_CC=empty)[1], "C compiler", "missing", "", "unset MT_CC")
said, found = look(69, PATH=folder.name)
want(found, "C compiler", "missing", "no cc, gcc or clang", packages="gcc libc6-dev")
want(found, "graphviz", "note", "no dot", packages="graphviz")
if not said["packages"].startswith("gcc libc6-dev") or "graphviz" not in said["packages"]:
    wrong("packages: %s" % said["packages"])
got = run(PATH=folder.name)
if "apt-get install gcc libc6-dev\n" not in got.stdout or "not ready" not in got.stdout or got.returncode != 69:
    wrong("table without a compiler: %s" % got)

# libraries: one that does products is enough
blas, dnnl = "/nonexistent/blas", "/nonexistent/dnnl"
said, found = look(69, MTRUN_OPENBLAS=blas, MTRUN_ONEDNN=dnnl)
want(found, "OpenBLAS", "missing", blas, "unset MTRUN_OPENBLAS")
if all_here["checks"][2]["state"] == "ok":
    want(found, "oneDNN", "missing", dnnl, "unset MTRUN_ONEDNN")
    want(look(0, MTRUN_OPENBLAS=blas)[1], "OpenBLAS", "note", blas, "unset MTRUN_OPENBLAS")
    want(look(0, MTRUN_ONEDNN=dnnl)[1], "oneDNN", "note", dnnl, "unset MTRUN_ONEDNN")
ends = library("ends.so", "#include <stdlib.h>\n__attribute__((constructor)) static void end(void) { abort(); }\n")
found = look(69, MTRUN_OPENBLAS=ends, MTRUN_ONEDNN=dnnl)[1]
want(found, "OpenBLAS", "missing", "it ends the process", "unset MTRUN_OPENBLAS")
names = ("cblas_sgemm", "cblas_dgemm", "openblas_set_num_threads")
lies = library("lies.so", "".join("void %s(void) {}\n" % name for name in names))
found = look(69, MTRUN_OPENBLAS=lies, MTRUN_ONEDNN=dnnl)[1]
want(found, "OpenBLAS", "missing", "multiplies wrongly", "unset MTRUN_OPENBLAS")

# the cache
os.makedirs("open/mt", 0o777)
os.chmod("open/mt", 0o777)
found = look(0, XDG_CACHE_HOME=folder.name + "/open")[1]
want(found, "kernel cache", "note", "others can write it (chmod 700 it)", "XDG_CACHE_HOME")
open("file", "w").close()
want(look(0, XDG_CACHE_HOME=folder.name + "/file")[1], "kernel cache", "note", "is not used", "XDG_CACHE_HOME")
found = look(0, XDG_CACHE_HOME=None, HOME=None)[1]
want(found, "kernel cache", "note", "neither XDG_CACHE_HOME nor HOME", "XDG_CACHE_HOME")
os.makedirs("cache/mt/kernels", exist_ok=True)
open("cache/mt/kernels/one.so", "w").write("x" * 2048)
want(look(0)[1], "kernel cache", "ok", "kernels: 1 object, 2.0 KiB")

# limits
limited = run("--json", limit="ulimit -v 4000000;")
if limited.returncode == 0:                  # a sanitized build does not start
    found = {c["name"]: c for c in json.loads(limited.stdout)["checks"]}
    want(found, "memory", "note", "3.8 GiB of addresses", "ulimit -v")
want(look(0, NO_COLOR="1")[1], "terminal", "note", "NO_COLOR")
if len(os.sched_getaffinity(0)) > 1 and shutil.which("taskset"):
    one = str(min(os.sched_getaffinity(0)))
    got = subprocess.run(["taskset", "-c", one, mtc, "doctor"], capture_output=True, text=True)
    if not any(l[9:].startswith("cores ") and l[23:].startswith("1 of ") for l in got.stdout.splitlines()):
        wrong("bound to a core: %s" % got.stdout)

if os.listdir("tmp"):
    wrong("left behind: %s" % os.listdir("tmp"))
for args, words in ((["x"], "takes no 'x'"), (["--jsn"], "did you mean --json?"), (["--color=red"], "auto, always")):
    got = run(*args)
    if got.returncode != 64 or words not in got.stderr:
        wrong("doctor %s: %s" % (args, got))
sys.exit(failed)
