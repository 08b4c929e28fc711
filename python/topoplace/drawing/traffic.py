"""The links that carry the data of a placed job: those of planned rings, or else of pairs of GPUs that communicate.

The slowest link of a ring is the one that takes longest for the data that rings send over it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from topoplace.collective import RingPlan, library_of, rings
from topoplace.collective.machine_graph import MAX_GPUS
from topoplace.drawing.wires import words
from topoplace.objectives.communication import RING_KINDS
from topoplace.topology.links.link_kinds import PATH_KINDS
from topoplace.topology.links.nccl_rates import PathType

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.topology import Topology

Pair = tuple[int, int]
_SAME: Final = 1 - 1e-9
"""Times whose ratio is between this and 1 are equal."""
_MOST_NAMED: Final = 3


@dataclass(frozen=True)
class Traffic:
    """The pairs of GPUs, smaller one first, that carry data of a job, and the pairs that take longest."""

    pairs: frozenset[Pair] = frozenset()
    backward: frozenset[Pair] = frozenset()
    """The pairs in which data go only from the larger number to the smaller."""
    slowest: frozenset[Pair] = frozenset()
    """The pairs of rings that take longest; empty if most take equally long."""
    plans: Sequence[RingPlan] = field(default_factory=tuple[RingPlan, ...])
    """The rings of each collective."""

    def classes(self, *pairs: Pair) -> str:
        """Return the classes that highlight a line shared by these pairs; "" if no data pass it."""
        carrying = self.pairs.intersection(pairs)
        if not carrying:
            return ""
        backward = " backward" if carrying <= self.backward else ""
        return f"used{backward}{' slowest' if self.slowest.intersection(pairs) else ''}"


def traffic_of(topology: Topology, job: JobGraph, gpus: Sequence[int]) -> Traffic:
    """Return the pairs of GPUs that carry the data of a job with task i on `gpus[i]`; rings on one machine only."""
    plans: list[RingPlan] = []
    ways: set[Pair] = set()
    seconds: dict[Pair, float] = {}
    for kind, own, gigabytes, others in _collectives(job, gpus):
        plan = _planned(topology, own) if kind in RING_KINDS else None
        if plan is None:
            ways.update(others)
            continue
        plans.append(plan)
        loads = _loads(topology, plan, own)
        ways.update(loads)
        for (u, v), channels in loads.items():
            link = topology.pairs.link(u, v)
            passed = gigabytes * channels / (plan.gb_per_s * link.gb_per_s)
            seconds[u, v] = seconds.get((u, v), 0.0) + passed
    both = {(min(pair), max(pair)) for pair in ways}
    backward = frozenset((u, v) for u, v in both if (u, v) not in ways)
    return Traffic(frozenset(both), backward, _longest(seconds), plans)


def _collectives(
    job: JobGraph, gpus: Sequence[int]
) -> Iterator[tuple[str, tuple[int, ...], float, list[Pair]]]:
    """Yield the kind of each collective, its GPUs, the GB of a pair, and the pairs that exchange data."""
    for batch in (one for batches in job.traffic.values() for one in batches):
        starts, ends = (places.tolist() for places in batch.pairs)
        for tasks, gigabytes in zip(batch.tasks, batch.carried.tolist(), strict=True):
            own = tuple(gpus[int(task)] for task in tasks)
            yield batch.kind, own, gigabytes, [(own[a], own[b]) for a, b in zip(starts, ends, strict=True)]


def _planned(topology: Topology, gpus: Sequence[int]) -> RingPlan | None:
    """Return the rings of one machine; None if there are none, or the machine is too large for them."""
    if topology.num_machines > 1 or topology.num_gpus > MAX_GPUS:
        return None
    found = rings(topology, gpus)
    return found if found.rings else None


def _loads(topology: Topology, plan: RingPlan, gpus: Sequence[int]) -> Mapping[Pair, float]:
    """Return the GB/s that the rings send from each GPU to the next ones."""
    loads: dict[Pair, float] = {}
    for ring in plan.rings:
        for start, end in pairwise((*ring.gpus, ring.gpus[0])):
            relay = _relay(topology, start, end, gpus) if plan.path_type == PathType.NVB.name else None
            way = [(start, end)] if relay is None else [(start, relay), (relay, end)]
            for pair in way:
                loads[pair] = loads.get(pair, 0.0) + ring.channels * ring.gb_per_s
    return loads


def _relay(topology: Topology, start: int, end: int, gpus: Sequence[int]) -> int | None:
    """Return the GPU that forwards between two without a link of their own; None if they have one."""
    link = topology.pairs.link
    if link(start, end).kind not in PATH_KINDS:
        return None
    speeds = {
        gpu: min(link(start, gpu).gb_per_s, link(gpu, end).gb_per_s)
        for gpu in gpus
        if gpu not in (start, end)
        if not {link(start, gpu).kind, link(gpu, end).kind}.intersection(PATH_KINDS)
    }
    return max(speeds, key=lambda gpu: speeds[gpu], default=None)


def _longest(seconds: Mapping[Pair, float]) -> frozenset[Pair]:
    """Return the pairs that take the longest; none if these are most of several."""
    limit = max(seconds.values(), default=0.0) * _SAME
    found = {(min(pair), max(pair)) for pair, time in seconds.items() if time >= limit}
    all_pairs = {(min(pair), max(pair)) for pair in seconds}
    return frozenset(found if len(all_pairs) == 1 or 2 * len(found) <= len(all_pairs) else ())


def in_words(topology: Topology, traffic: Traffic, numbers: Sequence[int] = ()) -> str:
    """Return the rings of a job and their slowest link in two sentences; "" without rings.

    numbers: the number to show for each GPU; () for its number in the topology.
    """
    if not traffic.plans:
        return ""
    library = library_of(topology)
    count = sum(ring.channels for plan in traffic.plans for ring in plan.rings)
    speeds = sorted({plan.rings[0].gb_per_s for plan in traffic.plans})
    speed = f"{speeds[0]:g}" if len(speeds) == 1 else f"{speeds[0]:g} to {speeds[-1]:g}"
    name = "The library" if library == "another library" else library
    planned = f"{name} plans {count} ring{'s' if count > 1 else ''} of {speed} GB/s."
    slowest = sorted(traffic.slowest)
    if not slowest:
        return f"{planned} Most of their links take equally long."
    called = numbers or range(topology.num_gpus)
    named = ", ".join(f"{called[u]}-{called[v]}" for u, v in slowest[:_MOST_NAMED])
    more = f" and {len(slowest) - _MOST_NAMED} more" if len(slowest) > _MOST_NAMED else ""
    links = {words(topology.pairs.link(u, v)) for u, v in slowest}
    kind = f": {links.pop()}" if len(links) == 1 else ""
    return f"{planned} Their slowest link{'s are' if len(slowest) > 1 else ' is'} {named}{more}{kind}."
