"""An upper bound on the GPUs that any policy can allocate of a list of jobs, by a linear program (HiGHS).

Jobs may be chosen freely and in part; machines of one kind count together. What keeps the bound low are dual feasible
functions: they round the sizes of jobs up or down so that whatever fits one GPU, or one machine, still fits it (Fekete
and Schepers, 2001: items above 1 - threshold count as 1, those below the threshold as 0).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence

import highspy
import numpy as np

import topoplace as tp
from topoplace_lab.capacity.planners.highs_model import highs

THRESHOLDS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
Kind = tuple[int, float, float, frozenset[str]]
"""GPUs, CPUs and memory of a machine, and the models of its GPUs."""
Size = Callable[[tp.JobGraph], float]
"""The size of a job that a machine has to hold."""


def most_gpus(cluster: tp.Cluster, jobs: Sequence[tp.JobGraph]) -> float:
    """Return a bound on the GPUs that can be allocated on an idle cluster, fractions included."""
    machines = Counter(kinds_of(cluster))
    supply = Counter(jobs)
    solver = highs()
    columns: list[tuple[tp.JobGraph, Kind]] = [
        (job, kind) for job in supply for kind in machines if suits(job, kind)
    ]
    for job, _ in columns:
        solver.addVar(0.0, float(supply[job]))
        solver.changeColCost(solver.getNumCol() - 1, -job.num_tasks * job.gpu_fraction)
    of_job, of_kind = defaultdict(list), defaultdict(list)
    for number, (job, kind) in enumerate(columns):
        of_job[job].append(number)
        of_kind[kind].append(number)
    for job, numbers in of_job.items():
        add_row(solver, numbers, np.ones(len(numbers)), supply[job])
    for kind, numbers in of_kind.items():
        for size, room in sizes(kind):
            values = np.array([size(columns[number][0]) for number in numbers])
            add_row(solver, numbers, values, machines[kind] * room)
    solver.run()
    return -solver.getInfo().objective_function_value


def kinds_of(cluster: tp.Cluster) -> Iterator[Kind]:
    capacity = cluster.hosts.capacity / 1000
    for machine, gpus in enumerate(cluster.topology.gpus_of.values()):
        models = frozenset(cluster.topology.gpus[gpu].model or "" for gpu in gpus)
        yield len(gpus), float(capacity[machine, 0]), float(capacity[machine, 1]), models


def suits(job: tp.JobGraph, kind: Kind) -> bool:
    gpus, cpus, memory, models = kind
    wanted = {job.gpu_model} if isinstance(job.gpu_model, str) else set(job.gpu_model or models)
    fits = job.num_tasks <= gpus and (job.cpus or 0) <= cpus and (job.memory_gb or 0) <= memory
    return fits and bool(wanted & models)


def sizes(kind: Kind) -> Iterator[tuple[Size, float]]:
    """Yield sizes of jobs, and what a machine of this kind can hold of each."""
    gpus, cpus, memory, _ = kind
    yield lambda job: job.num_tasks * job.gpu_fraction, gpus
    yield lambda job: job.cpus or 0.0, cpus
    yield lambda job: job.memory_gb or 0.0, memory
    for threshold in THRESHOLDS:
        yield lambda job, t=threshold: job.num_tasks * rounded(job.gpu_fraction, t), gpus
        yield lambda job, t=threshold: rounded(job.num_tasks * job.gpu_fraction / gpus, t), 1.0
        yield lambda job, t=threshold: rounded((job.cpus or 0.0) / cpus, t) if cpus else 0.0, 1.0


def rounded(size: float, threshold: float) -> float:
    """Return the size, relative to what a GPU or machine can hold, by the dual feasible function of a threshold."""
    if size > 1 - threshold + 1e-9:
        return 1.0
    return size if size >= threshold - 1e-9 else 0.0


def add_row(solver: highspy.Highs, numbers: Sequence[int], values: np.ndarray, most: float) -> None:
    used = values.nonzero()[0]
    solver.addRow(-highspy.kHighsInf, float(most), len(used), np.array(numbers)[used], values[used])
