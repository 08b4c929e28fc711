"""The files that the examples of `--help` name: small ones, made from built-in machines and generators.

Each function makes the content of one file. What the library can write, such as results and journals, it writes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from topoplace.experiments.simulate import Workload
    from topoplace.topology.topology import Topology

_NUM_JOBS: Final = 40
_NUM_DUE: Final = 6
_START: Final = 1_767_225_600
"""When the first job is submitted: 2026-01-01, in seconds since 1970."""
_POLICY: Final = '''\
"""A policy of your own: the free GPUs with the highest numbers. docs/policies.md says what more a policy can do."""

import topoplace as tp
from topoplace.policies import SearchPolicy


class Mine(SearchPolicy):
    name = "mine"

    def best(self, job, cluster, free, required=frozenset()):
        """Return the placement on `required` and the highest other GPUs of `free`."""
        others = sorted(free - required, reverse=True)[: job.num_tasks - len(required)]
        gpus = tuple(sorted((*required, *others)))
        scores = tp.objectives.scores_of(job, gpus, cluster.topology, cluster.free_gpus())
        return tp.Placement(gpus=gpus, scores=scores, topology=cluster.topology, job=job)

    def order(self, job, placement):
        """Return a sort key, smaller is better: the highest number first."""
        return tuple(sorted(-gpu for gpu in placement.gpus))
'''
_PLAN: Final = """\
policies = ["baseline", "mapa-preserve"]
topologies = ["dgx1-v100"]
loads = [0.7, 0.9]
seeds = 3

[[workloads]]
name = "mix"
num-jobs = 40
"""
_TRAINING: Final = '''\
"""Stands for a training script."""

import time

time.sleep(1)
'''


def content(name: str) -> bytes:
    """Return the content of the example file called `name`, which is one of FILES."""
    return FILES[name][1](name)


# ---- topologies --------------------------------------------------------------------------------------------------


def _matrix(_: str) -> bytes:
    """Return a DGX-1 as `nvidia-smi topo -m` prints it."""
    from topoplace import machines
    from topoplace.topology.links.link import NVLINKS

    machine = machines.get("dgx1-v100")
    gpus = range(machine.num_gpus)
    lines = ["\t".join(("", *(f"GPU{gpu}" for gpu in gpus), "CPU Affinity", "NUMA Affinity"))]
    for u in gpus:
        links = [None if u == v else machine.link(u, v) for v in gpus]
        labels = [
            "X" if link is None else f"NV{link.lanes}" if link.kind in NVLINKS else "SYS" for link in links
        ]
        socket = 2 * u // machine.num_gpus
        lines.append("\t".join((f"GPU{u}", *labels, f"{20 * socket}-{20 * socket + 19}", str(socket))))
    return _lines(*lines)


def _cluster() -> Topology:
    """Return four DGX-1 in two racks."""
    from topoplace import Topology, machines

    return Topology.cluster(machines.get("dgx1-v100"), 4, racks=2, names=[f"gpu{i}" for i in range(4)])


def _cluster_json(_: str) -> bytes:
    return _cluster().to_json().encode()


def _tree(_: str) -> bytes:
    """Return two leaf switches under a spine, as Slurm's topology.conf has them."""
    leaves = [f"SwitchName=leaf{i} Nodes=gpu{2 * i},gpu{2 * i + 1}" for i in range(2)]
    return _lines(*leaves, "SwitchName=spine Switches=leaf0,leaf1")


def _minsky(name: str) -> bytes:
    """Return a machine on Monday, and on a day after on which one NVLink is down."""
    from topoplace import Topology, machines

    machine = machines.get("minsky")
    links = [link for link in machine.links if name == "monday.json" or link[:2] != (0, 1)]
    model = machine.gpus[0].model
    return Topology.from_links(machine.num_gpus, links, model=model, name="minsky").to_json().encode()


# ---- jobs --------------------------------------------------------------------------------------------------------


def _jobs(seed: int = 0) -> Workload:
    from topoplace.experiments.simulate import Workload

    return Workload.mapa(_NUM_JOBS, seed).with_load(0.8, _cluster().num_gpus, seed)


def _trace(_: str) -> bytes:
    rows = (f"{one.job_id},{one.submit_time:.0f},{one.job.num_tasks},{one.base_time:.0f}" for one in _jobs())
    return _lines("job_id,submit_s,num_gpus,duration_s", *rows)


def _swf(_: str) -> bytes:
    """Return a log in the Standard Workload Format: 18 numbers for each job, -1 for those that are unknown."""
    rows = (
        f"{one.index + 1} {one.submit_time:.0f} 0 {one.base_time:.0f} {4 * one.job.num_tasks} -1 -1 "
        f"{4 * one.job.num_tasks} {2 * one.base_time:.0f} -1 1 1 1 1 1 1 -1 -1"
        for one in _jobs()
    )
    return _lines("; MaxNodes: 4", "; MaxProcs: 64", *rows)


def _sacct(_: str) -> bytes:
    """Return what `sacct -a -X -P` prints of jobs that started when they were submitted."""
    heading = "JobIDRaw|Partition|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|AllocTRES|ReqTRES"
    rows: list[str] = []
    for one in _jobs():
        start, length = _START + round(one.submit_time), round(one.base_time)
        tres = f"cpu=8,gres/gpu={one.job.num_tasks},node=1"
        rows.append(f"{4711 + one.index}|gpu|{start}|{start}|{start + length}|{length}|60|1|{tres}|{tres}")
    return _lines(heading, *rows)


def _running(_: str) -> bytes:
    """Return jobs of two GPUs on each of the four machines, so that no whole machine is free."""
    rows = (f"job{machine},{8 * machine}-{8 * machine + 1}" for machine in range(4))
    return _lines("job_id,gpus", *rows)


def _scontrol(_: str) -> bytes:
    """Return the same jobs as Slurm shows them, and three that wait; docs/when.md shows what becomes of them."""
    nodes = [
        f"NodeName=gpu{node} Gres=gpu:v100:8 GresUsed=gpu:v100:2(IDX:0-1) State=MIXED Partitions=batch"
        for node in range(4)
    ]
    running = [
        f"JobId={17 + node} JobState=RUNNING RunTime=00:48:00 TimeLimit={2 + node:02}:00:00 NodeList=gpu{node}\n"
        f"     Nodes=gpu{node} CPU_IDs=0-7 Mem=0 GRES=gpu:v100:2(IDX:0-1)"
        for node in range(4)
    ]
    waiting = [
        f"JobId={21 + i} Priority={9 - i} JobState=PENDING TimeLimit={hours:02}:00:00 Partition=batch NumNodes=1 "
        f"TresPerNode=gres/gpu:{gpus}"
        for i, (gpus, hours) in enumerate(((8, 2), (8, 1), (4, 1)))
    ]
    return _lines(*nodes, *running, *waiting)


def _due(_: str) -> bytes:
    return _lines("job_id,due,weight", *(f"job{job},{6 + 3 * job},{1 + job % 3}" for job in range(_NUM_DUE)))


def _times(_: str) -> bytes:
    from topoplace.experiments.capacity import TABLE_II

    rows = (
        f"job{job},{vm.name},{gpus},{(4 + job) / gpus:.2f}"
        for job in range(_NUM_DUE)
        for vm in TABLE_II
        for gpus in range(1, vm.num_gpus + 1)
    )
    return _lines("job_id,vm_type,gpus,hours", *rows)


# ---- results -----------------------------------------------------------------------------------------------------


def _result(name: str) -> bytes:
    """Return what `topoplace simulate --save` writes for the policy, and the seed, that the file is called after."""
    from topoplace import policies
    from topoplace.experiments.simulate import simulate

    policy, _, number = Path(name).stem.rpartition("-")
    seed = int(number) if number.isdecimal() else 0
    policy = policy if number.isdecimal() else Path(name).stem
    result = simulate(_cluster(), _jobs(seed), policies.get(policy), seed=seed)
    return _written(result.save, name)


def _runs(_: str) -> bytes:
    """Return run times: alone on one and on two sockets, and next to another job; a larger batch sends less."""
    rows: list[str] = []
    for batch in (16, 64):
        alone = 1000 / batch
        rows += [
            f"solo,vgg,{batch},2,intra-socket,,,,{alone:g}",
            f"solo,vgg,{batch},2,inter-socket,,,,{alone * (1 + 4 / batch):g}",
        ]
        rows += [
            f"collocation,vgg,{batch},2,inter-socket,vgg,{other},2,{alone * (1 + 6 / batch):g}"
            for other in (16, 64)
        ]
    return _lines("kind,model,batch,gpus,placement,with_model,with_batch,with_gpus,seconds", *rows)


def _profile(_: str) -> bytes:
    from topoplace.jobs.performance_profile import PerformanceProfile

    return PerformanceProfile.from_csv(_runs("").decode()).to_json().encode()


def _journal(name: str) -> bytes:
    """Return a journal with one job that runs and one that was just decided."""
    from topoplace.integrations.state import Entry, Journal, Stage
    from topoplace.integrations.state.entry import named

    cluster = _cluster()

    def save(path: Path) -> None:
        with Journal(path) as journal:
            journal.set_topology(cluster.digest())
            for stage, at in ((Stage.INTENT, 0), (Stage.TOLD, 1), (Stage.CONFIRMED, 5)):
                gpus = named(cluster, range(4))
                journal.append(Entry("4711", stage, gpus, "all links are NVLinks", _START + at))
            journal.append(Entry("4712", Stage.INTENT, named(cluster, (8, 9)), time=_START + 60.0))

    return _written(save, name)


FILES: Final[dict[str, tuple[str, Callable[[str], bytes]]]] = {
    "topo.txt": ("a DGX-1 as `nvidia-smi topo -m` prints it", _matrix),
    "cluster.json": ("four DGX-1 in two racks", _cluster_json),
    "topology.conf": ("a tree of switches with four nodes, as Slurm has it", _tree),
    "monday.json": ("a machine", _minsky),
    "today.json": ("the machine of monday.json without one of its links", _minsky),
    "trace.csv": ("jobs: a CSV trace", _trace),
    "cluster.swf": ("jobs: a log in the Standard Workload Format", _swf),
    "sacct.txt": ("jobs: a dump of Slurm's sacct", _sacct),
    "running.csv": ("jobs that run on the machines of cluster.json", _running),
    "scontrol.txt": ("the nodes of cluster.json and their jobs, as Slurm's scontrol prints them", _scontrol),
    "jobs.csv": ("jobs with due times, for `topoplace capacity`", _due),
    "times.csv": ("run times of the jobs of jobs.csv", _times),
    "plan.toml": ("a sweep over two policies and two loads", lambda _: _PLAN.encode()),
    "my_policies.py": ("a policy of your own", lambda _: _POLICY.encode()),
    "train.py": ("a program to record, in place of your training", lambda _: _TRAINING.encode()),
    "topo-aware.csv": ("a result of `topoplace simulate --save`", _result),
    "topo-aware-1.csv": ("the same with seed 1", _result),
    "topo-aware-2.csv": ("the same with seed 2", _result),
    "fcfs.csv": ("a result of another policy", _result),
    "runs.csv": ("measured run times", _runs),
    "profile.json": ("the performance profile of runs.csv", _profile),
    "decisions.journal": ("a journal with two jobs", _journal),
}
"""For each file: what it is, and the function that makes its content."""


def _written(save: Callable[[Path], None], name: str) -> bytes:
    """Return the content of the file that `save` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        save(path)
        return path.read_bytes()


def _lines(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
