"""Lower bounds on the communication time of a gang, over all placements on the machines with room for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from topoplace import _core, kernels
from topoplace.collective.networks import collective_network
from topoplace.deciding import ranked_sets
from topoplace.jobs.groups import MACHINE
from topoplace.objectives.communication import RING_KINDS
from topoplace.topology.ports import Ports

if TYPE_CHECKING:
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest
    from topoplace.jobs.collectives import Batch
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.links.nccl_rates import Rates

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]
_ROUNDING: Final = 1 - 1e-9
_IN_CHANNELS: Final = RING_KINDS - {"broadcast"}
"""The kinds whose rings leave each machine in channels; a broadcast does not return to the first."""
_MOST_IN_SETS: Final = 8
"""Limit on the GPUs of a machine whose sets are all rated."""


class Rooms(NamedTuple):
    """The number of tasks of a job that can be in one domain, and the ports between tasks in different domains."""

    native: _core.GangRoom
    """By depth: the whole, each level from the outermost to the machines."""
    own_class: Sequence[int]
    """For each depth but the last, 1 if tasks that meet there use NVLinks, else 0."""
    ports: Ports

    def channels(self, batch: Batch) -> float:
        """Return the upper bound on GB/s of a ring over several domains: number of channels x slowest channel."""
        # The first domain of a broadcast gets nothing by its own adapters.
        is_relayed = batch.kind == "broadcast" and self.ports.has_relays
        return self.native.channels(
            batch.tasks.shape[1], self.ports.fastest_entries[0][0] if is_relayed else 0.0
        )

    def fastest(self, depth: int, unit: int = 1) -> float:
        """Return the upper bound on GB/s of a unit of tasks in exchanges that meet at this depth or further out."""
        return max(self._own(self.own_class[above], unit) for above in range(depth))

    def tree(self, items: int, unit: int) -> kernels.PortTree:
        """Return a small tree with this room for items of `unit` tasks, all with the fastest ports."""
        most = [min(items, tasks // unit) for tasks in self.native.most_tasks]
        parent, room, spine = [-1], list[int](), 0
        for depth, inside in enumerate(most[1:]):
            for first in range(0, most[depth] - inside, max(1, most[-1])):
                room.append(min(most[-1], most[depth] - inside - first))
                parent += [spine, *range(len(parent), len(parent) + len(most) - depth - 2)]
            parent.append(spine)
            spine = len(parent) - 1
        room.append(most[-1])
        own = [[self._own(one, unit)] * len(room) for one in range(max(self.own_class) + 1)]
        return kernels.PortTree(parent, room, np.zeros(len(parent)), self.own_class, np.array(own))

    def _own(self, port_class: int, unit: int) -> float:
        entries = self.ports.fastest_entries[: port_class + 1]  # who meets by NVLinks may use adapters
        return max(min(unit * fastest, all_of_machine) for fastest, all_of_machine in entries)


class Least(NamedTuple):
    """Lower bounds on the seconds of placements on the offered machines."""

    of_all: float
    of_whole: float
    """Lower bound for placements that divide no unit."""

    @classmethod
    def of(cls, of_all: float, of_whole: float) -> Self:
        """Round both bounds down; infinite ones, for which there is no room, become 0."""
        finite = (one * _ROUNDING if math.isfinite(one) else 0.0 for one in (of_all, of_whole))
        return cls(*finite)


def least_seconds(
    job: JobGraph,
    units: Ints,
    pairs: kernels.Exchanges,
    rooms: Rooms,
    view: ClusterView,
    rates: Rates | str,
) -> Least:
    """Return lower bounds on the seconds of all placements, and of those that divide no unit.

    If all units are whole, each dimension takes as long as its rings need on the best machine, or as its ports need. If
    a unit is divided, its dimension crosses machines, as do dimensions with more tasks than a machine can have.

    Args:
        units: (u, t) the tasks of each unit that is mapped as a whole.
        pairs: The exchanges of units, without those in rings.
        rates: The rates of links with which the library plans rings.
    """
    phases = list(job.traffic.values())
    if not rooms.native.has_adapters or rooms.ports.join_machines:
        least = math.fsum(_by_all_ports(batches, rooms, view, rates) for batches in phases)
        return Least.of(least, least)
    size = units.shape[1]
    rings = np.array([_of_rings(batches, rooms, view, rates) for batches in phases])
    whole_phases = _of_whole_units(phases, units, pairs, rings, rooms)
    whole = float(whole_phases.sum())
    if size == 1 or any(group.within == MACHINE for group in job.groups):
        return Least.of(whole, whole)
    crossing = [_of_crossing_pairs(batches, rooms) for batches in phases]
    split = [_of_split(batches, units, rooms) for batches in phases]
    return Least.of(min(whole, math.fsum(map(max, rings, crossing, split))), whole)


def _of_whole_units(
    phases: Sequence[Sequence[Batch]], units: Ints, pairs: kernels.Exchanges, rings: Reals, rooms: Rooms
) -> Reals:
    """Return the least seconds of each dimension if no unit is divided; rings: those that its rings need."""
    of_pairs = kernels.tree_bound(rooms.tree(*units.shape), pairs).phases
    shared = [_of_shared_adapters(batches, units, rooms) for batches in phases]
    return np.maximum(np.maximum(rings, shared), of_pairs)


class MachineLimits:
    """Lower bounds on the seconds of placements that divide no unit, by what one machine of the job has of it."""

    def __init__(
        self,
        job: JobGraph,
        units: Ints,
        pairs: kernels.Exchanges,
        rooms: Rooms,
        view: ClusterView,
        rates: Rates | str,
    ) -> None:
        """Store the arguments, which are as for `least_seconds`."""
        self.units = units
        self.are_groups = units.shape[1] > 1 and any(group.within == MACHINE for group in job.groups)
        """True if the units are groups that one machine must have."""
        self.is_whole = units.shape[1] == 1 or self.are_groups
        """True if no placement divides a unit."""
        self._phases, self._rooms, self._view, self._rates = list(job.traffic.values()), rooms, view, rates
        self._least = np.zeros(len(self._phases))
        self._by_class: dict[int, Reals | None] = {}
        ports = rooms.ports
        self._have_channels = not ((ports.adapters < 0).any() or ports.join_machines or any(rooms.own_class))
        if self._have_channels:
            rings = np.array([_of_rings(batches, rooms, view, rates) for batches in self._phases])
            self._least = _of_whole_units(self._phases, units, pairs, rings, rooms)

    @cached_property
    def are_rings(self) -> bool:
        """Return True if units are tasks, and each collective is a ring of all, which leaves machines in channels."""
        batches = [one for batches in self._phases for one in batches]
        are_all = all(one.kind in _IN_CHANNELS and one.tasks.shape[1] == len(self.units) for one in batches)
        return self._have_channels and are_all and self.units.shape[1] == 1

    @property
    def gpus_of(self) -> Sequence[Sequence[int]]:
        """Return the GPUs of each machine."""
        return self._view.classes.gpus_of

    @property
    def machine_of(self) -> NDArray[np.int32]:
        """Return (GPUs,) the machine of each GPU."""
        return self._view.cluster.topology.machine_of

    @property
    def class_of(self) -> Sequence[int]:
        """Return the number of the class to which each machine belongs."""
        return self._view.classes.class_of

    def of_count(self, count: int) -> float:
        """Return the least seconds if a machine has `count` units, and other machines have the rest.

        Its units are whole chains, or exchange with other machines.
        """
        if not self._have_channels:
            return float(self._least.sum()) * _ROUNDING
        apart = self._with_few(count, is_whole=False)
        if self._chains is None or count % self._chains.shape[1]:
            return apart
        return min(apart, self._with_few(count, is_whole=True))

    def _with_few(self, count: int, *, is_whole: bool) -> float:
        """Return the least seconds if the units on such a machine are whole chains, or are not."""
        few = [
            max((self._few(batch, count, is_whole=is_whole) for batch in batches), default=0.0)
            for batches in self._phases
        ]
        return float(np.maximum(self._least, few).sum()) * _ROUNDING

    @cached_property
    def _chains(self) -> Ints | None:
        """(c, n) the units of each chain in which they exchange, other than in rings; None unless each is in one."""
        for batch in (one for batches in self._phases for one in batches if one.kind not in RING_KINDS):
            units = self._units_of(batch)
            if units.size == len(self.units) == len(np.unique(units)):
                return units
        return None

    def _units_of(self, batch: Batch) -> Ints:
        """Return the units of the different collectives of a batch, sorted."""
        found: Ints = np.unique(np.sort(unit_of_tasks(self.units)[batch.tasks], axis=1), axis=0)
        return found

    def _few(self, batch: Batch, count: int, *, is_whole: bool) -> float:
        """Return the least seconds of the collectives of a batch that leave such a machine."""
        least, chains = float(batch.carried.min()), self._chains
        if batch.kind not in RING_KINDS:
            is_apart = chains is not None and not is_whole and np.array_equal(self._units_of(batch), chains)
            return least / 2 / self._rooms.fastest(1) if is_apart else 0.0
        owners = np.sort(unit_of_tasks(self.units)[batch.tasks], axis=1)
        if batch.kind == "broadcast" or len(np.unique(owners)) < len(self.units):
            return 0.0
        starts = np.flatnonzero(np.diff(owners, axis=1, prepend=-1))
        together, count_of_ring = (
            int(np.diff(starts, append=owners.size).max()),
            count,
        )  # tasks of a ring in one unit
        if chains is not None and is_whole and _are_one_of_each(owners, chains):
            count_of_ring = count // chains.shape[1]
        most = count_of_ring * together
        if owners.shape[1] <= most:
            return 0.0
        rings = int(np.bincount(owners.ravel()[starts]).min())  # that pass a unit
        size = self.units.shape[1]
        return max(least / self._rooms.fastest(1, most), rings * least / self._rooms.fastest(1, count * size))

    def of_sets(self, machine: int) -> Reals | None:
        """Return the least seconds if a machine has tasks on each set of its GPUs, and others have more.

        The sets are bit masks, from 0. Return None if there are too many, or if all are alike, or not `are_rings`.
        """
        number = self.class_of[machine]
        if number not in self._by_class:
            self._by_class[number] = self._of_sets(machine)
        return self._by_class[number]

    def _of_sets(self, machine: int) -> Reals | None:
        own, all_of = self._view.classes.of(machine), self.units.size
        if not self.are_rings or own.num_gpus > _MOST_IN_SETS or ranked_sets.is_alike(own):
            return None
        gpus = np.array(self._view.classes.gpus_of[machine])
        inside = ranked_sets.rings_of_sets(own, self._rates)
        out, sizes = _out_of_sets(gpus, self._rooms.ports)
        out[sizes >= all_of] = np.inf  # no ring leaves the machine
        speeds = np.minimum(out, np.where(inside > 0, inside, np.inf))
        carried = [max(float(one.carried.max()) for one in batches) for batches in self._phases]
        seconds = np.divide.outer(
            carried, speeds, where=speeds > 0, out=np.zeros((len(carried), len(speeds)))
        )
        found: Reals = np.maximum(self._least[:, None], seconds).sum(axis=0) * _ROUNDING
        return found


def _are_one_of_each(owners: Ints, chains: Ints) -> bool:
    """Return True if each ring has units of different chains; owners: (rings, n) the unit of each task, sorted."""
    chain_of = unit_of_tasks(chains)
    units = (np.diff(owners, axis=1, prepend=-1) != 0).sum(axis=1)
    different = (np.diff(np.sort(chain_of[owners], axis=1), axis=1, prepend=-1) != 0).sum(axis=1)
    return bool((units == different).all())


def _out_of_sets(gpus: Ints, ports: Ports) -> tuple[Reals, Ints]:
    """Return (2**n,) GB/s of the channels that leave each set of a machine's GPUs, at most, and the size of the set."""
    inside = (np.arange(1 << len(gpus))[:, None] >> np.arange(len(gpus)) & 1).astype(bool)
    _, adapter = np.unique(ports.adapters[gpus], return_inverse=True)
    used = [inside[:, adapter == one].any(axis=1) for one in range(int(adapter.max()) + 1)]
    fastest = np.where(inside, ports.ways_out[gpus], 0.0).max(axis=1)
    speeds: Reals = np.sum(used, axis=0) * fastest
    return speeds, inside.sum(axis=1)


def exchanges_of(job: JobGraph, units: Ints, *, rings: bool) -> kernels.Exchanges:
    """Return the exchanges between units in each dimension; exchanges inside a unit do not count.

    rings: False leaves out collectives that run in rings.
    """
    unit_of = unit_of_tasks(units)
    ends: list[int] = [0]
    pairs: list[Ints] = []
    amounts: list[Reals] = []
    for batches in job.traffic.values():
        keys: list[Ints] = [np.empty(0, np.int64)]
        carried: list[Reals] = [np.empty(0)]
        for batch in batches if rings else [one for one in batches if one.kind not in RING_KINDS]:
            here, there = (unit_of[batch.tasks[:, places]] for places in batch.pairs)
            apart = here != there
            keys.append((np.minimum(here, there) * len(units) + np.maximum(here, there))[apart])
            carried.append(np.broadcast_to(batch.carried[:, None], here.shape)[apart])
        distinct, sums = _summed(np.concatenate(keys), np.concatenate(carried))
        pairs.append(distinct)
        amounts.append(sums)
        ends.append(ends[-1] + len(distinct))
    start, end = np.divmod(np.concatenate(pairs or [np.empty(0, np.int64)]), len(units))
    return kernels.Exchanges(len(units), ends[1:], start, end, np.concatenate(amounts or [np.empty(0)]))


def _summed(keys: Ints, carried: Reals) -> tuple[Ints, Reals]:
    """Return the distinct keys, ascending, and the sum of what each carries."""
    if (keys[1:] > keys[:-1]).all():
        return keys, carried
    distinct, place = np.unique(keys, return_inverse=True)
    return distinct, np.bincount(place, carried, minlength=len(distinct)).astype(float)


def least_seconds_of_one(request: JobRequest, view: ClusterView, timing: ranked_sets.Timing) -> float:
    """Return a lower bound on the seconds of a job that fits a machine on which all GPUs are alike.

    Either the job is on one machine, or two tasks that communicate are on different machines.
    """
    topology = view.cluster.topology
    large = [one for one in view.classes.classes if one.alone.num_gpus >= request.size]
    least = min(ranked_sets.of_any(one, request, timing)[0].seconds for one in large)
    if view.classes.num_machines > 1:
        least = min(least, _least_over_machines(request.job, topology.derived(Ports)))
    return least * _ROUNDING


_MOST_DIVIDED: Final = 10
"""Largest number of tasks for which all divisions of a job into two are compared."""


def least_if_split(job: JobGraph, view: ClusterView) -> float:
    """Return a lower bound on the seconds of a job on several machines; infinity if that is not worth a search.

    It is not on a single machine, for jobs of many tasks, and if NVSwitches join the GPUs of each machine, as adapters
    are slower.
    """
    topology = view.cluster.topology
    is_alone = topology.num_machines == 1 or not job.edges or not topology.derived(Ports).has_adapters
    if is_alone or job.num_tasks > _MOST_DIVIDED or ranked_sets.are_alike(topology):
        return math.inf
    fastest = max(entries[0] for entries in topology.derived(Ports).fastest_entries)
    masks = np.arange(1, 1 << (job.num_tasks - 1))
    inside = (masks[:, None] >> np.arange(job.num_tasks) & 1).astype(bool)
    sizes = inside.sum(axis=1)
    ports = np.minimum(sizes, job.num_tasks - sizes) * fastest
    seconds = sum(_least_across(batches, inside, ports) for batches in job.traffic.values())
    return float(np.min(seconds, initial=math.inf)) * _ROUNDING


def _least_across(batches: Sequence[Batch], inside: NDArray[np.bool_], ports: Reals) -> Reals:
    """Return (d,) the least seconds of a dimension for each division into two: what crosses it, over all adapters.

    Args:
        inside: (d, n) whether a task is in the first part.
        ports: (d,) GB/s of the adapters of the smaller part.
    """
    least = np.zeros(len(inside))
    crossing = np.zeros(len(inside))
    for batch in batches:
        here, there = batch.pairs
        parts = inside[:, batch.tasks]
        if batch.kind in RING_KINDS:
            crosses = parts.any(axis=2) & ~parts.all(axis=2)
            least = np.maximum(least, (crosses * batch.carried).max(axis=1))
        else:
            apart = (parts[:, :, here] != parts[:, :, there]).sum(axis=2)
            crossing += (apart * batch.carried / 2).sum(axis=1)
    return np.maximum(least, crossing) / ports


def _least_over_machines(job: JobGraph, ports: Ports) -> float:
    """Return the least seconds if two tasks that exchange something are on different machines; 0 if none need to."""
    if not _is_joined(job) or ports.join_machines:
        return 0.0
    return min(
        min(_least_of_one_apart(batch, ports) for batch in batches) for batches in job.traffic.values()
    )


def _least_of_one_apart(batch: Batch, ports: Ports) -> float:
    """Return the least seconds if a collective, whichever, is on several machines: by adapters, or by NVLinks."""
    least, most = float(batch.carried.min()), batch.tasks.shape[1] // 2
    is_ring = batch.kind in RING_KINDS
    fastest = max(
        min(most * fastest, all_of_machine) if is_ring else fastest
        for fastest, all_of_machine in ports.fastest_entries
    )
    return least / fastest if is_ring else least / 2 / fastest


def _is_joined(job: JobGraph) -> bool:
    """Return True if any two tasks exchange something, with each other or by way of others."""
    parts = list(range(job.num_tasks))
    for batches in job.traffic.values():
        for batch in batches:
            collectives: list[list[int]] = batch.tasks.tolist()
            for tasks in collectives:
                joined = {parts[task] for task in tasks}
                parts = [tasks[0] if part in joined else part for part in parts]
    return len(set(parts)) == 1


def _by_all_ports(batches: Sequence[Batch], rooms: Rooms, view: ClusterView, rates: Rates | str) -> float:
    """Return the least seconds where tasks on different machines have direct links, or no path.

    A ring among tasks that are all on different machines, or on one, leaves each of them; else it may be in channels,
    but then there are rings inside machines besides.
    """
    least, of_a_gpu = 0.0, rooms.ports.most_of_a_gpu
    for batch in batches:
        fastest, (_, size) = of_a_gpu, batch.tasks.shape
        if batch.kind in RING_KINDS:
            inside = (_inside(batch, n, rooms, view, rates) for n in range(2, size + 1))
            fastest = max(fastest, *inside)
        if fastest:
            least = max(least, _one_way(batch, float(batch.carried.max())) / fastest)
    return least


def _of_rings(batches: Sequence[Batch], rooms: Rooms, view: ClusterView, rates: Rates | str) -> float:
    """Return the least seconds of the rings of a dimension, each inside one domain or over several."""
    least = 0.0
    for batch in batches:
        if batch.kind not in RING_KINDS:
            continue
        count, size = batch.tasks.shape
        if len(np.unique(batch.tasks)) < batch.tasks.size:
            count = 1  # those with tasks in common may be in one domain
        largest, fit = float(batch.carried.max()), rooms.native.fit_rings(size)
        apart = _apart(batch, size, rooms, view, rates)
        inside = _inside(batch, size, rooms, view, rates) if fit else 0.0
        least = max(least, largest * min(apart, 1 / inside if inside else math.inf))
        if fit < count:
            least = max(least, (float(batch.carried.min()) if fit else largest) * apart)
    return least


def _apart(batch: Batch, size: int, rooms: Rooms, view: ClusterView, rates: Rates | str) -> float:
    """Return the least seconds of one GB of a ring over several domains."""
    channels = rooms.channels(batch)
    seconds = 1 / channels if channels else math.inf
    if size > len(rooms.native.ring_tasks):  # then some domain has two tasks or more
        inside = _inside(batch, None, rooms, view, rates)
        seconds = max(seconds, 1 / inside if inside else 0.0)
    return seconds


def _inside(batch: Batch, size: int | None, rooms: Rooms, view: ClusterView, rates: Rates | str) -> float:
    """Return GB/s that `size` tasks in one domain do not exceed, or any number of tasks; infinity if unknown."""
    network = collective_network(view.cluster.topology, rates)
    switched = network.switched
    found = float(switched.rings.max(initial=0.0))
    if not switched.rings.all():
        found = max(found, ranked_sets.fastest_rings(view, size, rates)) if size else math.inf
    if batch.kind != "all_reduce" or not network.reduces:
        return found
    most = size or int(rooms.native.ring_tasks.max(initial=2))
    limits = float(switched.reducing.max()), float(switched.most_reduced.max())
    return max(found, kernels.reduced_bandwidth(most, *limits))


def _of_shared_adapters(batches: Sequence[Batch], units: Ints, rooms: Rooms) -> float:
    """Return the least seconds of rings that cross domains, as all those of a unit share the adapters of its domain."""
    size = units.shape[1]
    most = int(rooms.native.ring_tasks.max(initial=0)) // size
    unit_of, load = unit_of_tasks(units), np.zeros(len(units))
    for batch in batches:
        if batch.kind not in RING_KINDS or batch.kind == "broadcast":
            continue
        rows = np.sort(unit_of[batch.tasks], axis=1)
        first = np.diff(rows, axis=1, prepend=-1) != 0
        crosses = first.sum(axis=1) > most
        np.add.at(
            load, rows[crosses][first[crosses]], np.repeat(batch.carried[crosses], first[crosses].sum(axis=1))
        )
    fastest = rooms.native.most_of_adapters
    return float(load.max(initial=0.0)) / fastest if fastest else 0.0


def _of_crossing_pairs(batches: Sequence[Batch], rooms: Rooms) -> float:
    """Return the least seconds of other collectives that are not all inside domains, as these have too little room."""
    least = 0.0
    for batch in batches:
        if batch.kind in RING_KINDS:
            continue
        count, size = batch.tasks.shape
        if len(np.unique(batch.tasks)) < batch.tasks.size:
            count = 1
        fit = rooms.native.fit(size)
        depths = [depth for depth, most in enumerate(fit) if depth and most < count]
        if depths:
            crossing = float(batch.carried.min() if fit[depths[0]] else batch.carried.max())
            least = max(least, crossing / 2 / rooms.fastest(depths[0]))
    return least


def _of_split(batches: Sequence[Batch], units: Ints, rooms: Rooms) -> float:
    """Return the least seconds if a unit, whichever, is on several machines.

    0 unless each unit is a collective of its own.
    """
    unit_of, size = unit_of_tasks(units), units.shape[1]
    owners = [_owners(batch, unit_of) for batch in batches if batch.tasks.shape[1] == size]
    found = [one for one in owners if one is not None]
    if len(found) < len(batches) or len(np.unique(np.concatenate(found))) < len(units):
        return 0.0
    return min(_of_one_apart(batch, rooms) for batch in batches)


def _of_one_apart(batch: Batch, rooms: Rooms) -> float:
    """Return the least seconds if a collective, whichever, is on several machines."""
    least = float(batch.carried.min())
    if batch.kind not in RING_KINDS:
        return least / 2 / rooms.fastest(len(rooms.own_class))
    if 1 in rooms.own_class:  # machines of an NVLink domain are no farther apart than GPUs of one
        return 0.0
    channels = rooms.channels(batch)
    return least / channels if channels else 0.0


def _one_way(batch: Batch, carried: float) -> float:
    """Return the GB that two tasks next to each other send in one direction at the least."""
    return carried if batch.kind in RING_KINDS else carried / 2


def _owners(batch: Batch, unit_of: Ints) -> Ints | None:
    """Return (c,) the unit that has all tasks of each collective; None if there is a collective without one."""
    rows = unit_of[batch.tasks]
    return rows[:, 0] if (rows == rows[:, :1]).all() else None


def unit_of_tasks(units: Ints) -> Ints:
    """Return (n,) the unit of each task; units: (u, t)."""
    unit_of = np.empty(units.size, np.int64)
    unit_of[units] = np.arange(len(units))[:, None]
    return unit_of
