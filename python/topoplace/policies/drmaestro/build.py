"""The three phases of a decision as flow networks: processes, then GPUs, then drives (thesis, fig. 22 a, b and c).

Only arcs that a minimum may need are made: an aggregator with so many sub-tasks to place offers so many places at most,
the cheapest. Were another place used, one of these would be empty, and no dearer. So a phase is as large as the batch,
at any size of the cluster; to find the cheapest places takes one pass over columns of numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from topoplace.policies.drmaestro.costs import LOCAL, REMOTE, Costs, Reals, sizes, units
from topoplace.policies.drmaestro.kinds import fitting
from topoplace.policies.drmaestro.phase import WAITS, Ints, Phase

if TYPE_CHECKING:
    from topoplace.jobs.network_profile import NetworkProfile
    from topoplace.policies.drmaestro.kinds import Bundle, Kind
    from topoplace.policies.drmaestro.state import Room

_ROUNDING: Final = 1e-9
_STEPS: Final = 4
"""So many sub-tasks of one batch at a place are told apart in what they cost each other."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Places that any sub-task of one kind may take: place, capacity and cost of each arc."""

    place: Ints
    capacity: Ints
    cost: Ints


class Builder:
    """Collects the sub-tasks of a phase, job by job."""

    def __init__(self) -> None:
        self._job: list[int] = []
        self._kind: list[int] = []
        self._aggregated: list[int] = []
        self._preferred: list[tuple[int, int, int]] = []
        self._kinds: dict[Hashable, int] = {}

    def add(
        self, job: int, kind: Hashable, aggregated: int = 0, preferred: Sequence[tuple[int, int]] = ()
    ) -> None:
        """A sub-task of a job; preferred: places and their costs."""
        task = len(self._job)
        self._job.append(job)
        self._kind.append(self._kinds.setdefault(kind, len(self._kinds)))
        self._aggregated.append(aggregated)
        self._preferred.extend((task, place, cost) for place, cost in preferred)

    def counts(self) -> dict[Hashable, int]:
        """How many sub-tasks the phase has, for each kind."""
        return dict.fromkeys(self._kinds, len(self._job))

    def solve(self, offers: dict[Hashable, Offer], room: Ints, unscheduled: Ints) -> Ints:
        """(t,) the place of each sub-task, or WAITS; room: of every place, used or not."""
        preferred = np.array(self._preferred, dtype=np.int64).reshape(-1, 3)
        listed = [offers[kind] for kind in self._kinds]
        kind = np.repeat(np.arange(len(listed)), [len(offer.place) for offer in listed])
        offered = _column([offer.place for offer in listed])
        if not len(offered) and not len(preferred):
            return np.full(len(self._job), WAITS)
        used, local = np.unique(np.concatenate([preferred[:, 1], offered]), return_inverse=True)
        here = len(preferred)
        phase = Phase(
            job=np.array(self._job, dtype=np.int64),
            kind=np.array(self._kind, dtype=np.int64),
            aggregated=np.array(self._aggregated, dtype=np.int64),
            unscheduled=unscheduled,
            room=room[used],
            preferred=(preferred[:, 0], local[:here], preferred[:, 2]),
            offered=(
                *(kind, local[here:]),
                _column([offer.capacity for offer in listed]),
                _column([offer.cost for offer in listed]),
            ),
        )
        places = phase.solve()
        return np.where(places == WAITS, WAITS, used[places])


def _column(parts: Sequence[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def cheapest(cost: Ints, usable: NDArray[np.bool_], count: int) -> Ints:
    """The usable places of the least cost, `count` of them at most; of equal ones the first."""
    found = np.flatnonzero(usable)
    if len(found) <= count:
        return found
    key = cost[found]
    least = np.partition(key, count - 1)[count - 1]
    below, equal = found[key < least], found[key == least]
    return np.concatenate([below, equal[: count - len(below)]])


def offer_hosts(
    room: Room, kind: Kind, bundle: Bundle, without: Sequence[int], *, count: int, costs: Costs
) -> Offer:
    """Machines for a bundle: those with GPUs for it first; where its GPUs may be remote, then those with most of them.

    without: machines that its job has already, and may not have twice.
    """
    fits = fitting(room.hosts[:, :2], np.array(bundle.needs))
    fits[list(without)] = 0
    near, some = _near(room, kind, bundle)
    near = np.minimum(near, fits)
    far = np.zeros_like(fits) if bundle.bound else fits - near
    here = costs.place(slowdown(kind.profile, room, remote=False), LOCAL)
    there = costs.place(slowdown(kind.profile, room, remote=True), REMOTE)
    partly = np.rint(there + (here - there) * some).astype(np.int64)
    mixed = np.where(some > 0, np.minimum(far, 1), 0)
    far = far - mixed
    first = np.where(near > 0, here, np.where(mixed > 0, partly, there))
    found = cheapest(first, near + mixed + far > 0, count)
    if kind.spread:
        near, mixed = np.minimum(near, 1), np.where(near > 0, 0, mixed)
        far = np.where(near + mixed > 0, 0, np.minimum(far, 1))
    parts = [
        _in_steps(found, near[found], here[found], more_costs(kind.profile, costs, remote=False)),
        _in_steps(found, mixed[found], partly[found], 0),
        _in_steps(found, far[found], there[found], more_costs(kind.profile, costs, remote=True)),
    ]
    return Offer(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _in_steps(place: Ints, capacity: Ints, cost: Ints, more: int) -> tuple[Ints, Ints, Ints]:
    """Arcs to each place, of which every next one costs more, so that those of one batch keep out of each other's way.

    The last takes what is left of the capacity.
    """
    steps = _STEPS if more else 1
    number = np.arange(steps)
    taken = np.clip(capacity[:, None] - number, 0, 1)
    taken[:, -1] = np.maximum(capacity - (steps - 1), 0)
    costs = cost[:, None] + number * more
    some = taken.ravel() > 0
    return np.repeat(place, steps)[some], taken.ravel()[some], costs.ravel()[some]


def more_costs(profile: NetworkProfile, costs: Costs, *, remote: bool) -> int:
    """What it adds to the cost of a place that another of the same kind uses its network: to both of them."""
    mutual = 2 * profile.traffic(remote=remote) * profile.sensitivity(remote=remote)
    return int(units(np.array([mutual / costs.goal * (REMOTE if remote else LOCAL)]))[0])


def _near(room: Room, kind: Kind, bundle: Bundle) -> tuple[Ints, Reals]:
    """(m,) for how many such bundles each machine has local GPUs, and which part of those of one more."""
    none = np.zeros(len(room.hosts))
    if kind.torn(bundle):
        return none.astype(np.int64), none
    if not bundle.gpus:
        return np.full(len(room.hosts), np.int64(1) << 30), none
    local = room.gpus if kind.own else room.near()
    suitable: Ints = local[:, kind.suits].sum(axis=1)
    return suitable // bundle.gpus, none if kind.apart else suitable % bundle.gpus / bundle.gpus


def slots(room: Room, bundles: Sequence[Bundle], tasks: int) -> Ints:
    """(m,) how many of the bundles a machine takes at most, its resources and theirs added up by eq. 10.

    The sum of two resources says too much of a machine that lacks one of them: what comes out is checked.
    """
    free = np.maximum(room.hosts[:, :2], 0)
    largest = free.max(axis=0)
    smallest = float(sizes(np.array([bundle.needs for bundle in bundles]), largest).min())
    if smallest <= _ROUNDING:
        return np.full(len(free), tasks, dtype=np.int64)
    times: Reals = sizes(free, largest) / smallest + _ROUNDING
    return np.minimum(times, tasks).astype(np.int64)


def offer_gpus(room: Room, kind: Kind, hosts: Sequence[int], count: int, costs: Costs) -> Offer:
    """GPUs anywhere, as remote ones; for a job that wants them apart one of each machine, local at its hosts."""
    usable = room.gpus * kind.suits
    remote = costs.place(slowdown(kind.profile, room, remote=True), REMOTE)
    capacity = usable.ravel()
    if kind.apart:
        first = usable.argmax(axis=1)
        remote[list(hosts)] = costs.place(slowdown(kind.profile, room, hosts, remote=False), LOCAL)
        one = np.minimum(np.take_along_axis(usable, first[:, None], axis=1)[:, 0], 1)
        capacity = np.zeros_like(capacity)
        capacity[np.arange(len(first)) * usable.shape[1] + first] = one
    cost = np.repeat(remote, usable.shape[1])
    found = cheapest(cost, capacity > 0, count)
    more = 0 if kind.apart else more_costs(kind.profile, costs, remote=True)
    return Offer(*_in_steps(found, capacity[found], cost[found], more))


def local_gpus(
    room: Room, kind: Kind, hosts: Sequence[int], costs: Costs
) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """For each process of jobs of one kind: what the traffic at its own host adds to the cost of a remote GPU (the
    offers know the other end's), and the places with GPUs that are local to it, with what one there costs."""
    makes = room.gpus.shape[1]
    more = slowdown(kind.profile, room, hosts, remote=True) - 1
    far = units(more / costs.goal * REMOTE).tolist()
    near = costs.place(slowdown(kind.profile, room, hosts, remote=False), LOCAL).tolist()
    usable = room.gpus * kind.suits > 0
    for host, added, cost in zip(hosts, far, near, strict=True):
        machines = room.pool(host)
        rows = zip(machines, usable[machines].tolist(), strict=True)
        yield added, [(m * makes + make, cost) for m, row in rows for make, some in enumerate(row) if some]


def offer_drives(room: Room, count: int, costs: Costs) -> Offer:
    """Drives anywhere."""
    free = room.hosts[:, 2]
    cost = np.full(len(free), costs.place(np.ones(1), REMOTE)[0])
    found = cheapest(cost, free > 0, count)
    return Offer(found, free[found], cost[found])


def slowdown(
    profile: NetworkProfile, room: Room, machines: Sequence[int] | slice = slice(None), *, remote: bool
) -> Reals:
    """How many times as long as alone a job is expected to take at these machines, or at all: load times sensitivity.

    In both directions: what it suffers there, and what those who are there will suffer from it.
    """
    suffered = np.minimum(room.load[machines], 1.0) * profile.sensitivity(remote=remote)
    return 1 + suffered + profile.traffic(remote=remote) * room.minds[machines]
