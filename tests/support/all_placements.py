"""The fastest placement of a small job: of all sets of free GPUs in all orders of tasks, or found by exchanges."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations, permutations
from typing import NamedTuple

import numpy as np

import topoplace as tp
from topoplace.collective import Rates
from topoplace.objectives.communication import measured

Gpus = tuple[int, ...]
Placed = Sequence[int]


class Fastest(NamedTuple):
    """The fastest of the placements that were looked at."""

    seconds: float
    """Infinity if there is none with a path for all that is exchanged."""
    gpus: Gpus


def num_placements(job: tp.JobGraph, cluster: tp.Cluster) -> int:
    """Return how many placements `every_placement` yields, at most."""
    free, size = cluster.num_free, job.num_tasks
    return math.perm(free, size) if _depends_on_order(job, cluster.topology) else math.comb(free, size) * 24


def every_placement(job: tp.JobGraph, cluster: tp.Cluster) -> Iterator[Gpus]:
    """Yield every placement whose time may differ, and whose groups are together as they must be."""
    machine_of = cluster.topology.machine_of
    for chosen in combinations(cluster.free_gpus(), job.num_tasks):
        orders: Iterable[Gpus] = permutations(chosen)
        if not _depends_on_order(
            job, cluster.topology
        ):  # rings pass the machines in the order in which they first have a rank
            own = [
                [gpu for gpu in chosen if machine_of[gpu] == one]
                for one in sorted({*machine_of[list(chosen)]})
            ]
            orders = (tuple(chain.from_iterable(one)) for one in permutations(own))
        yield from (gpus for gpus in orders if is_allowed(job, gpus, cluster.topology))


def _depends_on_order(job: tp.JobGraph, topology: tp.Topology) -> bool:
    """Return False if only the set of GPUs, and the order of their machines, decide.

    On rails it counts which GPU of an adapter has the first rank.
    """
    is_one_kind = all(
        len(one.tasks) == job.num_tasks and one.kind not in {"send", "broadcast"} and not one.shares
        for one in job.collectives
    )
    is_special = topology.tiling is None or any(level.rail for level in topology.levels)
    return is_special or not job.collectives or not is_one_kind


def is_allowed(job: tp.JobGraph, gpus: Placed, topology: tp.Topology) -> bool:
    """Return True if the tasks of each group are in one domain, or on one machine."""
    machines = topology.machine_of[list(gpus)]
    domain_of = {level.name: level.codes for level in topology.levels}
    for group in job.groups:
        own = machines[list(group.tasks)]
        together = domain_of[group.within][own] if group.within in domain_of else own
        if len({*own.tolist()}) > 1 and (len({*together.tolist()}) > 1 or together[0] < 0):
            return False
    return True


def seconds_of(job: tp.JobGraph, gpus: Placed, topology: tp.Topology, rates: Rates | str) -> float:
    """Return `communication_time` without its checks."""
    return measured(job, np.array(gpus, np.int64), topology, rates=rates).seconds


def fastest(job: tp.JobGraph, cluster: tp.Cluster, rates: Rates | str = "nccl-2.30") -> Fastest:
    """Return the fastest of all placements."""
    best = Fastest(math.inf, ())
    for gpus in every_placement(job, cluster):
        seconds = seconds_of(job, gpus, cluster.topology, rates)
        if seconds < best.seconds:
            best = Fastest(seconds, gpus)
    return best


def by_exchanges(
    job: tp.JobGraph,
    cluster: tp.Cluster,
    start: Placed,
    draws: random.Random,
    steps: int = 400,
    rates: Rates | str = "nccl-2.30",
) -> Fastest:
    """Return the fastest placement that random exchanges reach: of two tasks, or of a GPU for a free one."""
    now = list(start)
    best = Fastest(seconds_of(job, now, cluster.topology, rates), tuple(now))
    seconds = best.seconds
    for _ in range(steps):
        then = _exchanged(now, cluster.free_gpus(), draws)
        if not is_allowed(job, then, cluster.topology):
            continue
        found = seconds_of(job, then, cluster.topology, rates)
        if found <= seconds * (1.02 if draws.random() < 0.2 else 1.0):
            now, seconds = then, found
        if found < best.seconds:
            best = Fastest(found, tuple(then))
    return best


def _exchanged(gpus: Placed, free: Placed, draws: random.Random) -> list[int]:
    then, place = list(gpus), draws.randrange(len(gpus))
    gpu = draws.choice(free)
    if gpu in then:
        then[then.index(gpu)] = then[place]
    then[place] = gpu
    return then
