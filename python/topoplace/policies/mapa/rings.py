"""Placements on the GPUs whose rings carry the most, for policies that search as MAPA's do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from topoplace import collective
from topoplace.collective import Rates, SetChoice, Wanted
from topoplace.collective.machine_graph import MAX_GPUS
from topoplace.collective.rated_sets import grade_of, mask_of
from topoplace.placement import Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.admission import GpuSet
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.kernels import WorkBudget
    from topoplace.placement import Placement
    from topoplace.policies.mapa.search import MapaPolicy
    from topoplace.topology.topology import Topology

RING, LOST = "ring_bandwidth", "lost_ring_bandwidth"
_MOST_TRIES = 64


class Search(NamedTuple):
    """What is placed where."""

    policy: MapaPolicy
    """Whose `embed` puts tasks on chosen GPUs."""
    job: JobGraph
    cluster: Cluster
    free: GpuSet
    required: GpuSet
    budget: WorkBudget
    rates: Rates | str


class _RingMachine(NamedTuple):
    """A machine as its own topology, and the numbers of its GPUs in the whole topology."""

    topology: Topology
    gpus: Sequence[int]


def place(search: Search) -> Placement | None:
    """Return the best placement by `order` inside `free` that uses all of `required`, None if there is none.

    Where no machine has room, and on machines of more than 64 GPUs, the fastest slowest link decides, then the sum of
    all links.
    """
    found: list[Placement] = []
    all_tried = True
    for machine in _machines(search):
        placement, no_better = _on_machine(search, machine)
        all_tried = all_tried and no_better
        if placement is not None:
            found.append(placement)
    best = min(found, key=lambda one: (order(search.job, one), sorted(one.gpus)), default=None)
    if best is None:
        best = search.policy.embed(
            search.job, search.cluster, search.free, search.required, search.budget, "bottleneck_sum"
        )
        best = best and _with_ring_bandwidth(best, search.rates)
    return best if best is None or all_tried else replace(best, optimal=False)


def _with_ring_bandwidth(placement: Placement, rates: Rates | str) -> Placement:
    """Return a placement over several machines with its ring bandwidth; others, on too large machines, unchanged."""
    topology = placement.topology
    machines = {int(topology.machine_of[gpu]) for gpu in placement.gpus}
    names = [topology.machine_names[machine] for machine in machines]
    if len(names) == 1 or any(len(topology.gpus_of[name]) > MAX_GPUS for name in names):
        return placement
    gb_per_s = collective.ring_bandwidth(topology, placement.gpus, rates=rates)
    return replace(placement, scores={**placement.scores, RING: gb_per_s})


def order(job: JobGraph, placement: Placement) -> tuple[float, ...]:
    """Return the sort key of a placement, smaller is better: its bandwidth in steps of 10 %, and what others lose.

    Of a job without edges, only the latter counts. Placements without a ring bandwidth come last.
    """
    scores = placement.scores
    if LOST not in scores:
        return 1.0, -scores["bottleneck_bandwidth"], -scores["aggregated_bandwidth"]
    return 0.0, -grade_of(scores[RING]) if job.edges else 0.0, scores[LOST]


def reason_to_wait(job: JobGraph, placement: Placement, least: float | None) -> Refusal | None:
    """Return a refusal of a job with edges whose rings would carry less than `least` GB/s, else None."""
    best = placement.scores.get(RING)
    if least is None or best is None or best >= least or not job.edges:
        return None
    return Refusal(f"waits: the best ring bandwidth now is {best:g} GB/s, the minimum is {least:g}")


def _machines(search: Search) -> Iterator[_RingMachine]:
    """Yield the machines that may have room for the job and whose sets of GPUs can be rated."""
    topology, free = search.cluster.topology, search.free
    if topology.num_machines == 1:
        if topology.num_gpus <= MAX_GPUS:
            yield _RingMachine(topology, range(topology.num_gpus))
        return
    for machine, gpus in enumerate(topology.gpus_of.values()):
        some = free.intersection(gpus)
        if len(some) >= search.job.num_tasks and search.required <= some and len(gpus) <= MAX_GPUS:
            yield _RingMachine(topology.template(machine), gpus)


def _on_machine(search: Search, machine: _RingMachine) -> tuple[Placement | None, bool]:
    """Return the best placement on a machine, and False if a better one may be among those that were not tried."""
    job, gpus = search.job, machine.gpus
    wanted = Wanted(
        job.num_tasks,
        _local(search.free, gpus),
        _local(search.required, gpus),
        _local(search.cluster.free_gpus(), gpus),
        bool(job.edges),
    )
    choice = collective.best_set(machine.topology, wanted, rates=search.rates)
    if choice is None:
        return None, True
    placement = _placed(search, machine, choice)
    if placement is not None:
        return placement, choice.exact
    others = islice(collective.ranked_sets(machine.topology, wanted, rates=search.rates), 1, None)
    for other in islice(others, _MOST_TRIES):
        placement = _placed(search, machine, other)
        if placement is not None:
            return placement, other.exact
    return None, choice.exact and next(others, None) is None


def _local(chosen: frozenset[int] | Sequence[int], gpus: Sequence[int]) -> int:
    """Return those of a machine's GPUs that are chosen, as bits by their number on the machine."""
    if isinstance(gpus, range):  # the machine is the whole topology
        return mask_of(chosen)
    some = set(chosen)
    return mask_of(i for i, gpu in enumerate(gpus) if gpu in some)


def _placed(search: Search, machine: _RingMachine, choice: SetChoice) -> Placement | None:
    """Return the tasks on the chosen GPUs for the largest aggregated bandwidth; None if an edge has no link."""
    chosen = frozenset([machine.gpus[gpu] for gpu in choice.gpus])
    scores = {LOST: choice.lost_gb_per_s}
    if len(chosen) > 1:
        scores[RING] = choice.gb_per_s
    return search.policy.embed(
        search.job, search.cluster, chosen, frozenset(), search.budget, own_scores=scores
    )
