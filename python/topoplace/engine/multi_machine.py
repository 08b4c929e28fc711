"""Split a job over several machines: choose the machines, the GPUs on each, and the GPU of each task."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from topoplace import kernels
from topoplace.engine.admission import MAX_SEARCHED_GPUS, candidate_gpu_sets_among, joined_gpu_sets_among
from topoplace.engine.gpu_sets.one_per_machine import by_machine, one_per_machine
from topoplace.engine.gpu_sets.partition_unions import largest_union
from topoplace.engine.machine_class import Mask, finite, mask_of, members
from topoplace.engine.machine_state import MachineState
from topoplace.errors import SearchTimeoutError
from topoplace.kernels import WorkBudget
from topoplace.objectives.utility import communication_cost

if TYPE_CHECKING:
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest
    from topoplace.topology.fabric import Fabric

_MAX_SPLITS = 16
"""Maximum number of splits over machines that are tried per job."""
_MAX_NODES = 200_000
"""Nodes of the searches for a connected assignment, per job: a tenth of a second's work."""
_MAX_EMBEDDED = 512
"""GPUs among which such a search looks at most, unless the job is larger."""


class MachineOffer(NamedTuple):
    """A machine that can take a part of a job, with the GPUs it offers."""

    machine: int
    usable: Mask
    """The machine's GPUs that are free and meet the job's requirements."""
    partitions: tuple[Mask, ...]
    """The machine's partitions whose GPUs are all usable; () for a machine without partitions."""
    max_tasks: int
    """Maximum number of GPUs this job may take on the machine, limited by usable GPUs, CPUs, memory and memory
    bandwidth."""

    @property
    def size(self) -> int:
        """The largest number of GPUs the machine offers at once."""
        return self.gpus_for(self.max_tasks).bit_count()

    def gpus_for(self, count: int) -> Mask:
        """Return the GPUs offered to up to `count` tasks, as a bit mask; there may be more GPUs than tasks.

        If the machine's GPUs are only allocated in fixed partitions, it is the largest partition of at most `count`
        GPUs, or 0 if all are larger.
        """
        if self.partitions:
            fitting = (part for part in self.partitions if part.bit_count() <= min(count, self.max_tasks))
            return max(fitting, key=int.bit_count, default=0)
        few = count == 1 or self.max_tasks < self.usable.bit_count()
        return mask_of(islice(members(self.usable), min(count, self.max_tasks))) if few else self.usable

    @property
    def single_gpus(self) -> Mask:
        """The GPUs of which a job may get one alone."""
        return (
            sum(part for part in self.partitions if part & part - 1 == 0) if self.partitions else self.usable
        )


MachineSplit = list[tuple[int, Mask]]
"""The machines that share a job, each with its offered GPUs; together at least one GPU per task.

For an anti-affine job, these are one machine per task, each with the GPUs of which it may get one.
"""
States = Iterable[tuple[int, MachineState]]


class SplitRule(Protocol):
    """A policy's rule for splitting a job over several machines."""

    def splits(
        self, request: JobRequest, offers: Sequence[MachineOffer], view: ClusterView
    ) -> Iterable[MachineSplit]:
        """Yield ways to split the job among the offering machines, best first."""
        ...

    def task_order(self, request: JobRequest, gpus: Sequence[int], view: ClusterView) -> Sequence[int]:
        """Return the GPU of each task, chosen from `gpus` of several machines, at least one per task.

        An anti-affine job gets at most one of each machine.
        """
        ...

    def max_tasks(self, request: JobRequest, state: MachineState) -> int:
        """Return the maximum number of the job's tasks that a machine in this state may take."""
        ...


# ---- from machines to tasks ----------------------------------------------------------------------------------


def candidates(
    rule: SplitRule, request: JobRequest, view: ClusterView, offers: Sequence[MachineOffer]
) -> Iterator[Sequence[int]]:
    """Yield candidate assignments (the GPU of each task), best first: up to 16 by `rule`, then one more.

    The last one is the mapping of lowest communication cost found onto all offered GPUs, without regard to machines. It
    is omitted for anti-affine jobs, with fixed partitions, and for more than 4096 GPUs. The GPUs may be no legal union
    of partitions, and tasks that communicate may have no path; then try `connected_assignment`.
    """
    yield from islice(_assigned(rule, request, view, offers), _MAX_SPLITS)
    anywhere = _numbered([(offer.machine, offer.gpus_for(offer.max_tasks)) for offer in offers], view)
    free_choice = not request.job.anti_affinity and not any(offer.partitions for offer in offers)
    if free_choice and request.size <= len(anywhere) <= MAX_SEARCHED_GPUS:
        yield least_communication(request, anywhere, view)


def connected_assignment(
    request: JobRequest, view: ClusterView, offers: Sequence[MachineOffer]
) -> Sequence[int] | None:
    """Return a legal assignment in which all tasks that communicate have a path, found by exact search, else None.

    The search ends after a counted number of steps, and looks at no more than 512 GPUs at once, or the job's size.
    """
    if _room(offers, request) < request.size:
        return None
    job, topology, budget = request.job, view.cluster.topology, WorkBudget(_MAX_NODES)
    limits = np.zeros(view.classes.num_machines, dtype=np.int64)
    limits[[offer.machine for offer in offers]] = [offer.max_tasks for offer in offers]
    gpus = sorted(_numbered([(offer.machine, offer.usable) for offer in offers], view))
    separate = ((found, frozenset[int]()) for found in candidate_gpu_sets_among(job, topology, gpus, limits))
    for among, required in chain(separate, joined_gpu_sets_among(job, topology, gpus, limits)):
        others = sorted(among - required)[: max(_MAX_EMBEDDED, request.size) - len(required)]
        chosen = sorted(required.union(others))
        if len(chosen) < request.size or budget.spent:
            continue
        nearness = 1 / (1 + view.classes.distances(chosen, topology))
        np.fill_diagonal(nearness, 0.0)
        with suppress(SearchTimeoutError):
            found = kernels.best_subgraph(
                job.graph,
                nearness,
                required=map(chosen.index, required),
                max_nodes=_MAX_NODES // 10,
                budget=budget,
            )
            if found is not None:
                vertices: list[int] = found.vertices.tolist()
                return [chosen[i] for i in vertices]
    return None


def least_communication(request: JobRequest, gpus: Sequence[int], view: ClusterView) -> Sequence[int]:
    """Return the GPU of each task, chosen from `gpus` for the lowest communication cost that a heuristic finds.

    gpus: at least one GPU per task, on any machines. A job without edges gets the first ones. An anti-affine job gets
    at most one of each machine, the best of the sets of `one_per_machine`.
    """
    if not request.anti_affine:
        return _least_communication(request, gpus, view)
    topology = view.cluster.topology
    orders = (_least_communication(request, one, view) for one in one_per_machine(sorted(gpus), topology))
    return min(orders, key=lambda order: communication_cost(request.job, order, topology))


def lowest_gpus(request: JobRequest, gpus: Sequence[int], view: ClusterView) -> Sequence[int]:
    """Return the GPU of each task, the first of `gpus`, or for an anti-affine job the first of each machine."""
    if request.anti_affine:
        gpus = [group[0] for group in by_machine(gpus, view.cluster.topology).values()]
    return gpus[: request.size]


def _least_communication(request: JobRequest, gpus: Sequence[int], view: ClusterView) -> Sequence[int]:
    if not request.job.edges:
        return gpus[: request.size]
    distance = finite(view.classes.distances(gpus, view.cluster.topology))
    found = kernels.map_graph(request.job.graph, distance)
    assert found is not None  # `gpus` has at least one GPU per task
    order: list[int] = found.target_of.tolist()
    return [gpus[i] for i in order]


def communication_range(rule: SplitRule, request: JobRequest, view: ClusterView) -> tuple[float, float]:
    """Return the lowest and the highest communication cost of the job.

    The range is that on one idle machine if the job fits on one; otherwise it is an estimate for the idle cluster.
    """
    if request.classes_that_fit:
        return request.communication_range
    return view.table((rule, request, "idle range"), lambda: _idle_range(rule, request, view))


def _idle_range(rule: SplitRule, request: JobRequest, view: ClusterView) -> tuple[float, float]:
    """Return an estimated range of the communication cost of a job that is split over an idle cluster.

    The low end is the cost of the rule's first assignment. The high end charges every edge the distance from the first
    machine to the farthest one.
    """
    classes, topology = view.classes, view.cluster.topology
    machines = range(classes.num_machines)
    idle = ((machine, MachineState(classes.of(machine).healthy, (), 0.0)) for machine in machines)
    gpus = next(_assigned(rule, request, view, _offers(rule, request, view, idle)), None)
    least = 0.0 if gpus is None else communication_cost(request.job, gpus, topology)
    firsts = [numbers[0] for numbers in classes.gpus_of]
    distances = (topology.distance(firsts[0], other) for other in firsts[1:])
    farthest = max((distance for distance in distances if distance < float("inf")), default=0.0)
    return least, max(least, request.weight * farthest)


def _assigned(
    rule: SplitRule, request: JobRequest, view: ClusterView, offers: Sequence[MachineOffer]
) -> Iterator[Sequence[int]]:
    """Yield the assignments (the GPU of each task) that the rule makes from these offers, best first."""
    for split in rule.splits(request, offers, view):
        yield rule.task_order(request, _numbered(split, view), view)


def _numbered(split: MachineSplit, view: ClusterView) -> list[int]:
    numbers = view.classes.gpus_of
    return [numbers[machine][local] for machine, mask in split for local in members(mask)]


def offers_of(
    rule: SplitRule, request: JobRequest, view: ClusterView, most_memory_gb: float = math.inf
) -> list[MachineOffer]:
    """Return one offer for each machine that can take a part of the job now.

    most_memory_gb: limit on the memory of each GPU, GB.
    """
    states = ((machine, view.state(machine)) for machine in range(view.classes.num_machines))
    return _offers(rule, request, view, states, most_memory_gb)


def _offers(
    rule: SplitRule,
    request: JobRequest,
    view: ClusterView,
    states: States,
    most_memory_gb: float = math.inf,
) -> list[MachineOffer]:
    """Return one offer for each machine that can take a part of the job in its given state."""
    offers: list[MachineOffer] = []
    for machine, state in states:
        machine_class = view.classes.of(machine)
        usable = state.free & request.suitable(machine_class, most_memory_gb)
        max_tasks = min(rule.max_tasks(request, state), usable.bit_count())
        partitions = tuple(part for part in machine_class.partitions if part & usable == part)
        if max_tasks and (partitions or not machine_class.partitions):
            offers.append(MachineOffer(machine, usable, partitions, max_tasks))
    return offers


def _room(offers: Sequence[MachineOffer], request: JobRequest) -> int:
    """Return the number of GPUs, up to the job's size, that the offers together have for it."""
    if request.anti_affine:
        return len(offers)
    whole = sum(offer.max_tasks for offer in offers if not offer.partitions)
    groups = [
        [(part.bit_count(), part) for part in offer.partitions if part.bit_count() <= offer.max_tasks]
        for offer in offers
    ]
    return min(request.size, whole + largest_union(groups, request.size))


# ---- which machines ------------------------------------------------------------------------------------------


def fill(offers: Iterable[MachineOffer], size: int, *, anti_affine: bool = False) -> MachineSplit | None:
    """Return the split of a job that accepts offers in the given order until it has at least `size` GPUs, else None.

    A machine whose GPUs are only allocated in fixed partitions contributes its largest partition that does not exceed
    the GPUs still needed. anti_affine: accept each offer for one GPU.
    """
    split: MachineSplit = []
    left = size
    for offer in offers:
        mask = offer.single_gpus if anti_affine else offer.gpus_for(left)
        if mask:
            split.append((offer.machine, mask))
            left -= 1 if anti_affine else min(left, mask.bit_count())
            if not left:
                return split
    return None


def in_order(
    offers: Sequence[MachineOffer], size: int, *, anti_affine: bool = False
) -> Iterator[MachineSplit]:
    """Yield at most one split of a job of `size` GPUs: over the offers in the given order, else largest offers first.

    The second order is tried because fixed GPU partitions may add up to `size` only then.
    """
    split = fill(offers, size, anti_affine=anti_affine)
    split = split or fill(_largest_first(offers), size, anti_affine=anti_affine)
    if split:
        yield split


def nearest(
    offers: Sequence[MachineOffer], size: int, fabric: Fabric | None, *, anti_affine: bool = False
) -> Iterator[MachineSplit]:
    """Yield splits of a job of `size` GPUs: first over the fewest machines, the closest in the network first.

    Splits over more machines follow, by number of machines and then by offered GPUs.
    Closeness is the innermost fabric level with a domain that contains all machines of the split. Ties go to the domain
    with the fewest offered GPUs, then to the lowest machine number. There is no split if the offers are too small.
    """
    overall = _fewest(offers, size, anti_affine)
    if overall is None:
        return
    more: list[tuple[tuple[int, int, int], MachineSplit]] = []
    for groups in _domains(offers, fabric):
        for rank, split in sorted(_ranked(groups, size, anti_affine), key=lambda entry: entry[0]):
            if len(split) == len(overall):
                yield split
            else:
                more.append((rank, split))
    yield overall
    for _, split in sorted(more, key=lambda entry: entry[0]):
        yield split


def _ranked(
    groups: Iterable[Sequence[MachineOffer]], size: int, anti_affine: bool
) -> Iterator[tuple[tuple[int, int, int], MachineSplit]]:
    for group in groups:
        room = sum(one.size for one in group)
        if room >= size and (split := _fewest(group, size, anti_affine)):
            yield (len(split), room, group[0].machine), split


def _domains(offers: Sequence[MachineOffer], fabric: Fabric | None) -> Iterator[list[Sequence[MachineOffer]]]:
    """Yield for each fabric level, innermost first, the offers grouped by the machine's domain.

    A level of rails yields an empty list, since its domains contain GPUs instead of whole machines. Machines without a
    domain at a level are in no group.
    """
    for level in fabric.levels if fabric else ():
        groups: dict[str, list[MachineOffer]] = {}
        for offer in offers:
            domain = level.domains[offer.machine]
            if domain is not None and not level.rail:
                groups.setdefault(domain, []).append(offer)
        yield list(groups.values())


def _fewest(offers: Sequence[MachineOffer], size: int, anti_affine: bool) -> MachineSplit | None:
    """Return a split over few machines, the fewest unless GPUs come in fixed partitions; None if offers are too small.

    It takes the largest offers first, but for the last part of the job the smallest offer that suffices. For an
    anti-affine job, it takes one GPU from each of the machines with the smallest offers.
    """
    if anti_affine:
        return fill(sorted(offers, key=lambda offer: (offer.size, offer.machine)), size, anti_affine=True)
    split = fill(_largest_first(offers), size)
    if split is None:
        return None
    left = size - sum(mask.bit_count() for _, mask in split[:-1])
    used = {machine for machine, _ in split[:-1]}
    tight = [offer for offer in offers if offer.machine not in used and offer.size >= left]
    last = fill(sorted(tight, key=lambda offer: (offer.size, offer.machine)), left)
    if last is not None and len(last) == 1:
        split[-1] = last[0]
    return split


def _largest_first(offers: Iterable[MachineOffer]) -> list[MachineOffer]:
    return sorted(offers, key=lambda offer: (-offer.size, offer.machine))
