"""Gangs on several machines: tasks to machines first, then to GPUs, for the largest sum of link bandwidths."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from topoplace import kernels
from topoplace.engine.gangs.task_orders import Block, InnerOrders, in_blocks
from topoplace.objectives.links import job_link_scores
from topoplace.objectives.pair_links import PairLinks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from topoplace.engine.admission import GpuSet
    from topoplace.engine.machines.machine_class import Mask
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.topology import Topology

_MIN_TASKS = 17
"""Least number of tasks; smaller jobs are searched exactly, ties included."""
_MAX_EXCHANGED = 1024
"""Largest number of GPUs among which exchanges are tried."""
_MAX_BISECTED = 128
"""Largest number of GPUs for which exchanges also start from the mapping kernel's own bisection."""
_KICKS = 100
_MAX_SPEEDS = 8
"""Limit on the speeds of the slowest link that are tried one after the other."""
_NO_LINK = 1e9


class MachineGang(NamedTuple):
    """The GPU of each task of a gang."""

    gpus: list[int]
    proven: bool
    """True if no other choice among the free GPUs is better."""


def on_machines(
    job: JobGraph, topology: Topology, free: GpuSet, objective: Literal["sum", "bottleneck_sum"]
) -> MachineGang | None:
    """Return the best choice found for a gang on free GPUs of several machines, none of which has room for the job.

    objective: "sum" is the largest sum of the bandwidths of the links used; "bottleneck_sum" is the fastest slowest
    link, then that sum. The gang is divided among the machines; if that is not proven to be best, exchanges of GPUs
    follow. Return None for small jobs, for machines whose GPUs have different links to others, and if an edge got no
    link.
    """
    if not PairLinks.serves(topology, len(job.edges)):
        return None
    masks = _by_machine(topology, free)
    rooms = [mask.bit_count() for mask in masks.values()]
    if (
        not _MIN_TASKS <= job.num_tasks <= len(free)
        or max(rooms) >= job.num_tasks
        or topology.pairs.attachments
    ):
        return None
    job = _unweighted(job)
    between = _speeds_between(topology, list(masks))
    fastest = max(float(between.max()), *(one.derived(_MachineSpeeds).fastest for one in topology.templates))
    found = in_blocks(job, _blocks(topology, masks, fastest), _slowness(between, fastest))
    if found is None:
        return None
    exchange = _Exchange(job, topology, free, fastest)
    slowest, _ = exchange.rating(found.gpus)
    if (
        slowest
        and found.is_least
        and (objective == "sum" or slowest >= _fastest_joining(job, rooms, between))
    ):
        return MachineGang(found.gpus, True)
    gpus = exchange.best(found.gpus, objective) if len(free) <= _MAX_EXCHANGED else found.gpus
    return MachineGang(gpus, False) if exchange.rating(gpus)[0] else None


def _unweighted(job: JobGraph) -> JobGraph:
    """Return the job with edges of equal weight, as the bandwidths of links are added up without weights."""
    weights = job.edge_array[:, 2]
    if (weights == weights[0]).all():
        return job
    return type(job).from_edges(job.num_tasks, [edge[:2] for edge in job.edges])


def _blocks(topology: Topology, masks: Mapping[int, Mask], fastest: float) -> list[Block]:
    """Return the machines with these free GPUs; inside them, links count by how much slower than `fastest` they are."""
    blocks: list[Block] = []
    for machine, mask in masks.items():
        gpus = topology.gpus_of[topology.machine_names[machine]]
        blocks.append(Block(gpus, mask, topology.template(machine).derived(_MachineSpeeds).orders(fastest)))
    return blocks


def _fastest_joining(job: JobGraph, rooms: Sequence[int], between: NDArray[np.float64]) -> float:
    """Return a speed that the slowest link of a job cannot exceed, GB/s; infinite for a job of unconnected parts.

    It is the largest speed at which links join machines with room for the whole job.
    """
    if not _is_connected(job):
        return math.inf
    speeds: list[float] = np.unique(between).tolist()
    for speed in reversed(speeds):
        left = set(range(len(rooms)))
        while left:
            group = [left.pop()]
            for machine in group:
                joined = left.intersection(np.flatnonzero(between[machine] >= speed).tolist())
                group.extend(joined)
                left -= joined
            if sum(rooms[machine] for machine in group) >= job.num_tasks:
                return speed
    return math.inf


class _Exchange:
    """Exchanges of GPUs between the tasks of a gang, on whatever machines they are."""

    def __init__(self, job: JobGraph, topology: Topology, free: GpuSet, fastest: float) -> None:
        self._job = job
        self._topology = topology
        self._free = free
        self._fastest = fastest

    def rating(self, gpus: Sequence[int]) -> tuple[float, float]:
        """Return the slowest link used and the sum of all, GB/s."""
        scores = job_link_scores(self._job, gpus, self._topology)
        return scores["bottleneck_bandwidth"], scores["aggregated_bandwidth"]

    def best(self, gpus: list[int], objective: Literal["sum", "bottleneck_sum"]) -> list[int]:
        """Return the best choice found from a first one."""
        gpus = self._improved(gpus, 0.0)
        if objective == "sum":
            return gpus
        listed = sorted(self._free)
        speeds = np.unique(self._topology.bandwidth_matrix()[np.ix_(listed, listed)])
        for least in speeds[speeds > self.rating(gpus)[0]][:_MAX_SPEEDS].tolist():
            faster = self._improved(gpus, least)
            if self.rating(faster)[0] < least:
                break
            gpus = faster
        return gpus

    def _improved(self, gpus: list[int], least: float) -> list[int]:
        """Return the choice of the largest sum that exchanges lead to; links slower than `least` GB/s do not count."""
        listed = sorted(self._free)
        place = {gpu: i for i, gpu in enumerate(listed)}
        speeds = self._topology.bandwidth_matrix()[np.ix_(listed, listed)]
        slowness = _slowness(np.where(speeds < least, 0.0, speeds), self._fastest)
        np.fill_diagonal(slowness, 0.0)
        target = kernels.TargetDistance(slowness)
        start = [place[gpu] for gpu in gpus]
        found = [
            kernels.map_graph(self._job.graph, target, start=one, kicks=kicks)
            for one, kicks in ((start, _KICKS), (None, _KICKS))
            if one or len(listed) <= _MAX_BISECTED
        ]
        best = min((one for one in found if one), key=lambda one: one.cost)
        return [listed[i] for i in best.target_of.tolist()]


def _speeds_between(topology: Topology, machines: Sequence[int]) -> NDArray[np.float64]:
    """Return the bandwidths between the first GPUs of machines, GB/s; 0 on the diagonal."""
    firsts = [topology.gpus_of[topology.machine_names[machine]][0] for machine in machines]
    number, known = topology.derived(PairLinks).among(firsts)
    speeds = known.speeds[number]
    np.fill_diagonal(speeds, 0.0)
    return speeds


class _MachineSpeeds:
    """The orders inside one machine by the speed of its links."""

    def __init__(self, machine: Topology) -> None:
        self._speeds = machine.bandwidth_matrix()
        self._orders: dict[float, InnerOrders] = {}
        self.fastest = float(self._speeds.max(initial=0.0))

    def orders(self, fastest: float) -> InnerOrders:
        """Return the orders that minimise how much slower links are than `fastest`, GB/s."""
        if fastest not in self._orders:
            slowness = _slowness(self._speeds, fastest)
            np.fill_diagonal(slowness, 0.0)
            self._orders[fastest] = InnerOrders(slowness)
        return self._orders[fastest]


def _slowness(speeds: NDArray[np.float64], fastest: float) -> NDArray[np.float64]:
    """Return how much slower than `fastest` links are, GB/s, and a large number where there is none."""
    return np.where(speeds > 0, fastest - speeds, _NO_LINK)


def _by_machine(topology: Topology, free: GpuSet) -> dict[int, Mask]:
    """Return the free GPUs of each machine, machines that are near in the network together."""
    gpus = np.array(sorted(free))
    machine_of, local = topology.machine_of, topology.local_index
    masks: dict[int, Mask] = {}
    for gpu, machine in zip(gpus.tolist(), machine_of[gpus].tolist(), strict=True):
        masks[machine] = masks.get(machine, 0) | 1 << local[gpu]
    machines = np.array(list(masks))
    order = np.lexsort((machines, *(level.codes[machines] for level in topology.levels)))
    return {machine: masks[machine] for machine in machines[order].tolist()}


def _is_connected(job: JobGraph) -> bool:
    """Return True if all tasks of a job communicate, directly or through others."""
    first = list(range(job.num_tasks))

    def root(task: int) -> int:
        while first[task] != task:
            first[task] = task = first[first[task]]
        return task

    left = job.num_tasks
    for a, b, _ in job.edges:
        one, other = root(a), root(b)
        if one != other:
            first[max(one, other)] = min(one, other)
            left -= 1
    return left == 1
