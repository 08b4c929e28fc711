"""How fast a gang can be at best: seconds that no placement on the machines with room for it can beat."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace import kernels
from topoplace.jobs.groups import MACHINE
from topoplace.objectives.communication import RING_KINDS
from topoplace.policies.least_time import machine_sets
from topoplace.topology.ports import Ports, switched_levels

if TYPE_CHECKING:
    from topoplace.collective.rates import Rates
    from topoplace.engine.level_chain import PlacedLevel
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest
    from topoplace.jobs.collectives import Batch
    from topoplace.jobs.job_graph import JobGraph

Ints = NDArray[np.int64]
_ROUNDING: Final = 1 - 1e-9


class Rooms(NamedTuple):
    """How many tasks of a job can be together, and over which ports those that are apart exchange."""

    tasks: Sequence[Ints]
    """The tasks in each domain, at most, by depth: all domains, each level from the outermost one in, machines."""
    own_class: Sequence[int]
    """For each depth but the last, 1 if tasks that meet there use NVLinks, else 0."""
    ports: Ports

    def fastest(self, depth: int, unit: int = 1) -> float:
        """Return GB/s that no unit of tasks exceeds in exchanges that meet at this depth or further out."""
        return max(self._own(self.own_class[above], unit) for above in range(depth))

    def tree(self, items: int, unit: int) -> kernels.PortTree:
        """Return a small tree with this room for items of `unit` tasks, all with the fastest ports."""
        most = [min(items, int(tasks.max(initial=0)) // unit) for tasks in self.tasks]
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
        fastest, all_of_machine = self.ports.fastest_entries[port_class]
        return min(unit * fastest, all_of_machine)


def tasks_together(sizes: Ints, machines: Ints, levels: Sequence[PlacedLevel]) -> list[Ints]:
    """Return the most tasks together in domains of the levels, the outermost first.

    Args:
        sizes: (m,) the most tasks of each machine.
        machines: (m,) their numbers.
    """
    tasks, above = [sizes.sum(keepdims=True)], np.zeros(len(machines), np.int64)
    for level in levels:
        codes = level.codes[machines].astype(np.int64) + 1
        _, above = np.unique(above * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
        tasks.append(np.bincount(above, sizes).astype(np.int64))
    return tasks


def least_seconds(
    job: JobGraph,
    units: Ints,
    exchanges: kernels.Exchanges,
    rooms: Rooms,
    view: ClusterView,
    rates: Rates | str,
) -> float:
    """Return seconds that no placement beats.

    Either all units are whole: then each dimension takes as long as its rings need on the best machine, or as its ports
    do. Or a unit is split, and its dimension crosses machines, as do those with more tasks than a machine can have.

    Args:
        units: (u, t) tasks that are mapped as a whole.
        exchanges: What the units exchange, a phase for each dimension.
        rates: Those of links by which the library plans rings.
    """
    unit_of, size = unit_of_tasks(units), units.shape[1]
    found = kernels.tree_bound(rooms.tree(*units.shape), exchanges)
    crossing = [_crossing(batches, rooms) for batches in job.traffic.values()]
    inside = [_inside(batches, unit_of, size, view, rates) for batches in job.traffic.values()]
    phases = np.maximum(np.maximum(found.phases, crossing), inside)
    least = max(float(phases.sum()), found.seconds + math.fsum(inside))
    must_be_whole = any(group.within == MACHINE for group in job.groups)
    if size > 1 and not must_be_whole:
        split = [_of_split(batches, unit_of, size, rooms) for batches in job.traffic.values()]
        least = min(least, math.fsum(map(max, split, crossing)))
    return least * _ROUNDING


def least_seconds_of_one(request: JobRequest, view: ClusterView, timing: machine_sets.Timing) -> float:
    """Return seconds that no placement of a job beats that some machine, on which all GPUs are alike, has GPUs for.

    Either it is on one machine, or two tasks that exchange are on different ones.
    """
    topology = view.cluster.topology
    large = [one for one in view.classes.classes if one.alone.num_gpus >= request.size]
    least = min(machine_sets.of_any(one, request, timing)[0].seconds for one in large)
    if view.classes.num_machines > 1:
        classes = (0, 1) if switched_levels(topology) else (0,)
        rooms = Rooms((), classes, topology.derived(Ports))
        pairs = [_of_one_pair(batches, rooms) for batches in request.job.traffic.values()]
        least = min(least, min(pairs, default=0.0) if _is_joined(request.job) else 0.0)
    return least * _ROUNDING


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


def _crossing(batches: Sequence[Batch], rooms: Rooms) -> float:
    """Return the least seconds of collectives that are not all inside domains, as these have too little room."""
    least = 0.0
    for batch in batches:
        count, size = batch.tasks.shape
        if len(np.unique(batch.tasks)) < batch.tasks.size:
            count = 1  # those with tasks in common may be in one domain
        fit = [int((tasks // size).sum()) for tasks in rooms.tasks]
        depths = [depth for depth, most in enumerate(fit) if depth and most < count]
        if depths:
            crossing = float(batch.carried.min() if fit[depths[0]] else batch.carried.max())
            least = max(least, _one_way(batch, crossing) / rooms.fastest(depths[0]))
    return least


def _of_split(batches: Sequence[Batch], unit_of: Ints, size: int, rooms: Rooms) -> float:
    """Return the least seconds if a unit of `size` tasks, whichever, is on several machines.

    0 unless each unit is a collective of its own.
    """
    owners = [_owners(batch, unit_of) for batch in batches if batch.tasks.shape[1] == size]
    found = [one for one in owners if one is not None]
    if len(found) < len(batches) or len(np.unique(np.concatenate(found))) * size < len(unit_of):
        return 0.0
    return _of_one_pair(batches, rooms)


def _of_one_pair(batches: Sequence[Batch], rooms: Rooms) -> float:
    """Return the least seconds if two tasks that exchange something are on different machines."""
    least = min(_one_way(batch, float(batch.carried.min())) for batch in batches)
    return least / rooms.fastest(len(rooms.own_class))


def _one_way(batch: Batch, carried: float) -> float:
    """Return the GB that two tasks next to each other send in one direction at the least."""
    return carried if batch.kind in RING_KINDS else carried / 2


def _inside(
    batches: Sequence[Batch], unit_of: Ints, size: int, view: ClusterView, rates: Rates | str
) -> float:
    """Return the least seconds of rings of which each is in one unit, on the best machine; 0 for others."""
    least = 0.0
    for batch in batches:
        if size == 1 or _owners(batch, unit_of) is None:
            return 0.0
        if batch.kind in RING_KINDS:
            gb_per_s = machine_sets.fastest_rings(view, batch.tasks.shape[1], rates)
            least = max(least, float(batch.carried.max()) / gb_per_s)
    return least


def _owners(batch: Batch, unit_of: Ints) -> Ints | None:
    """Return (c,) the unit that has all tasks of each collective; None if there is a collective without one."""
    rows = unit_of[batch.tasks]
    return rows[:, 0] if (rows == rows[:, :1]).all() else None


def unit_of_tasks(units: Ints) -> Ints:
    """Return (n,) the unit of each task; units: (u, t)."""
    unit_of = np.empty(units.size, np.int64)
    unit_of[units] = np.arange(len(units))[:, None]
    return unit_of
