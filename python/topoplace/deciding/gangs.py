"""The GPUs of a gang: its tasks, or groups of them, are mapped to the GPUs that machines offer (`kernels.map_gang`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace import _core, kernels
from topoplace.deciding import bounds, ranked_sets
from topoplace.deciding.gang_topology import GangLevels, topology_of_gangs
from topoplace.deciding.machine_tree import (
    chain_of,
    has_narrow_uplinks,
    others_on_uplinks,
    rooms_of,
    unit_of_tasks,
)
from topoplace.engine.gangs.division import Part, divided
from topoplace.engine.gangs.offers import MachineOffer, Offers
from topoplace.engine.level_chain import PlacedLevel, preferred_of, required_of
from topoplace.engine.machines.machine_class import Mask, members
from topoplace.engine.machines.machine_conditions import Sight
from topoplace.engine.request import exact_request_key
from topoplace.errors import DeadlineError, SearchTimeoutError
from topoplace.jobs.groups import MACHINE, SOCKET, Group
from topoplace.kernels.limits import Countdown, check_deadline
from topoplace.objectives.communication import measured
from topoplace.topology.accelerators import compute_seconds

if TYPE_CHECKING:
    from topoplace.deciding.divisions import Divider, Divisions
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.links.nccl_rates import Rates

Ints = NDArray[np.int64]
_Start = tuple[NDArray[np.int32], bool, bool, list[tuple[int, NDArray[np.int32]]], list[int]]
_MOST_DIVIDED: Final = 256
"""Largest number of tasks of a gang whose units are also divided."""
_SHARE_OF_OTHER_UNITS: Final = 0.4
"""Share of the work for mappings of other units."""
_SHARE_OF_WHOLE_ROLES: Final = 0.4
"""Share of the work for mappings that begin with each role on one machine."""
_SHARE_OF_ONE_SOCKET: Final = 0.2
"""Share of the work for mappings on one socket of each machine."""
_MOST_DIVISIONS: Final = 1 << 20
"""Largest number of GPUs x units for which divisions are compared, as they may be faster."""
_MOST_PROVEN: Final = 1 << 17
"""The same where GPUs are alike, and divisions seldom are faster, but prove what is found."""
_ROUNDING: Final = 1e-6
_MUCH_ROOM: Final = 8
"""Only machines with room for this many times the job are searched."""


class Mapped(NamedTuple):
    """The GPUs of a gang, and its communication time."""

    gpus: list[int]
    """The GPU of each task."""
    seconds: float
    """The communication time, next to other jobs if they count."""
    least_seconds: float
    """Lower bound on the seconds of placements on the offered machines."""


def mapped(
    request: JobRequest,
    view: ClusterView,
    offers: Offers,
    *,
    timing: ranked_sets.Timing,
    others: kernels.FlowCounts | None,
    timeout: float | None,
    compact: float,
) -> Mapped | None:
    """Return the GPUs of a gang; None without room, or if its machines cannot be chosen freely.

    They cannot with `spread`, `same_gpus`, fixed partitions of GPUs, or groups on sockets. Also return None if the gang
    would get more than its `max_machines`.

    Args:
        timing: How times on one machine are computed and compared.
        others: The flows of running jobs, which count on uplinks; None for none.
        timeout: Limit in seconds, exceeded only until there is a first mapping; None for no limit.
        compact: The share by which a step may be longer to put the gang into fewer domains with narrow uplinks.
    """
    countdown = Countdown(timeout)

    def search(some: Offers) -> Mapped | None:
        gang = _gang(request, view, some, others, countdown)
        return gang and _Mapper(request, view, some, timing, others, countdown).best(gang)

    found = search(offers)
    if found and compact and not countdown.is_up:
        with suppress(SearchTimeoutError):
            found = _compacted(found, request, view, offers, compact, search)
    return found if found and _keeps_limit(found, request, view) else None


def _keeps_limit(found: Mapped, request: JobRequest, view: ClusterView) -> bool:
    most = request.job.max_machines
    return not most or len(view.classes.by_machine(found.gpus)) <= most


def _compacted(
    found: Mapped,
    request: JobRequest,
    view: ClusterView,
    offers: Offers,
    compact: float,
    search: Callable[[Offers], Mapped | None],
) -> Mapped:
    """Return a mapping over the fewest domains with narrow uplinks if a step is hardly longer; else the same.

    It keeps the `max_machines` and all preferred groups that the other one keeps.
    """
    region = _fewest_domains(found, request, view, offers)
    other = search(region) if region else None
    if other is None or not _keeps_limit(other, request, view) or _parts_more(other, found, request, view):
        return found
    gpus, tflop = view.cluster.topology.gpus, request.job.tflop
    steps = [
        one.seconds + (compute_seconds(tflop, map(gpus.__getitem__, one.gpus)) or 0.0)
        for one in (found, other)
    ]
    return (
        other._replace(least_seconds=found.least_seconds) if steps[1] <= steps[0] * (1 + compact) else found
    )


def _parts_more(one: Mapped, other: Mapped, request: JobRequest, view: ClusterView) -> bool:
    """Return True if a mapping has a preferred group in more domains than another one has."""
    domains = {level.name: level.domains for level in chain_of(request, view)}
    machines = [view.cluster.topology.machine_of[mapping.gpus] for mapping in (one, other)]
    for wish in preferred_of(request.job):
        if wish.level in domains:
            ours, theirs = (np.unique(domains[wish.level][machine[list(wish.tasks)]]) for machine in machines)
            if len(ours) > len(theirs):
                return True
    return False


def _fewest_domains(found: Mapped, request: JobRequest, view: ClusterView, offers: Offers) -> Offers | None:
    """Return the offers of the fewest domains with narrow uplinks that have room; None if a gang is in no more.

    The domains are the largest ones, and the smallest that has room for the rest.
    """
    topology = view.cluster.topology
    levels = chain_of(request, view)[1:]
    level = next((one for one in levels if has_narrow_uplinks(one.name, one.codes, topology)), None)
    if level is None:
        return None
    domain = np.unique(level.codes[offers.machines], return_inverse=True)[1].reshape(-1)
    chosen = _fewest_with_room(np.bincount(domain, offers.sizes).astype(int), request.size)
    if len(chosen) >= len(np.unique(level.codes[topology.machine_of[found.gpus]])):
        return None
    return offers.at(np.flatnonzero(np.isin(domain, chosen)))


def _fewest_with_room(rooms: Ints, size: int) -> list[int]:
    """Return the fewest domains with room for so many tasks, of which all together have room for as many."""
    order = np.argsort(-rooms, kind="stable")
    count = int(np.searchsorted(np.cumsum(rooms[order]), size))
    largest, rest = order[:count], order[count:]
    enough = rest[rooms[rest] >= size - rooms[largest].sum()]
    return [*largest.tolist(), int(enough[-1])]


def order_on(
    request: JobRequest,
    masks: Mapping[int, Mask],
    view: ClusterView,
    *,
    timing: ranked_sets.Timing,
    others: kernels.FlowCounts | None,
    timeout: float | None,
) -> list[int] | None:
    """Return the GPU of each task on machines that are already chosen; None if their GPUs cannot be chosen freely.

    masks: the GPUs of each machine, at least one per task. Other arguments are those of `mapped`.
    """
    if request.anti_affine or any(view.classes.of(machine).partitions for machine in masks):
        return None
    kinds = [MachineOffer(machine, usable, (), usable.bit_count()) for machine, usable in masks.items()]
    offers = Offers(np.array(list(masks), np.int64), np.arange(len(kinds)), kinds, None)
    gang = _Gang(_units(request.job, offers), None)
    found = _Mapper(request, view, offers, timing, others, Countdown(timeout)).best(gang)
    return found and found.gpus


def can_be_mapped(
    request: JobRequest, view: ClusterView, offers: Offers, timeout: float | None = None
) -> bool:
    """Return True if `mapped` is certain to find a mapping within its limits; timeout: as for `mapped`."""
    gang = _gang(request, view, offers, None, Countdown(timeout))
    if gang is None or request.job.max_machines:
        return False
    if gang.parts:
        machine_of = np.empty(request.size, np.int64)
        for part in gang.parts:
            machine_of[part.tasks] = part.machine
        rows = machine_of[gang.units]
        return bool((rows == rows[:, :1]).all())
    room = np.minimum(offers.sizes, 1 if request.anti_affine else request.size) // gang.units.shape[1]
    return int(room.sum()) >= len(gang.units)


def machine_limits(
    request: JobRequest, view: ClusterView, offers: Offers, rates: Rates | str, units: Ints | None = None
) -> bounds.MachineLimits | None:
    """Return lower bounds by what a machine has of a job; None for a job that is not mapped as units.

    units: (u, t) their tasks; None for those that are mapped.
    """
    if not _is_mapped(request, offers):
        return None
    if units is None:
        units = _units(request.job, offers)
    return bounds.machine_limits(request.job, units, rooms_of(request, offers, view), view, rates)


def _divider(request: JobRequest, limits: bounds.MachineLimits, offers: Offers, view: ClusterView) -> Divider:
    """Return what divides a job among the offered machines."""
    from topoplace.deciding.divisions import Divider

    topology = view.cluster.topology
    usable = np.zeros(topology.num_gpus, np.bool_)
    in_order = np.argsort(topology.machine_of, kind="stable")
    firsts = np.searchsorted(topology.machine_of[in_order], offers.machines)
    for mask, places in offers.by_usable():
        usable[in_order[firsts[places, None] + list(members(mask))]] = True
    most = np.zeros(view.classes.num_machines, np.int64)
    most[offers.machines] = np.minimum(offers.sizes, 1 if request.anti_affine else request.size)
    return Divider(limits, usable, most)


def _is_mapped(request: JobRequest, offers: Offers) -> bool:
    """Return True if units of the job may be on any of the machines, and there are some."""
    is_bound = request.spread or request.job.same_gpus or request.needs_sockets
    return not is_bound and offers.is_simple and len(offers) > 0


class _Gang(NamedTuple):
    """What is mapped."""

    units: Ints
    """(u, t) the tasks of each item."""
    parts: list[Part] | None
    """The machines from which the search starts, where groups decide about these."""
    is_bound: bool = True
    """False if the search may leave the machines of `parts`."""


def _gang(
    request: JobRequest,
    view: ClusterView,
    offers: Offers,
    others: kernels.FlowCounts | None,
    countdown: Countdown,
) -> _Gang | None:
    job = request.job
    if not _is_mapped(request, offers):
        return None
    units = _units(job, offers)
    parts = _divided_beside(job, units, request, view, offers, others, countdown)
    if parts is None and _needs_division(job, units):
        return None
    return _Gang(units, parts)


def _levels_of_all(job: JobGraph) -> set[str]:
    """Return the levels of which one domain must have all tasks; none if groups bind tasks besides."""
    required = required_of(job)
    wanted = {one.level for one in required if len(one.tasks) == job.num_tasks}
    is_all = not preferred_of(job) and not job.balanced and all(one.level in wanted for one in required)
    return wanted if is_all else set()


class _Mapper:
    """Searches for the vertices of a gang."""

    def __init__(
        self,
        request: JobRequest,
        view: ClusterView,
        offers: Offers,
        timing: ranked_sets.Timing,
        others: kernels.FlowCounts | None,
        countdown: Countdown,
    ) -> None:
        self._request, self._view, self._offers = request, view, offers
        self._timing, self._others, self._countdown = timing, others, countdown

    def best(self, gang: _Gang) -> Mapped | None:
        """Return the fastest mapping of whole units; of roles, other units or on one socket each if that is faster."""
        best = self._in_regions(gang, self._offers)
        if best is not None and not _is_proven(best) and not self._countdown.is_up:
            with suppress(DeadlineError), self._countdown.block():
                best = self._divided(best)
            check_deadline()  # that of the caller
        if best is not None and self._may_begin_with_roles(gang, best):
            best = self._faster(best, self._from_whole_roles(gang))
        if best is not None and (units := self._other_units(gang, best)) is not None:
            best = self._faster(
                best, self._in_regions(_Gang(units, None), self._offers, _SHARE_OF_OTHER_UNITS)
            )
        if best is not None and self._may_use_one_socket_each(gang, best):
            offers = self._offers.limited(self._fullest_socket)
            best = self._faster(best, self._in_regions(gang, offers, _SHARE_OF_ONE_SOCKET))
        return best

    def _faster(self, best: Mapped | None, other: Mapped | None) -> Mapped | None:
        """Return another mapping if it is faster than the best one by more than the slack."""
        if best is None or other is None:
            return best or other
        return other if other.seconds * (1 + self._timing.slack) < best.seconds else best

    def _in_regions(self, gang: _Gang, offers: Offers, share: float = 1.0) -> Mapped | None:
        """Return the fastest mapping among the machines of each region, the first of equal ones.

        share: of the usual work.
        """
        request, view, timing = self._request, self._view, self._timing
        job, topology = request.job, view.cluster.topology
        found = _core.search_gang(
            topology_of_gangs(topology, timing.rates),
            topology.derived(GangLevels).of(chain_of(request, view), timing.rates),
            view.conditions(Sight(shares=job.takes_parts)).native,
            offers.native,
            job.traffic_arrays.native,
            job.edge_array,
            1 if request.anti_affine else request.size,
            gang.units.astype(np.int32),
            any(group.within == MACHINE for group in job.groups),
            self._start(gang),
            None if self._others is None else self._others.native,
            (timing.slack, timing.near_only, share),
            self._countdown.left,
        )
        check_deadline()  # that of the caller
        return None if found is None else Mapped(found[0].tolist(), *found[1:])

    def _start(self, gang: _Gang) -> _Start:
        """Return the machines from which the search starts, and what they may not leave."""
        request, job = self._request, self._request.job
        if not gang.parts:
            return np.empty(0, np.int32), True, False, [], []
        levels = {level.name: i for i, level in enumerate(chain_of(request, self._view)[::-1])}
        start = np.empty(request.size, np.int32)
        for part in gang.parts:
            start[part.tasks] = part.machine
        together = [
            (levels[one.level], np.array(one.tasks, np.int32))
            for one in (*required_of(job), *preferred_of(job))
            if one.level != SOCKET and not (one.level == MACHINE and len(one.tasks) == gang.units.shape[1])
        ]
        whole = _levels_of_all(job)
        return (
            start,
            not gang.is_bound,
            bool(job.balanced),
            together,
            sorted((levels[name] for name in whole), reverse=True),
        )

    def _other_units(self, gang: _Gang, best: Mapped) -> Ints | None:
        """Return other units that may be faster; None if there are none, or they are not worth a search.

        These are single tasks of a small gang, or else the groups of a dimension in which less is exchanged.
        """
        job, offers = self._request.job, self._offers
        if gang.parts or required_of(job) or _is_proven(best) or self._countdown.is_up:
            return None
        if gang.units.shape[1] == 1:
            return _first_units(_groups_by_traffic(job)[1:], job, offers)
        return np.arange(self._request.size)[:, None] if self._request.size <= _MOST_DIVIDED else None

    def _divided(self, best: Mapped) -> Mapped:
        """Return the fastest division by what each machine can have if it is faster, and what it proves."""
        request, view, job = self._request, self._view, self._request.job
        required, offers = required_of(job), _promising(request, self._offers, view)
        units = _units(job, offers) if required else np.arange(request.size)[:, None]
        if not self._compares_divisions(units, offers):
            return best
        limits = machine_limits(request, view, offers, self._timing.rates, units)
        if limits is None or not (limits.native.are_rings or limits.native.are_groups):
            return best
        divisions = _divider(request, limits, offers, view).fastest()
        if divisions is None:
            return best
        if len(offers) == len(self._offers):
            best = best._replace(least_seconds=max(best.least_seconds, divisions.least(math.inf)))
        is_bound = required or preferred_of(job) or job.balanced or job.max_machines
        return best if is_bound or not limits.native.are_rings else self._faster_division(best, divisions)

    def _compares_divisions(self, units: Ints, offers: Offers) -> bool:
        """Return True if divisions among these machines are few, and may be faster or prove something."""
        work = int(offers.sizes.sum()) * len(units)
        if ranked_sets.are_alike(self._view.cluster.topology):
            is_cheap = work <= _MOST_PROVEN and len(offers) == len(self._offers)
        else:
            is_cheap = work <= _MOST_DIVISIONS
        sizes = {batch.tasks.shape[1] for batches in self._request.job.traffic.values() for batch in batches}
        return is_cheap and (units.shape[1] > 1 or sizes == {self._request.size})

    def _faster_division(self, best: Mapped, divisions: Divisions) -> Mapped:
        """Return a division if it is faster than the best mapping by more than the slack."""
        (gpus,) = divisions.candidates()
        placed, topology = np.array(gpus, np.int64), self._view.cluster.topology
        rates, job = self._timing.rates, self._request.job
        seconds = measured(job, placed, topology, others=self._others, rates=rates).seconds
        return self._faster(best, Mapped(list(gpus), seconds, best.least_seconds)) or best

    def _may_begin_with_roles(self, gang: _Gang, best: Mapped) -> bool:
        is_small = self._request.size <= _MOST_DIVIDED
        has_roles = bool(self._request.job.roles) and not gang.parts
        return has_roles and is_small and not _is_proven(best) and not self._countdown.is_up

    def _from_whole_roles(self, gang: _Gang) -> Mapped | None:
        """Return the fastest mapping found from machines that have a whole role each, as many as can be.

        Other searches begin with tasks in the order of their ranks, so that small steps seldom separate two roles. Of
        machines with unequal room, a role would get what is left of a used one, so the fullest do not count if the
        others have enough.
        """
        job, sizes = self._request.job, self._offers.sizes
        emptiest = self._offers.at(np.flatnonzero(sizes == sizes.max()))
        offers = emptiest if int(emptiest.sizes.sum()) >= self._request.size else self._offers
        whole = tuple([Group(job.dimensions[role][0], prefer=MACHINE) for role, _ in job.roles])
        request = self._view.request(job.with_(groups=(*job.groups, *whole)))
        parts = divided(request, offers, self._view, self._countdown.half)
        if not parts:
            return None
        return self._in_regions(gang._replace(parts=parts, is_bound=False), offers, _SHARE_OF_WHOLE_ROLES)

    def _may_use_one_socket_each(self, gang: _Gang, best: Mapped) -> bool:
        """Return True if a gang may be faster on one socket of each machine, where GPUs are not all alike."""
        is_small = self._request.size <= _MOST_DIVIDED
        if not is_small or gang.parts or _is_proven(best) or self._countdown.is_up:
            return False
        view = self._view
        has_sockets = any(len(one.sockets) > 1 for one in view.classes.classes)
        return has_sockets and not ranked_sets.are_alike(view.cluster.topology)

    def _fullest_socket(self, machine: int, usable: Mask) -> Mask:
        sockets = self._view.classes.of(machine).sockets
        return max((usable & socket for socket in sockets), key=int.bit_count)


def _is_proven(mapped: Mapped) -> bool:
    return mapped.seconds <= mapped.least_seconds * (1 + _ROUNDING)


# ---- items -----------------------------------------------------------------------------------------------------


def _units(job: JobGraph, offers: Offers) -> Ints:
    """Return (u, t) the tasks of each item that is mapped as a whole: a group of one machine, or else single tasks.

    These are the groups that one machine must have, or of the dimension in which a task exchanges the most, if they
    are equally large and the machines have room for all of them.
    """
    required = [one.tasks for one in required_of(job) if one.level == MACHINE]
    groups = [required] if required else _groups_by_traffic(job)[:1]
    return (
        np.arange(job.num_tasks)[:, None] if (found := _first_units(groups, job, offers)) is None else found
    )


def _first_units(candidates: Iterable[Sequence[Sequence[int]]], job: JobGraph, offers: Offers) -> Ints | None:
    """Return the first of these groups that can be units; None if none of them can."""
    others, most = [one.tasks for one in required_of(job) if one.level != MACHINE], int(offers.sizes.max())
    for groups in candidates if not job.anti_affinity else ():
        size = len(groups[0]) if groups else 0
        if not 1 < size <= most or int((offers.sizes // size).sum()) * size < job.num_tasks:
            continue
        if _are_equal_parts(groups, job.num_tasks) and _are_whole(np.array(groups), others):
            return np.array(sorted(map(tuple, groups)))  # by rank, as rings follow it
    return None


def _are_equal_parts(groups: Sequence[Sequence[int]], num_tasks: int) -> bool:
    """Return True if the groups are equally large, and each task is in one of them."""
    if len(set(map(len, groups))) > 1:
        return False
    tasks = [task for group in groups for task in group]
    return len(tasks) == num_tasks == len(set(tasks))


def _groups_by_traffic(job: JobGraph) -> list[Sequence[Sequence[int]]]:
    """Return the groups of each dimension that the job states, that in which pairs exchange the most first."""
    if not job.stated_collectives:
        return []
    amounts = {
        name: max((float(batch.carried.max()) for batch in batches), default=0.0)
        for name, batches in job.traffic.items()
    }
    return [job.dimensions[name] for name in sorted(amounts, key=lambda name: -amounts[name])]


def _are_whole(units: Ints, groups: Sequence[Sequence[int]]) -> bool:
    """Return True if each group has all tasks or none of every unit."""
    unit_of = unit_of_tasks(units)
    return all(len(np.unique(unit_of[list(group)])) * units.shape[1] == len(group) for group in groups)


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
    countdown: Countdown,
) -> list[Part] | None:
    """Return a division as `_divided`, over domains whose uplinks no other job uses if it is no wider."""
    parts = _divided(job, units, request, view, offers, countdown)
    if parts is None or others is None or countdown.is_up:
        return parts
    idle = _with_idle_uplinks(job, units, request, view, offers, others)
    if len(idle) == len(offers) or int(idle.sizes.sum()) < job.num_tasks:
        return parts
    other = _divided(job, units, request, view, idle, countdown)
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
    largest = [max(bounds.largest_flows(job, units), default=0.0)]
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
        len(np.unique(unit_of_tasks(units) * len(levels[0].codes) + machine_of)),
    ]


def _divided(
    job: JobGraph,
    units: Ints,
    request: JobRequest,
    view: ClusterView,
    offers: Offers,
    countdown: Countdown,
) -> list[Part] | None:
    """Return a division with all required groups together, and the units whole if that is possible.

    It takes up to half of the time that is left for what makes the first division better.
    """
    if not _needs_division(job, units):
        return None
    if units.shape[1] > 1 and not any(group.within == MACHINE for group in job.groups):
        found = divided(view.request(_with_whole_units(job, units)), offers, view, countdown.half)
        if found is not None:
            return found
    parts = divided(request, offers, view, countdown.half)
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


def local_gpus(part: Part, job: JobGraph, view: ClusterView, timing: ranked_sets.Timing) -> Sequence[int]:
    """Return the GPU of each task of a part (`job`), by the rule for one machine, as local numbers."""
    sight = Sight(jobs=False, shares=job.takes_parts)
    machine_class, state = view.conditions(sight).of_machine(part.machine)

    def find() -> tuple[int, ...]:
        options = ranked_sets.ranked(view.request(job), machine_class, state, part.usable, timing)
        best = min(options, key=lambda option: (option.order, sorted(option.gpus)), default=None)
        return best.gpus if best else tuple(members(part.usable))[: len(part.tasks)]

    key = (local_gpus, timing, machine_class, state, part.usable, exact_request_key(job))
    return view.table(key, lambda: (job, find()))[1]  # holds the job, so that no other gets its id
