"""The GPUs of a gang: its tasks, or groups of them, are mapped to the GPUs that machines offer (`kernels.map_gang`)."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace import _core, kernels
from topoplace.deciding import bounds, ranked_sets
from topoplace.deciding.gang_topology import (
    GangLevels,
    chain_of,
    rooms_of,
    topology_of_gangs,
    usual_tflop_per_s,
)
from topoplace.engine.gangs.division import Part, divided
from topoplace.engine.gangs.offers import MachineOffer, Offers
from topoplace.engine.level_chain import Chain, Together, preferred_of, required_of
from topoplace.engine.machines.machine_class import Mask, members
from topoplace.engine.machines.machine_conditions import Sight
from topoplace.engine.request import exact_request_key
from topoplace.errors import SearchTimeoutError
from topoplace.jobs.groups import MACHINE, Group
from topoplace.kernels.limits import Countdown, check_deadline

if TYPE_CHECKING:
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.links.nccl_rates import Rates

Ints = NDArray[np.int32]
_Rows = list[tuple[int, Ints]]
_Start = tuple[Ints, Ints, bool, _Rows, list[int], bool]
_MOST_WITH_ROLES: Final = 256
"""Largest number of tasks of a gang that also begins with each role on one machine."""


class Mapped(NamedTuple):
    """The GPUs of a gang, and its communication time."""

    gpus: list[int]
    """The GPU of each task."""
    seconds: float
    """The communication time, next to other jobs if they count."""
    least_seconds: float
    """Lower bound on the seconds of placements on the offered machines."""
    is_open: bool = False
    """True if it is not proven, and time is left."""
    fewer: Sequence[int] = ()
    """The offers of fewer domains with narrow uplinks, among which the gang may be mapped instead."""


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
    mapper = _Mapper(request, view, timing, others, Countdown(timeout), compact)
    found = mapper.best(offers)
    if found and found.fewer:
        with suppress(SearchTimeoutError):
            found = mapper.best(offers.at(np.array(found.fewer)), found) or found
    return found if found and _keeps_limit(found, request, view) else None


def _keeps_limit(found: Mapped, request: JobRequest, view: ClusterView) -> bool:
    most = request.job.max_machines
    return not most or len(view.classes.by_machine(found.gpus)) <= most


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
    mapper = _Mapper(request, view, timing, others, Countdown(timeout))
    found = mapper.search(offers, mapper.start(None, None))
    return found and found.gpus


def can_be_mapped(
    request: JobRequest, view: ClusterView, offers: Offers, timeout: float | None = None
) -> bool:
    """Return True if `mapped` is certain to find a mapping within its limits; timeout: as for `mapped`."""
    if not _is_mapped(request, offers) or request.job.max_machines:
        return False
    units = _units(request, offers)
    parts = _divided(request, units, view, offers, Countdown(timeout))
    if parts:
        rows = _machine_of(parts, request.size)[units]
        return bool((rows == rows[:, :1]).all())
    if _needs_division(request.job, units):
        return False
    return int((np.minimum(offers.sizes, _most(request)) // units.shape[1]).sum()) >= len(units)


def machine_limits(
    request: JobRequest, view: ClusterView, offers: Offers, rates: Rates | str
) -> bounds.MachineLimits | None:
    """Return lower bounds by what a machine has of a job; None for a job that is not mapped as units."""
    if not _is_mapped(request, offers):
        return None
    units = _units(request, offers)
    return bounds.machine_limits(request.job, units, rooms_of(request, offers, view), view, rates)


def _is_mapped(request: JobRequest, offers: Offers) -> bool:
    """Return True if units of the job may be on any of the machines, and there are some."""
    is_bound = request.spread or request.job.same_gpus or request.needs_sockets
    return not is_bound and offers.is_simple and len(offers) > 0


def _most(request: JobRequest) -> int:
    """Return the largest number of tasks on one machine."""
    return 1 if request.anti_affine else request.size


def _levels_of_all(job: JobGraph) -> set[str]:
    """Return the levels of which one domain must have all tasks; none if groups bind tasks besides."""
    required = required_of(job)
    wanted = {one.level for one in required if len(one.tasks) == job.num_tasks}
    is_all = not preferred_of(job) and not job.balanced and all(one.level in wanted for one in required)
    return wanted if is_all else set()


class _Mapper:
    """Searches for the GPUs of a gang."""

    def __init__(
        self,
        request: JobRequest,
        view: ClusterView,
        timing: ranked_sets.Timing,
        others: kernels.FlowCounts | None,
        countdown: Countdown,
        compact: float = 0.0,
    ) -> None:
        self._request, self._view, self._compact = request, view, compact
        self._timing, self._others, self._countdown = timing, others, countdown
        self._required, self._preferred = required_of(request.job), preferred_of(request.job)
        self._is_bound = bool(self._required or self._preferred or request.job.balanced)

    @cached_property
    def _chain(self) -> Chain:
        return chain_of(self._request, self._view)

    @cached_property
    def _levels(self) -> _core.GangLevels:
        return self._view.cluster.topology.derived(GangLevels).of(self._chain, self._timing.rates)

    def best(self, offers: Offers, instead: Mapped | None = None) -> Mapped | None:
        """Return the fastest mapping found; `instead`, unless it is hardly slower and these are fewer domains."""
        request, job = self._request, self._request.job
        if not _is_mapped(request, offers):
            return None
        units = parts = None
        if self._is_bound or not job.edges:
            units = _units(request, offers)
            parts = self._divided_beside(units, offers)
            if parts is None and _needs_division(job, units):
                return None
        start = self.start(units, parts)
        if parts or not job.roles or request.size > _MOST_WITH_ROLES:
            return self.search(offers, start, instead=instead)
        found = self.search(offers, start, is_last=False)
        if found and found.is_open:
            found = self._from_whole_roles(offers, found)
        return found and self.search(offers, start, found, instead)

    def search(
        self,
        offers: Offers,
        start: _Start,
        known: Mapped | None = None,
        instead: Mapped | None = None,
        *,
        is_last: bool = True,
    ) -> Mapped | None:
        """Return the fastest mapping that one call finds; the arguments are those of `GangDecisionParams`."""
        request, view, timing = self._request, self._view, self._timing
        job, topology = request.job, view.cluster.topology
        found = _core.place_gang(
            topology_of_gangs(topology, timing.rates),
            self._levels,
            view.conditions(Sight(shares=job.takes_parts)).native,
            offers.native,
            job.traffic_arrays.native,
            job.edge_array,
            _most(request),
            _groups(job),
            start,
            None if self._others is None else self._others.native,
            (timing.slack, timing.near_only),
            (
                self._compact,
                job.max_machines or 0,
                self._rows(self._preferred),
                job.tflop or 0.0,
                topology.derived(usual_tflop_per_s) if job.tflop else np.empty(0),
                instead and instead[:3],
            ),
            known and known[:3],
            is_last,
            self._countdown.left,
        )
        check_deadline()  # that of the caller
        return None if found is None else Mapped(found[0].tolist(), *found[1:])

    def start(self, units: Ints | None, parts: Sequence[Part] | None) -> _Start:
        """Return the machines from which the search starts, and what tasks may not leave; no parts: any may do."""
        job, none = self._request.job, np.empty(0, np.int32)
        is_bound = self._is_bound or bool(job.max_machines)
        if not parts or units is None:
            return none, none.reshape(0, 1), False, [], [], is_bound
        together = [
            one
            for one in (*self._required, *self._preferred)
            if not (one.level == MACHINE and len(one.tasks) == units.shape[1])
        ]
        whole = [self._depth_of[name] for name in _levels_of_all(job)]
        machine_of = _machine_of(parts, job.num_tasks)
        return (
            machine_of,
            units,
            bool(job.balanced),
            self._rows(together),
            sorted(whole, reverse=True),
            is_bound,
        )

    @cached_property
    def _depth_of(self) -> dict[str, int]:
        """The place of each level around machines, the outermost first."""
        return {level.name: i for i, level in enumerate(self._chain[::-1])}

    def _rows(self, groups: Sequence[Together]) -> _Rows:
        """Return the groups of known levels for the kernel."""
        return [
            (self._depth_of[one.level], np.array(one.tasks, np.int32))
            for one in groups
            if one.level in self._depth_of
        ]

    def _from_whole_roles(self, offers: Offers, best: Mapped) -> Mapped | None:
        """Return the fastest mapping found from machines that have a whole role each, as many as can be.

        Other searches begin with tasks in the order of their ranks, so that small steps seldom separate two roles. Of
        machines with unequal room, a role would get what is left of a used one, so the fullest do not count if the
        others have enough.
        """
        job, units = self._request.job, _units(self._request, offers)
        emptiest = offers.at(np.flatnonzero(offers.sizes == offers.sizes.max()))
        offers = emptiest if int(emptiest.sizes.sum()) >= self._request.size else offers
        whole = tuple([Group(job.dimensions[role][0], prefer=MACHINE) for role, _ in job.roles])
        request = self._view.request(job.with_(groups=(*job.groups, *whole)))
        parts = divided(request, offers, self._view, self._countdown.half)
        if not parts:
            return best
        return self.search(offers, self.start(units, parts), best, is_last=False)

    def _divided_beside(self, units: Ints, offers: Offers) -> list[Part] | None:
        """Return a division as `_divided`, over domains whose uplinks no other job uses if it is no wider."""
        parts = _divided(self._request, units, self._view, offers, self._countdown)
        if parts is None or self._others is None or self._countdown.is_up:
            return parts
        idle = self._with_idle_uplinks(units, offers, self._others)
        if len(idle) == len(offers) or int(idle.sizes.sum()) < self._request.size:
            return parts
        other = _divided(self._request, units, self._view, idle, self._countdown)
        is_as_narrow = other and all(map(operator.le, self._widths(units, other), self._widths(units, parts)))
        return other if is_as_narrow else parts

    def _with_idle_uplinks(self, units: Ints, offers: Offers, others: kernels.FlowCounts) -> Offers:
        """Return the offers in domains whose uplinks no other job uses, up to the outermost level of a group."""
        job = self._request.job
        named = {level for group in job.groups for level in (group.within, group.prefer)}
        depths = [depth for name, depth in self._depth_of.items() if name in named]
        outermost = min(depths, default=len(self._chain))
        largest = max(bounds.largest_flows(job, units), default=0.0)
        found = self._levels.beside_no_others(outermost, offers.native[0], others.native, largest)
        return offers.at(np.array(found, np.int64))

    def _widths(self, units: Ints, parts: Sequence[Part]) -> list[int]:
        """Return how many domains a division has at each level, and the preferred groups and the units are in."""
        machine_of = _machine_of(parts, self._request.size)
        domains = {level.name: level.domains for level in self._chain}
        of_units = machine_of[units] + len(self._chain[0].codes) * np.arange(len(units))[:, None]
        return [
            *(len(np.unique(level.codes[machine_of])) for level in self._chain),
            *(
                len(np.unique(domains[one.level][machine_of[list(one.tasks)]]))
                for one in self._preferred
                if one.level in domains
            ),
            len(np.unique(of_units)),
        ]


# ---- units -----------------------------------------------------------------------------------------------------


def _units(request: JobRequest, offers: Offers) -> Ints:
    """Return (u, t) the tasks of each unit that is mapped as a whole (`gang_units.hpp`)."""
    job = request.job
    return _core.gang_units(job.traffic_arrays.native, _groups(job), _most(request), offers.native[2])


def _groups(job: JobGraph) -> tuple[int, bool, list[Ints], list[Ints]]:
    """Return the number of tasks, whether collectives are stated, and the required groups: of machines, of others."""
    on_machine: list[Ints] = []
    in_domain: list[Ints] = []
    for one in required_of(job):
        (on_machine if one.level == MACHINE else in_domain).append(np.array(one.tasks, np.int32))
    return job.num_tasks, bool(job.stated_collectives), on_machine, in_domain


# ---- groups ----------------------------------------------------------------------------------------------------


def _needs_division(job: JobGraph, units: Ints) -> bool:
    """Return True if which machines get which tasks is decided by groups, or by the fewest domains alone."""
    are_whole = units.shape[1] > 1  # then units are the groups of machines, if there are any
    required = any(one.level != MACHINE or not are_whole for one in required_of(job))
    return required or bool(preferred_of(job) or job.balanced) or not job.edges


def _divided(
    request: JobRequest, units: Ints, view: ClusterView, offers: Offers, countdown: Countdown
) -> list[Part] | None:
    """Return a division with all required groups together, and the units whole if that is possible.

    It takes up to half of the time that is left for what makes the first division better.
    """
    job = request.job
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


def _machine_of(parts: Sequence[Part], num_tasks: int) -> Ints:
    """Return (n,) the machine of each task."""
    found = np.empty(num_tasks, np.int32)
    for part in parts:
        found[part.tasks] = part.machine
    return found


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
