"""The GPU of each task of a split job: by a policy's rule, by the mapping kernel, or by an exact search."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from topoplace import kernels
from topoplace.engine.admission import MAX_SEARCHED_GPUS, candidate_gpu_sets_among, joined_gpu_sets_among
from topoplace.engine.gangs.offers import MachineOffer, Offers, idle_offers
from topoplace.engine.gangs.rules import allowed_splits
from topoplace.engine.gangs.splits import MAX_SPLITS, MachineSplit
from topoplace.engine.gangs.task_orders import Block, InnerOrders, in_blocks
from topoplace.engine.gpu_sets import by_machine, largest_union, one_per_machine
from topoplace.engine.machines.machine_class import finite, members
from topoplace.engine.machines.machine_conditions import MachineState
from topoplace.errors import DeadlineError, SearchTimeoutError
from topoplace.kernels.limits import Countdown, WorkBudget, check_deadline
from topoplace.objectives.pair_links import job_communication_cost

if TYPE_CHECKING:
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.machines.machine_class import MachineClass, Mask
    from topoplace.engine.request import JobRequest

_MAX_NODES = 200_000
"""Nodes of the searches for a connected assignment, per job: about 0.1 s of work."""
_MAX_MAPPED_MACHINES = 16
"""The largest number of machines on which a gang is also mapped onto all GPUs at once."""
_MAX_EMBEDDED = 512
"""Limit on the GPUs of a search for a connected assignment, unless the job is larger."""


class SplitRule(Protocol):
    """A policy's rule for splitting a job over several machines."""

    timeout: float | None
    """Limit in seconds on the search for the tasks of each machine and their GPUs; None for no limit."""

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


def candidates(
    rule: SplitRule, request: JobRequest, view: ClusterView, offers: Offers
) -> Iterator[Sequence[int]]:
    """Yield candidate assignments (the GPU of each task), best first: up to 16 by `rule`, then one more.

    The last one is the mapping of lowest communication cost found onto all offered GPUs, without regard to machines. It
    is omitted for anti-affine jobs, with fixed partitions, and for more than 4096 GPUs. The GPUs may be no legal union
    of partitions, and tasks that communicate may have no path; then try `connected_assignment`.
    """
    yield from islice(_assigned(rule, request, view, offers), MAX_SPLITS)
    anywhere = numbered([(offer.machine, offer.gpus_for(offer.max_tasks)) for offer in offers], view)
    free_choice = not (request.anti_affine or request.limits_machines) and not any(
        offer.partitions for offer in offers
    )
    if free_choice and request.size <= len(anywhere) <= MAX_SEARCHED_GPUS:
        yield least_communication(request, anywhere, view)


def in_parts(
    rule: SplitRule, request: JobRequest, view: ClusterView, offers: Offers
) -> Iterator[Sequence[int]]:
    """Yield at most one assignment of a job with groups: machine by machine, in the order of the rule.

    After the `timeout` of the rule, the tasks of a machine get its GPUs by number.
    """
    from topoplace.engine.gangs.division import divided, part_jobs

    countdown = Countdown(rule.timeout)
    parts = divided(request, offers, view, rule.timeout and rule.timeout / 2)
    if parts is None:
        return
    gpus = [-1] * request.size
    for part, job in zip(parts, part_jobs(request.job, parts), strict=True):
        numbers = numbered([(part.machine, part.usable)], view)
        order: Sequence[int] = numbers[: len(part.tasks)]
        with suppress(DeadlineError), countdown.block():
            check_deadline()
            order = rule.task_order(view.request(job), numbers, view)
        for task, gpu in zip(part.tasks, order, strict=True):
            gpus[task] = gpu
    check_deadline()  # that of the caller
    yield gpus


def connected_assignment(
    request: JobRequest, view: ClusterView, offers: Sequence[MachineOffer]
) -> Sequence[int] | None:
    """Return a legal assignment in which all tasks that communicate have a path, found by exact search, else None.

    A job with requirements on its machines has none. The search is limited to 200,000 nodes, and to 512 GPUs at a time
    or the job's size.
    """
    if request.limits_machines or _room(offers, request) < request.size:
        return None
    job, topology, budget = request.job, view.cluster.topology, WorkBudget(_MAX_NODES)
    limits = np.zeros(view.classes.num_machines, dtype=np.int64)
    limits[[offer.machine for offer in offers]] = [offer.max_tasks for offer in offers]
    gpus = sorted(numbered([(offer.machine, offer.usable) for offer in offers], view))
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
    return min(orders, key=lambda order: job_communication_cost(request.job, order, topology))


def lowest_gpus(request: JobRequest, gpus: Sequence[int], view: ClusterView) -> Sequence[int]:
    """Return the GPU of each task, the first of `gpus`, or for an anti-affine job the first of each machine."""
    if request.anti_affine:
        gpus = [group[0] for group in by_machine(gpus, view.cluster.topology).values()]
    return gpus[: request.size]


def _least_communication(request: JobRequest, gpus: Sequence[int], view: ClusterView) -> Sequence[int]:
    """Return the GPU of each task: mapped machine by machine, and on few machines at once if that is cheaper."""
    if not request.job.edges:
        return gpus[: request.size]
    masks = view.classes.by_machine(gpus)
    by_machine = in_blocks(request.job, *_blocks(masks, view)) if len(masks) > 1 else None
    topology = view.cluster.topology
    proven = by_machine is not None and by_machine.is_least and topology.pairs.attachments is None
    if by_machine and (proven or len(masks) > _MAX_MAPPED_MACHINES):
        return by_machine.gpus
    distance = finite(view.classes.distances(gpus, topology))
    found = kernels.map_graph(request.job.graph, distance)
    assert found is not None  # `gpus` has at least one GPU per task
    order: list[int] = found.target_of.tolist()
    at_once = [gpus[i] for i in order]
    if by_machine is None:
        return at_once
    return min(at_once, by_machine.gpus, key=lambda one: job_communication_cost(request.job, one, topology))


def _blocks(masks: Mapping[int, Mask], view: ClusterView) -> tuple[list[Block], NDArray[np.float64]]:
    """Return the machines of a split, near ones together, and the distances between them.

    masks: by machine, its GPUs that the job may use. The distance between GPUs of two machines is that between the
    machines' first ones.
    """
    classes, topology = view.classes, view.cluster.topology
    machines = np.array(list(masks), dtype=np.int64)
    levels = topology.levels
    order = np.lexsort((machines, *(level.codes[machines] for level in levels)))
    near: list[int] = machines[order].tolist()
    blocks = [
        Block(classes.gpus_of[machine], masks[machine], _orders(classes.of(machine), view))
        for machine in near
    ]
    firsts = [block.gpus[next(members(block.usable))] for block in blocks]
    return blocks, finite(classes.between(firsts, topology))


def _orders(machine_class: MachineClass, view: ClusterView) -> InnerOrders:
    return view.table(
        (InnerOrders, machine_class),
        lambda: InnerOrders(finite(machine_class.distance), machine_class.target),
    )


def communication_range(rule: SplitRule, request: JobRequest, view: ClusterView) -> tuple[float, float]:
    """Return the lowest and the highest communication cost of the job.

    The range is that on one idle machine if the job fits on one; otherwise it is an estimate for the idle cluster.
    """
    if request.classes_that_fit:
        return request.communication_range
    return view.table((rule, request, "idle range"), lambda: _idle_range(rule, request, view))


def _idle_range(rule: SplitRule, request: JobRequest, view: ClusterView) -> tuple[float, float]:
    """Return an estimated range of the communication cost of a job that is split over an idle cluster.

    The low end is the cost of the first assignment of the rule in which tasks that communicate have paths, or 0 if none
    of the first 16 is one. The high end charges every edge the distance from the first machine to the farthest one.
    """
    topology = view.cluster.topology
    assigned = islice(_assigned(rule, request, view, idle_offers(rule.max_tasks, request, view)), MAX_SPLITS)
    costs = (job_communication_cost(request.job, gpus, topology) for gpus in assigned)
    least = next(filter(math.isfinite, costs), 0.0)
    return least, max(least, request.weight * view.classes.farthest_machine(topology))


def _assigned(
    rule: SplitRule, request: JobRequest, view: ClusterView, offers: Offers
) -> Iterator[Sequence[int]]:
    """Yield the assignments (the GPU of each task) that the rule makes from these offers, best first."""
    for split in allowed_splits(request, offers, view, lambda some: rule.splits(request, some, view)):
        yield rule.task_order(request, numbered(split, view), view)


def numbered(split: MachineSplit, view: ClusterView) -> list[int]:
    """Return the GPUs that the machines of a split offer, in order of the split."""
    numbers = view.classes.gpus_of
    return [numbers[machine][local] for machine, mask in split for local in members(mask)]


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
