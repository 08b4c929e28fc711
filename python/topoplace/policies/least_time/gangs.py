"""The machines of a gang: its tasks, or groups of them, are mapped to the tree of the domains of the machines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace import kernels
from topoplace.engine.gangs.division import Part, divided, part_jobs
from topoplace.engine.level_chain import PlacedLevel
from topoplace.engine.machines.machine_class import members
from topoplace.engine.machines.machine_conditions import Sight
from topoplace.engine.request import exact_request_key
from topoplace.jobs.groups import MACHINE, Group
from topoplace.jobs.together import preferred_of, required_of
from topoplace.objectives.communication import RING_KINDS, measured, task_flows
from topoplace.policies.least_time import bounds, machine_sets
from topoplace.policies.least_time.machine_tree import MachineTree, chain_of, others_on_uplinks
from topoplace.topology.ports import Ports

if TYPE_CHECKING:
    from topoplace.collective.rates import Rates
    from topoplace.engine.gangs.offers import Offers
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest
    from topoplace.jobs.job_graph import JobGraph

Ints = NDArray[np.int64]
_WORK: Final = 400_000
"""Moves times edges of an item, for up to 128 items: less than a tenth of a second."""
_MOST_WORK: Final = 2_000_000
_MOST_WORK_BESIDE_OTHERS: Final = 800_000
"""Beside other jobs the bound is seldom reached, so that a search seldom ends before."""
_MOVES_OF_AN_ITEM: Final = 4_000
_ALL_SETS: Final = 1000
"""Of so few sets of the GPUs that a small gang may have, all are compared."""
_MOST_EXCHANGED: Final = 4096
"""Most GPUs of a gang times other free GPUs times tasks, for which GPUs are exchanged one by one."""
_ROUNDING: Final = 1e-6
_MOST_REGIONS: Final = 16
"""Domains that are tried for a small gang besides the fullest."""
_MUCH_ROOM: Final = 8
"""More machines than have room for so many times the job are not looked at."""


class Mapped(NamedTuple):
    """Where a gang goes."""

    gpus: list[int]
    """The GPU of each task."""
    least_seconds: float
    """No placement on the machines offered takes fewer seconds."""


def mapped(
    request: JobRequest,
    view: ClusterView,
    offers: Offers,
    *,
    timing: machine_sets.Timing,
    others: kernels.FlowCounts | None,
    timeout: float | None,
) -> Mapped | None:
    """Return where a gang goes; None if there is not room, or if its machines are not free to choose.

    That is so if they are to be spread, few, or of equal GPUs, and with fixed partitions of GPUs and groups on sockets.

    Args:
        timing: How times on one machine are computed and compared.
        others: The flows of running jobs, which count on uplinks.
        timeout: Limit in seconds on the search for the machines.
    """
    job, gang = request.job, _gang(request, view, offers, others)
    if gang is None:
        return None
    most_moves = _moves(gang.exchanges, _MOST_WORK if others is None else _MOST_WORK_BESIDE_OTHERS)
    for machines, tree in _trees(request, gang, view, offers):
        found = _on_tree(job, tree, gang, others, most_moves, timeout)
        if found is None:
            continue
        gpus = _gpus_of(job, tree.parts(gang.units, found.leaf_of), view, timing)
        gpus = _best_exchanged(request, gang, gpus, found.seconds, machines, view, timing)
        rooms = tree.rooms(offers)
        least = bounds.least_seconds(job, gang.units, gang.exchanges, rooms, view, timing.rates)
        return Mapped(gpus, least)
    return None


def can_be_mapped(request: JobRequest, view: ClusterView, offers: Offers) -> bool:
    """Return True if `mapped` finds a place, if its time does not end."""
    gang = _gang(request, view, offers, None)
    if gang is None:
        return False
    trees = _trees(request, gang, view, offers)
    return any(_on_tree(request.job, tree, gang, None, 0, None) for _, tree in trees)


class _Gang(NamedTuple):
    """What is mapped."""

    units: Ints
    """(u, t) the tasks of each item."""
    exchanges: kernels.Exchanges
    parts: list[Part] | None
    """The machines from which the search starts, where groups decide about these."""


def _gang(
    request: JobRequest, view: ClusterView, offers: Offers, others: kernels.FlowCounts | None
) -> _Gang | None:
    job = request.job
    is_bound = request.spread or job.max_machines or job.same_gpus or request.needs_sockets
    if is_bound or not offers.is_simple or not len(offers):
        return None
    units = _units(job, int(offers.sizes.max()), offers)
    parts = _divided_beside(job, units, request, view, offers, others)
    if parts is None and _needs_division(job, units):
        return None
    return _Gang(units, _exchanges(job, units), parts)


def _trees(
    request: JobRequest, gang: _Gang, view: ClusterView, offers: Offers
) -> Iterator[tuple[Offers, MachineTree]]:
    """Yield the machines to try, the most promising ones first, and their tree."""
    some = offers if gang.parts else _promising(request, offers, view)
    for machines in (some, offers) if len(some) < len(offers) else (offers,):
        yield machines, MachineTree(request, machines, view, gang.units.shape[1])


def _on_tree(
    job: JobGraph,
    tree: MachineTree,
    gang: _Gang,
    others: kernels.FlowCounts | None,
    most_moves: int,
    timeout: float | None,
) -> kernels.TreeMapping | None:
    units, exchanges, parts = gang
    start = tree.leaves_of(units, parts) if parts else np.empty(0, np.int64)
    if parts and (start < 0).any():
        return None
    confined = tree.confined(job, units, start) if parts else ()
    room = np.bincount(start, minlength=len(tree.room)) if parts and job.balanced else tree.room
    return kernels.map_to_tree(
        tree.ports(room),
        exchanges,
        start=start,
        confined=confined,
        others=() if others is None else tree.others(others, _largest_flows(job, units)),
        moves=most_moves,
        timeout=timeout,
    )


def _moves(exchanges: kernels.Exchanges, most_work: int) -> int:
    n = exchanges.num_items
    degree = max(1.0, 2 * len(np.asarray(exchanges.start)) / n)
    work = min(_WORK * max(1.0, n / 128), most_work)
    return int(min(work / degree, _MOVES_OF_AN_ITEM * n))


# ---- items -----------------------------------------------------------------------------------------------------


def _units(job: JobGraph, most: int, offers: Offers) -> Ints:
    """Return (u, t) the tasks of each item that is mapped as a whole: a group of one machine, or else single tasks.

    These are the groups that one machine must have, or of the dimension in which a task exchanges the most, if they
    are equally large and the machines have room for all of them.
    """
    required = [one.tasks for one in required_of(job) if one.level == MACHINE]
    others = [one.tasks for one in required_of(job) if one.level != MACHINE]
    candidates = [required] if required else [job.dimensions[name] for name in _heaviest_first(job)]
    for groups in candidates if not job.anti_affinity else ():
        size = len(groups[0]) if groups else 0
        if not 1 < size <= most or int((offers.sizes // size).sum()) * size < job.num_tasks:
            continue
        if _are_equal_parts(groups, job.num_tasks) and _are_whole(np.array(groups), others):
            return np.array(groups)
    return np.arange(job.num_tasks)[:, None]


def _are_equal_parts(groups: Sequence[Sequence[int]], num_tasks: int) -> bool:
    """Return True if the groups are equally large, and each task is in one of them."""
    if any(len(group) != len(groups[0]) for group in groups):
        return False
    tasks = [task for group in groups for task in group]
    return len(tasks) == num_tasks == len(set(tasks))


def _heaviest_first(job: JobGraph) -> list[str]:
    """Return the dimensions that the job states, that in which pairs exchange the most first."""
    if not job.stated_collectives:
        return []
    amounts = {
        name: max((float(batch.carried.max()) for batch in batches), default=0.0)
        for name, batches in job.traffic.items()
    }
    return sorted(amounts, key=lambda name: -amounts[name])


def _are_whole(units: Ints, groups: Sequence[Sequence[int]]) -> bool:
    """Return True if each group has all tasks or none of every unit."""
    unit_of = bounds.unit_of_tasks(units)
    return all(len(np.unique(unit_of[list(group)])) * units.shape[1] == len(group) for group in groups)


def _exchanges(job: JobGraph, units: Ints) -> kernels.Exchanges:
    """Return what the items exchange in each dimension; what tasks of one item exchange does not count."""
    unit_of = bounds.unit_of_tasks(units)
    ends: list[int] = [0]
    pairs: list[Ints] = []
    amounts: list[NDArray[np.float64]] = []
    for batches in job.traffic.values():
        keys: list[Ints] = [np.empty(0, np.int64)]
        carried: list[NDArray[np.float64]] = [np.empty(0)]
        for batch in batches:
            here, there = (unit_of[batch.tasks[:, places]] for places in batch.pairs)
            apart = here != there
            keys.append((np.minimum(here, there) * len(units) + np.maximum(here, there))[apart])
            carried.append(np.broadcast_to(batch.carried[:, None], here.shape)[apart])
        distinct, place = np.unique(np.concatenate(keys), return_inverse=True)
        pairs.append(distinct)
        amounts.append(np.bincount(place, np.concatenate(carried), minlength=len(distinct)).astype(float))
        ends.append(ends[-1] + len(distinct))
    start, end = np.divmod(np.concatenate(pairs or [np.empty(0, np.int64)]), len(units))
    return kernels.Exchanges(len(units), ends[1:], start, end, np.concatenate(amounts or [np.empty(0)]))


def _largest_flows(job: JobGraph, units: Ints) -> list[float]:
    """Return the GB of the largest flow in one direction in each dimension; those inside an item do not count."""
    unit_of = bounds.unit_of_tasks(units)
    found: list[float] = []
    for batches in job.traffic.values():
        largest = 0.0
        for batch in batches:
            items = unit_of[batch.tasks]
            carried = batch.carried[(items != items[:, :1]).any(axis=1)]
            share = 1.0 if batch.kind in RING_KINDS else 0.5
            largest = max(largest, share * float(carried.max(initial=0.0)))
        found.append(largest)
    return found


# ---- groups ----------------------------------------------------------------------------------------------------


def _needs_division(job: JobGraph, units: Ints) -> bool:
    """Return True if which machines get which tasks is decided by groups, or by the fewest domains alone."""
    are_whole = units.shape[1] > 1  # then units are the groups of machines, if there are any
    required = any(one.level != MACHINE or not are_whole for one in required_of(job))
    return required or bool(preferred_of(job) or job.balanced) or not job.edges


def _divided_beside(
    job: JobGraph,
    units: Ints,
    request: JobRequest,
    view: ClusterView,
    offers: Offers,
    others: kernels.FlowCounts | None,
) -> list[Part] | None:
    """Return a division as `_divided`, over domains whose uplinks no other job uses if it is no wider."""
    parts = _divided(job, units, request, view, offers)
    if parts is None or others is None:
        return parts
    idle = _with_idle_uplinks(job, units, request, view, offers, others)
    if len(idle) == len(offers) or int(idle.sizes.sum()) < job.num_tasks:
        return parts
    other = _divided(job, units, request, view, idle)
    widths = [_widths(job, units, chain_of(request, view), one) for one in (other or parts, parts)]
    is_as_narrow = all(one <= before for one, before in zip(*widths, strict=True))
    return other if other is not None and is_as_narrow else parts


def _with_idle_uplinks(
    job: JobGraph,
    units: Ints,
    request: JobRequest,
    view: ClusterView,
    offers: Offers,
    others: kernels.FlowCounts,
) -> Offers:
    """Return the offers in domains whose uplinks no other job uses, up to the outermost level of a group."""
    levels = [level.name for level in chain_of(request, view)]
    named = {level for group in job.groups for level in (group.within, group.prefer)}
    inner = max((i for i, name in enumerate(levels) if name in named), default=-1) + 1
    largest = [max(_largest_flows(job, units), default=0.0)]
    gigabytes = np.zeros(view.cluster.topology.num_machines)
    for name in levels[:inner]:
        gigabytes += others_on_uplinks(view.cluster.topology, name, others, largest)[0]
    return offers.at(np.flatnonzero(gigabytes[offers.machines] == 0))


def _widths(job: JobGraph, units: Ints, levels: Sequence[PlacedLevel], parts: Sequence[Part]) -> list[int]:
    """Return how many domains a division has at each level, and the preferred groups and the units are in."""
    machine_of = np.empty(job.num_tasks, np.int64)
    for part in parts:
        machine_of[part.tasks] = part.machine
    domains = {level.name: level.domains for level in levels}
    together = [(list(one.tasks), one.level) for one in preferred_of(job) if one.level in domains]
    return [
        *(len(np.unique(level.codes[machine_of])) for level in levels),
        *(len(np.unique(domains[level][machine_of[tasks]])) for tasks, level in together),
        len(np.unique(bounds.unit_of_tasks(units) * len(levels[0].codes) + machine_of)),
    ]


def _divided(
    job: JobGraph, units: Ints, request: JobRequest, view: ClusterView, offers: Offers
) -> list[Part] | None:
    """Return a division with all required groups together, and the units whole if that is possible."""
    if not _needs_division(job, units):
        return None
    if units.shape[1] > 1 and not any(group.within == MACHINE for group in job.groups):
        found = divided(view.request(_with_whole_units(job, units)), offers, view)
        if found is not None:
            return found
    parts = divided(request, offers, view)
    return _in_rank_order(parts) if parts and _are_alike(job) else parts


def _are_alike(job: JobGraph) -> bool:
    """Return True if all tasks are in all collectives and groups: the library's rings then follow the ranks."""
    groups = [one.tasks for one in (*required_of(job), *preferred_of(job))]
    return all(len(tasks) == job.num_tasks for tasks in (*groups, *(one.tasks for one in job.collectives)))


def _in_rank_order(parts: Sequence[Part]) -> list[Part]:
    """Return parts of the same machines, as large, with consecutive tasks."""
    ordered = sorted(parts, key=lambda part: part.machine)
    ends = np.cumsum([len(part.tasks) for part in ordered]).tolist()
    return [
        part._replace(tasks=list(range(end - len(part.tasks), end)))
        for part, end in zip(ordered, ends, strict=True)
    ]


def _with_whole_units(job: JobGraph, units: Ints) -> JobGraph:
    whole = tuple([Group(tuple(unit), within=MACHINE) for unit in units.tolist()])
    return job.with_(groups=(*job.groups, *whole))


# ---- machines --------------------------------------------------------------------------------------------------


def _promising(request: JobRequest, offers: Offers, view: ClusterView) -> Offers:
    """Return the offers of the outermost domains that have much more room than the job needs, if there are more.

    The smallest that has room for all of it comes first, else the largest.
    """
    levels = chain_of(request, view)[1:]
    if not levels or int(offers.sizes.sum()) <= _MUCH_ROOM * request.size:
        return offers
    _, domain = np.unique(levels[-1].codes[offers.machines], return_inverse=True)
    rooms = np.bincount(domain, offers.sizes)
    order = np.lexsort((np.where(rooms >= request.size, rooms, -rooms), rooms < request.size))
    enough = int(np.searchsorted(np.cumsum(rooms[order]), _MUCH_ROOM * request.size)) + 1
    return offers.at(np.flatnonzero(np.isin(domain, order[:enough])))


# ---- GPUs ------------------------------------------------------------------------------------------------------


def _gpus_of(
    job: JobGraph, parts: Sequence[Part], view: ClusterView, timing: machine_sets.Timing
) -> list[int]:
    """Return the GPU of each task, on each machine by the rule for one machine."""
    gpus = [-1] * job.num_tasks
    for part, own in zip(parts, part_jobs(job, parts), strict=True):
        numbers = view.classes.gpus_of[part.machine]
        for task, local in zip(part.tasks, local_gpus(part, own, view, timing), strict=True):
            gpus[task] = numbers[local]
    return gpus


def local_gpus(part: Part, job: JobGraph, view: ClusterView, timing: machine_sets.Timing) -> Sequence[int]:
    """Return the GPU of each task of a part, a job of its own, by the rule for one machine: their numbers there."""
    machine_class = view.classes.of(part.machine)

    def find() -> tuple[int, ...]:
        _, state = view.conditions(Sight(jobs=False, shares=job.takes_parts)).of_machine(part.machine)
        options = machine_sets.ranked(view.request(job), machine_class, state, part.usable, timing)
        best = min(options, key=lambda option: (option.order, sorted(option.gpus)), default=None)
        return best.gpus if best else tuple(members(part.usable))[: len(part.tasks)]

    key = (local_gpus, timing, machine_class, part.usable, exact_request_key(job))
    return view.table(key, lambda: (job, find()))[1]  # holds the job, so that no other gets its id


# ---- links inside machines -------------------------------------------------------------------------------------


def _best_exchanged(
    request: JobRequest,
    gang: _Gang,
    gpus: list[int],
    seconds: float,
    offers: Offers,
    view: ClusterView,
    timing: machine_sets.Timing,
) -> list[int]:
    """Return the GPU of each task after exchanges, see `_exchanged`, in the fastest domain where one must have all."""
    topology, job = view.cluster.topology, request.job

    def time_of(gpus: Sequence[int]) -> float:
        return measured(job, np.array(gpus, np.int64), topology, rates=timing.rates).seconds

    regions = _regions(request, gang, gpus, offers, view)
    own = next(regions, None)
    if own is None:
        return gpus
    best = _exchanged(request, gpus, seconds, own, view, timing.rates)
    time: float | None = None
    for region in regions:
        time = time_of(best) if time is None else time
        if time <= seconds * (1 + _ROUNDING):
            break
        if job.num_tasks**2 * int(region.sizes.sum()) <= _MOST_EXCHANGED:
            start = _usable(region, view)[: request.size]
            found = _exchanged(request, start, seconds, region, view, timing.rates)
            faster = time_of(found)
            if faster < time / (1 + timing.slack):
                best, time = found, faster
    return best


def _regions(
    request: JobRequest, gang: _Gang, gpus: Sequence[int], offers: Offers, view: ClusterView
) -> Iterator[Offers]:
    """Yield the machines of each domain that may have the whole gang, that of `gpus` first, then the fullest.

    All machines if no domain must have it; none if groups bind its tasks to each other.
    """
    if not gang.parts:
        if not request.job.groups:
            yield offers
        return
    wanted = _levels_of_all(request.job)
    codes = [level.codes for level in chain_of(request, view) if level.name in wanted]
    if not codes or len(codes) < len(wanted):
        return
    keys = np.unique(np.array(codes).T, axis=0, return_inverse=True)[1].reshape(-1)
    own, room = keys[view.classes.machine_of[gpus[0]]], np.bincount(keys[offers.machines], offers.sizes)
    enough = [key for key in np.argsort(room, kind="stable") if room[key] >= request.size and key != own]
    for key in (own, *enough[:_MOST_REGIONS]):
        yield offers.at(np.flatnonzero(keys[offers.machines] == key))


def _levels_of_all(job: JobGraph) -> set[str]:
    """Return the levels of which one domain must have all tasks; none if groups bind tasks besides."""
    required = required_of(job)
    wanted = {one.level for one in required if len(one.tasks) == job.num_tasks}
    is_all = not preferred_of(job) and not job.balanced and all(one.level in wanted for one in required)
    return wanted if is_all else set()


def _usable(offers: Offers, view: ClusterView) -> list[int]:
    return [view.classes.gpus_of[one.machine][gpu] for one in offers for gpu in members(one.usable)]


def _exchanged(
    request: JobRequest,
    gpus: list[int],
    seconds: float,
    offers: Offers,
    view: ClusterView,
    rates: Rates | str,
) -> list[int]:
    """Return the GPU of each task, the best of few sets, or after exchanges of single GPUs as long as that is faster.

    Only of a small gang that links inside machines make slower than its mapping to the tree, which takes `seconds`.
    """
    topology, job = view.cluster.topology, request.job
    best, time = np.array(gpus), measured(job, np.array(gpus), topology, rates=rates).seconds
    if time <= seconds * (1 + _ROUNDING) or job.anti_affinity:
        return gpus
    usable = _usable(offers, view)
    if job.num_tasks**2 * len(usable) > _MOST_EXCHANGED:
        return gpus
    most = dict(zip(offers.machines.tolist(), offers.sizes.tolist(), strict=True))
    network = topology.derived(Ports).network
    are_few = math.comb(len(usable), job.num_tasks) <= _ALL_SETS
    flows = task_flows(job)
    while True:
        others = combinations(sorted(usable), job.num_tasks) if are_few else _with_one_other(best, usable)
        sets = _allowed([best, *map(np.array, others)], topology.machine_of, most)
        orders = network.best_orders(flows, sets)
        found = orders.vertices[int(np.lexsort((orders.port_seconds, orders.seconds))[0])]
        faster = measured(job, found, topology, rates=rates).seconds
        if faster >= time * (1 - _ROUNDING):
            return [int(gpu) for gpu in best]
        best, time = found.astype(np.int64), faster


def _with_one_other(gpus: Ints, usable: Sequence[int]) -> Iterator[Ints]:
    """Yield the GPUs with one other in place of one."""
    for other in sorted(set(usable).difference(gpus.tolist())):
        for place in range(len(gpus)):
            yield np.concatenate([gpus[:place], [other], gpus[place + 1 :]])


def _allowed(sets: Sequence[Ints], machine_of: NDArray[np.integer], most: Mapping[int, int]) -> Ints:
    """Return (s, k) the sets in which no machine gets more tasks than it may."""

    def fits(gpus: Ints) -> bool:
        machines, counts = np.unique(machine_of[gpus], return_counts=True)
        rooms = [most[machine] for machine in machines.tolist()]
        return bool((counts <= rooms).all())

    return np.array([gpus for gpus in sets if fits(gpus)])
