"""A job over several machines: which ones, which GPUs of each, and which task where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol

from topoplace import kernels
from topoplace.engine.admission import MAX_SEARCHED_GPUS
from topoplace.engine.machine_class import Mask, finite, mask_of, members
from topoplace.engine.machine_state import MachineState
from topoplace.objectives.utility import communication_cost

if TYPE_CHECKING:
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest
    from topoplace.topology.fabric import Fabric

_MAX_SPLITS = 16
"""Limit on machine sets tried."""


class MachineOffer(NamedTuple):
    """A machine that could take a part of a job."""

    machine: int
    usable: Mask
    """Its GPUs that are free and suit the job."""
    partitions: tuple[Mask, ...]
    """Those of its partitions that are free and suit; () for a machine without partitions."""
    max_tasks: int
    """Most GPUs this job may take here (memory bandwidth can limit it)."""

    @property
    def size(self) -> int:
        """Number of GPUs it can give."""
        return self.gpus_for(self.max_tasks).bit_count()

    def gpus_for(self, count: int) -> Mask:
        """Return GPUs offered for up to `count` tasks; may exceed `count`, the mapper then picks."""
        if self.partitions:
            fitting = (part for part in self.partitions if part.bit_count() <= min(count, self.max_tasks))
            return max(fitting, key=int.bit_count, default=0)
        few = count == 1 or self.max_tasks < self.usable.bit_count()
        return mask_of(islice(members(self.usable), min(count, self.max_tasks))) if few else self.usable


MachineSplit = list[tuple[int, Mask]]
"""Machines and GPUs of each; together at least as many as the job has tasks."""
States = Iterable[tuple[int, MachineState]]


class SplitRule(Protocol):
    """A policy's rule for splitting a job that is too large for one machine."""

    def splits(
        self, request: JobRequest, offers: Sequence[MachineOffer], view: ClusterView
    ) -> Iterable[MachineSplit]:
        """Yield ways to split the job among machines, best first."""
        ...

    def task_order(self, request: JobRequest, gpus: Sequence[int], view: ClusterView) -> Sequence[int]:
        """Return the GPU of each task out of those of several machines, which are at least as many."""
        ...

    def max_tasks(self, request: JobRequest, state: MachineState) -> int:
        """Return the most tasks of the job that a machine in this state may have."""
        ...


# ---- from machines to tasks ----------------------------------------------------------------------------------


def candidates(rule: SplitRule, request: JobRequest, view: ClusterView) -> Iterator[Sequence[int]]:
    """Yield candidate assignments (the GPU of each task), best first; the last ignores machine boundaries."""
    states = ((machine, view.state(machine)) for machine in range(view.classes.num_machines))
    offers = _offers(rule, request, view, states)
    yield from islice(_assigned(rule, request, view, offers), _MAX_SPLITS)
    anywhere = _numbered([(offer.machine, offer.gpus_for(offer.max_tasks)) for offer in offers], view)
    free_choice = not request.job.anti_affinity and not any(offer.partitions for offer in offers)
    if free_choice and request.size <= len(anywhere) <= MAX_SEARCHED_GPUS:
        yield least_communication(request, anywhere, view)


def least_communication(request: JobRequest, gpus: Sequence[int], view: ClusterView) -> Sequence[int]:
    """Return the GPU of each task, out of at least as many, that cost least communication."""
    if not request.job.edges:
        return gpus[: request.size]
    distance = finite(view.classes.distances(gpus, view.cluster.topology))
    found = kernels.map_graph(request.job.graph, distance)
    assert found is not None  # there are enough
    order: list[int] = found.target_of.tolist()
    return [gpus[i] for i in order]


def communication_range(rule: SplitRule, request: JobRequest, view: ClusterView) -> tuple[float, float]:
    """Return the least and the largest communication cost: on one machine if the job fits, else on the idle cluster."""
    if request.classes_that_fit:
        return request.communication_range
    return view.table((rule, request, "idle range"), lambda: _idle_range(rule, request, view))


def _idle_range(rule: SplitRule, request: JobRequest, view: ClusterView) -> tuple[float, float]:
    """Return the cost of the rule's first idle assignment, and an upper bound: all edges to the farthest machine."""
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
    """Yield the GPUs of each task if the machines made these offers, best first."""
    for split in rule.splits(request, offers, view):
        yield rule.task_order(request, _numbered(split, view), view)


def _numbered(split: MachineSplit, view: ClusterView) -> list[int]:
    numbers = view.classes.gpus_of
    return [numbers[machine][local] for machine, mask in split for local in members(mask)]


def _offers(rule: SplitRule, request: JobRequest, view: ClusterView, states: States) -> list[MachineOffer]:
    """Return the offers of the machines that could take a part of the job."""
    offers: list[MachineOffer] = []
    for machine, state in states:
        machine_class = view.classes.of(machine)
        usable = state.free & request.suitable(machine_class)
        max_tasks = min(rule.max_tasks(request, state), usable.bit_count())
        partitions = tuple(part for part in machine_class.partitions if part & usable == part)
        if max_tasks and (partitions or not machine_class.partitions):
            offers.append(MachineOffer(machine, usable, partitions, max_tasks))
    return offers


# ---- which machines ------------------------------------------------------------------------------------------


def fill(offers: Iterable[MachineOffer], size: int, *, anti_affine: bool = False) -> MachineSplit | None:
    """Take offers one after the other until there are `size` GPUs; return None where they are not enough.

    anti_affine: take one GPU of each machine. Of a machine with partitions, take the largest one that is not too large.
    """
    split: MachineSplit = []
    left = size
    for offer in offers:
        mask = offer.gpus_for(1 if anti_affine else left)
        if mask:
            split.append((offer.machine, mask))
            left -= min(left, mask.bit_count())
            if not left:
                return split
    return None


def in_order(
    offers: Sequence[MachineOffer], size: int, *, anti_affine: bool = False
) -> Iterator[MachineSplit]:
    """Yield the split over the offers as they come; where partitions do not add up that way, the largest first."""
    split = fill(offers, size, anti_affine=anti_affine)
    split = split or fill(_largest_first(offers), size, anti_affine=anti_affine)
    if split:
        yield split


def nearest(
    offers: Sequence[MachineOffer], size: int, fabric: Fabric | None, *, anti_affine: bool = False
) -> Iterator[MachineSplit]:
    """Yield splits, best first: the fewest machines, and of these the ones that meet at the innermost level.

    Ties go to the domain with the least room, then to the first machine.
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
    """Yield the offers by domain of each level, innermost first; a rail joins GPUs, not machines."""
    for level in fabric.levels if fabric else ():
        groups: dict[str, list[MachineOffer]] = {}
        for offer in offers:
            domain = level.domains[offer.machine]
            if domain is not None and not level.rail:
                groups.setdefault(domain, []).append(offer)
        yield list(groups.values())


def _fewest(offers: Sequence[MachineOffer], size: int, anti_affine: bool) -> MachineSplit | None:
    """Return the largest offers, but for the last machine the smallest that is enough."""
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
