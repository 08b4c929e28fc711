"""What a decision costs as machines go from 128 to 12,500: a figure the thesis has not (Firmament's has the sizes).

Two thirds of the GPUs hold a job, and 256 jobs wait. Measured: one plan of the policy, whose phases hold only the
places that a minimum may need; and phase 2 as figure 22 draws it, an arc from the aggregator to every machine, solved
anew and solved from the optimum before a hundredth of the machines changed and all jobs had waited a second longer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

import numpy as np

from topoplace import kernels
from topoplace.cluster import Cluster
from topoplace.hosts import HostShare
from topoplace.papers.claims import NOT_COMPARABLE, Claim
from topoplace.papers.drmaestro import rodinia
from topoplace.placement import Placement
from topoplace.policies import DRMaestro, QueuedJob
from topoplace.policies.drmaestro.costs import LOCAL, REMOTE, Costs
from topoplace.policies.drmaestro.phase import Ints, Phase

MACHINES: Final = (128, 1_000, 4_000, 12_500)
_WAITING: Final = 256
_BUSY: Final = 2 / 3
_REPEATS: Final = 5


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds at one size, medians: a plan, and the whole graph anew and from the optimum before."""

    machines: int
    plan: float
    anew: float
    warm: float


def measure(machines: Sequence[int], seed: int) -> list[Cost]:
    """The costs at each number of machines (multiples of four)."""
    return [Cost(count, _plan(count, seed), *_graph(count, seed)) for count in machines]


def rows(costs: Sequence[Cost]) -> Iterator[Claim]:
    """One row per size."""
    for cost in costs:
        yield Claim(
            f"scale {cost.machines}",
            f"{cost.machines} machines, {_WAITING} jobs wait: a plan; phase 2 with every machine, anew and warm",
            "no such figure",
            f"{cost.plan:.1f} ms; {cost.anew:.1f} ms, {cost.warm:.1f} ms",
            NOT_COMPARABLE,
            f"medians of {_REPEATS} on this machine; a plan starts as many of the jobs as ask for what is free",
        )


def series(costs: Sequence[Cost]) -> list[tuple[str, list[int], list[float]]]:
    """The same as lines of a plot."""
    sizes = [cost.machines for cost in costs]
    return [
        ("plan", sizes, [cost.plan for cost in costs]),
        ("whole phase 2, anew", sizes, [cost.anew for cost in costs]),
        ("whole phase 2, warm", sizes, [cost.warm for cost in costs]),
    ]


def _plan(machines: int, seed: int) -> float:
    cluster = _loaded(machines, seed)
    policy = DRMaestro(network_aware=True, profiles=rodinia.PROFILES)
    workload = rodinia.workload(_WAITING, 4, seed)
    jobs = [job for job in workload.jobs if job.num_tasks]
    queue = [QueuedJob(f"waits {i}", job, float(i)) for i, job in enumerate(jobs)]
    policy.plan(queue, cluster, 0.0)  # builds the columns, which the cluster keeps

    def change() -> Callable[[], object]:
        cluster.release(next(iter(cluster.allocations)))
        return lambda: policy.plan(queue, cluster, 1000.0)

    return _milliseconds(change)


def _loaded(machines: int, seed: int) -> Cluster:
    """A cluster that has been running: local jobs of all kinds on two thirds of its GPUs."""
    random = np.random.default_rng(seed)
    cluster = Cluster(rodinia.machines(machines), rodinia.MACHINE)
    jobs = {job.profile: job for job in rodinia.workload(_WAITING, 4, seed).jobs if job.num_tasks}
    names = sorted(name for name in jobs if name)
    for gpu in np.flatnonzero(random.random(machines * rodinia.GPUS) < _BUSY).tolist():
        job = jobs[names[int(random.integers(len(names)))]]
        share = HostShare(gpu // rodinia.GPUS, job.cpus or 0, job.memory_gb or 0.0)
        cluster.allocate(f"runs {gpu}", Placement((gpu,), topology=cluster.topology, job=job, hosts=(share,)))
    return cluster


def _graph(machines: int, seed: int) -> tuple[float, float]:
    """Solving phase 2 with all its arcs, anew and warm."""
    random = np.random.default_rng(seed)
    free = random.binomial(rodinia.GPUS, 1 - _BUSY, machines).astype(np.int64)
    load = random.random(machines)
    host = random.integers(machines, size=_WAITING)
    waited = np.sort(random.random(_WAITING) * 100)[::-1].copy()
    last = kernels.min_cost_flow(*_phase(free, load, host, waited).network())
    anew: list[float] = []

    def change() -> Callable[[], object]:
        some = random.integers(machines, size=max(machines // 100, 1))
        free[some] = random.binomial(rodinia.GPUS, 1 - _BUSY, len(some))
        waited[:] += 1.0
        network = _phase(free, load, host, waited).network()
        before = last

        def solve() -> object:
            return kernels.min_cost_flow(*network, warm_start=before)

        begin = time.perf_counter()
        kernels.min_cost_flow(*network)
        anew.append((time.perf_counter() - begin) * 1e3)
        return solve

    warm = _milliseconds(change)
    return median(anew), warm


def _phase(free: Ints, load: np.ndarray, host: Ints, waited: np.ndarray) -> Phase:
    """Phase 2 of figure 22: every GPU prefers the machine of its process, and the aggregator offers every machine."""
    costs, tasks = Costs(), np.arange(len(host), dtype=np.int64)
    one = np.zeros(1, dtype=np.int64)
    local = np.repeat(costs.place(np.ones(1), LOCAL), len(host))
    remote = costs.place(1 + load * rodinia.PROFILES["nw"].sensitivity(remote=True), REMOTE)
    places = np.arange(len(free), dtype=np.int64)
    return Phase(
        job=tasks,
        kind=np.repeat(one, len(host)),
        aggregated=np.repeat(one, len(host)),
        unscheduled=costs.wait(waited),
        room=free,
        preferred=(tasks, host, local),
        offered=(np.repeat(one, len(free)), places, free, remote),
    )


def _milliseconds(change: Callable[[], Callable[[], object]]) -> float:
    """The median time of what `change` returns, which itself does not count."""
    times: list[float] = []
    for _ in range(_REPEATS):
        step = change()
        begin = time.perf_counter()
        step()
        times.append((time.perf_counter() - begin) * 1e3)
    return median(times)
