"""Who started a process: variables of the environment, against one another and against the plan's mesh.

usage: launch.py MTRUN MAKE_PLAN"""

import atexit, os, shutil, struct, subprocess, sys, tempfile

MTRUN, MAKE = map(os.path.abspath, sys.argv[1:3])
TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
OPENMPI = tuple("OMPI_COMM_WORLD_" + what for what in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE"))
MPICH = ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS")
SLURM = ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE", "SLURM_STEP_ID", "SLURM_NODEID")
ALL = TORCHRUN + OPENMPI + MPICH + SLURM + ("SLURM_NNODES",)
failed = 0


def by(names, *values):
    return {name: str(value) for name, value in zip(names, values) if value is not None}


def check(environment, code, text, *options, plan="tp4.plan", without=""):
    global failed
    env = {k: v for k, v in os.environ.items() if k not in ALL}
    p = subprocess.run([MTRUN, plan, "--batches", "b.safetensors", "--threads", "1", *options], env={**env, **environment},
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    said = p.stdout + p.stderr
    if p.returncode != code or text not in said or (without and without in said):
        failed += 1
        print("%s %s: exit %d, not %d, with '%s':\n%s" % (environment, options, p.returncode, code, text, said))


def batches():
    shape, n = [6, 2, 2, 5], 6 * 2 * 2 * 5
    header = '{"tokens":{"dtype":"I32","shape":%s,"data_offsets":[0,%d]},"labels":{"dtype":"I32","shape":%s,"data_offsets":[%d,%d]}}'
    header = (header % (shape, 4 * n, shape, 4 * n, 8 * n)).encode()
    with open("b.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + struct.pack("<%di" % (2 * n), *(i % 7 for i in range(2 * n))))


def main():
    folder = tempfile.mkdtemp(prefix="mt-")
    atexit.register(shutil.rmtree, folder, True)
    os.chdir(folder)
    os.environ["XDG_CACHE_HOME"] = os.getcwd()
    batches()
    subprocess.check_call([MAKE, "one.plan"])
    subprocess.check_call([MAKE, "tp4.plan", "tp=4"])

    # one rank that a launcher started: it runs, and says by whom
    alone = dict(plan="one.plan", without="contradict")
    check({}, 0, "step", **alone)
    check(by(TORCHRUN, 0, 1, 0, 1), 0, "1, rank 0 by torchrun", **alone)
    check(by(OPENMPI, 0, 1, 0, 1), 0, "1, rank 0 by mpirun of Open MPI", **alone)
    check(by(MPICH, 0, 1, 0, 1), 0, "1, rank 0 by mpirun of MPICH", **alone)
    check(by(SLURM, 0, 1, 0, 1, 3, 0), 0, "1, rank 0 by srun of SLURM", **alone)
    # the first of the table that is there counts; one process a machine may carry another launcher
    check({**by(TORCHRUN, 0, 1, 0, 1), **by(OPENMPI, 0, 1, 0, 1)}, 0, "by torchrun", **alone)
    check({**by(MPICH, 0, 1, 0, 1), **by(SLURM, 0, 1, 0, 1, 0, 0)}, 0, "by mpirun of MPICH", **alone)
    check({**by(TORCHRUN, 0, 1, 0, 1), **by(SLURM, 1, 3, 0, "1(x3)", 0, 1)}, 0, "by torchrun", **alone)
    check({**by(TORCHRUN, 0, 1, 0, 1), **by(SLURM, 0, 3, 0, "2,1", 0, 1)}, 0, "by torchrun", **alone)
    # not a launcher: empty variables, one alone, none at all
    check(by(TORCHRUN, "", "", "", ""), 0, "step", **alone)
    check({"LOCAL_RANK": "0"}, 0, "step", **alone)
    check({"RANK": "3"}, 0, "step", **alone)
    check({"SLURM_NTASKS": "4", "SLURM_PROCID": "0", "SLURM_NNODES": "2"}, 0, "srun mtrun uses all", **alone)
    check({"SLURM_NTASKS": "4", "SLURM_PROCID": "0", "SLURM_NNODES": "1"}, 0, "step", plan="one.plan", without="srun")
    check(by(TORCHRUN, 0, 4, 0, 4), 0, "step", "--launcher=none", **alone)

    # the size against the mesh
    for names, size, again in ((TORCHRUN, "WORLD_SIZE", "torchrun --nproc-per-node=N"), (OPENMPI, "OMPI_COMM_WORLD_SIZE", "mpirun -n N"),
                               (MPICH, "PMI_SIZE", "mpirun -n N"), (SLURM, "SLURM_NTASKS", "srun -n N")):
        more = (2, 0, 0) if names is SLURM else (2,)
        check(by(names, 1, 2, 1, *more), 64, "has started 2 (%s=2), and the plan is for 4 ranks (tp=4): %s with N = 4" % (size, again))
        check(by(names, 1, 2, 1, *more), 64, "(%s=2), and the plan is for 1 rank:" % size, plan="one.plan")
    check({}, 64, "-n 2: the plan is for 4 ranks (tp=4)", "-n", "2")
    check(by(OPENMPI, 1, 4, 1, 4), 64, "-n 2: the plan is for 4 ranks (tp=4)", "-n", "2")

    # values that cannot be
    check(by(TORCHRUN, 4, 4, 0, 4), 64, "RANK=4 does not go with WORLD_SIZE=4: ranks are 0 to 3")
    check(by(OPENMPI, -1, 4, 0, 4), 64, "OMPI_COMM_WORLD_RANK=-1 does not go with OMPI_COMM_WORLD_SIZE=4")
    check(by(TORCHRUN, 1, 4, 2, 2), 64, "LOCAL_RANK=2 does not go with LOCAL_WORLD_SIZE=2")
    check(by(TORCHRUN, 1, 4, 4), 64, "LOCAL_RANK=4 does not go with WORLD_SIZE=4")
    check(by(MPICH, 1, 4, 1, 8), 64, "MPI_LOCALNRANKS=8 does not go with PMI_SIZE=4")
    check(by(SLURM, 0, 4, 2, "2(x2)", 0, 1), 64, "SLURM_LOCALID=2 does not go with SLURM_STEP_TASKS_PER_NODE=2")
    check(by(TORCHRUN, 0, 4, 0, 0), 64, "LOCAL_WORLD_SIZE=0: at least 1")
    for tasks, node in (("(((", 0), ("2(x2)", 2), ("2(x2)", -1)):
        check(by(SLURM, 0, 4, 0, tasks, 0, node), 64, "SLURM_NODEID=%d is no node of SLURM_STEP_TASKS_PER_NODE=%s" % (node, tasks))
    check(by(MPICH, 0, 0), 64, "PMI_SIZE=0: at least 1")
    check(by(TORCHRUN, "1x", 4, 1), 64, "RANK: '1x' is not a whole number")
    check(by(TORCHRUN, 1, "4.0", 1), 64, "WORLD_SIZE: '4.0' is not a whole number")
    check(by(TORCHRUN, 1, " 4", 1), 64, "WORLD_SIZE: ' 4' is not a whole number")
    check(by(OPENMPI, 1, "99999999999999999999", 1), 64, "OMPI_COMM_WORLD_SIZE: '99999999999999999999' is not a whole number")
    check(by(TORCHRUN, 1, None, 1), 64, "LOCAL_RANK=1 is set, as by torchrun, and WORLD_SIZE is not")
    check(by(OPENMPI, None, 4), 64, "OMPI_COMM_WORLD_SIZE=4 is set, as by mpirun of Open MPI, and OMPI_COMM_WORLD_RANK is not")
    check(by(TORCHRUN, 1, 2), 64, "RANK=1 and WORLD_SIZE=2 are set, and LOCAL_RANK is not")

    # two launchers that disagree
    check({**by(TORCHRUN, 1, 4, 1, 4), **by(OPENMPI, 1, 2, 1, 2)}, 64,
          "torchrun says WORLD_SIZE=4, and mpirun of Open MPI says OMPI_COMM_WORLD_SIZE=2")
    check({**by(OPENMPI, 1, 4, 1, 4), **by(SLURM, 2, 4, 2, 4, 0, 0)}, 64,
          "mpirun of Open MPI says OMPI_COMM_WORLD_RANK=1, and srun of SLURM says SLURM_PROCID=2")
    check({**by(MPICH, 0, 4, 0, 4), **by(SLURM, 0, 2, 0, 2, 0, 0)}, 64, "--launcher=mpich or --launcher=slurm")

    # asked for
    check({}, 64, "--launcher=torchrun: LOCAL_RANK, RANK and WORLD_SIZE are not set", "--launcher", "torchrun")
    check({}, 64, "--launcher=openmpi: OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE are not set",
          "--launcher", "openmpi")
    check({}, 64, "--launcher=slurm: SLURM_STEP_ID, SLURM_PROCID and SLURM_NTASKS are not set", "--launcher", "slurm")
    check({}, 64, "did you mean slurm?", "--launcher", "slrum")
    both = {**by(OPENMPI, 1, 4, 1, 4), **by(MPICH, 1, 2, 1, 2)}
    check(both, 64, "mpirun of MPICH has started 2 (PMI_SIZE=2)", "--launcher", "mpich")
    check(by(TORCHRUN, 1, 4, 1, 4), 69, "torchrun")
    sys.exit(1 if failed else 0)


main()
