"""The domains of a cluster as a tree, and the groups of a job, as `kernels.pack_groups` takes both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from topoplace import kernels
from topoplace.engine.level_chain import LevelChains, PlacedLevel, named_levels
from topoplace.engine.machines.machine_class import Mask
from topoplace.jobs.groups import MACHINE, SOCKET

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topoplace.engine.gangs.offers import MachineOffer, Offers
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest
    from topoplace.jobs.job_graph import JobGraph

    Ints = NDArray[np.int64]

_MAX_NODES = 1 << 20
"""Nodes of the search for a packing."""
_ANY_ROOM = (1 << 31) - 1


class Together(NamedTuple):
    """Tasks that must be in one domain of a level."""

    tasks: tuple[int, ...]
    level: str


def required_of(job: JobGraph) -> list[Together]:
    """Return the tasks that must be together, the outer groups before those inside them."""
    everything = tuple(range(job.num_tasks))
    found = [
        Together(everything, level)
        for level in (job.within, MACHINE if job.single_machine else None)
        if level
    ]
    found += [Together(group.tasks, group.within) for group in job.groups if group.within]
    return found


class DomainTree:
    """The tree of the domains of the offered machines, as `kernels.pack_groups` takes it; its leaves give the GPUs."""

    def __init__(self, request: JobRequest, offers: Offers, view: ClusterView) -> None:
        job = request.job
        chain = view.cluster.topology.derived(LevelChains).of(named_levels(job), others=not job.balanced)
        assert chain is not None  # `engine.requirements` has refused levels that do not nest
        machines = offers.machines
        order = np.lexsort([level.codes[machines] for level in chain])
        self.depth_of: dict[str, int] = {}
        self._parents: list[Ints] = [np.array([-1])]
        self._rooms: list[Ints] = [np.array([_ANY_ROOM])]
        self._size = 1
        self._sockets: dict[int, tuple[int, Mask]] = {}
        self._above = np.zeros(len(machines), dtype=np.int64)
        for level in reversed(chain):
            self._add(level, machines[order])
        sizes = np.minimum(offers.sizes, 1) if request.anti_affine else offers.sizes
        self._rooms[-1] = sizes[order]
        if request.needs_sockets:
            self._add_sockets(list(offers.at(order)), view)
        else:
            self._offers, self._first, self._at = offers, self._size - len(order), order
        self.parent = np.concatenate(self._parents)
        self.room = np.concatenate(self._rooms)

    def place(self, leaf: int) -> tuple[int, Mask]:
        """Return the machine of a leaf, and those of its GPUs that the job may use there."""
        if self._sockets:
            return self._sockets[leaf]
        offer = self._offers[int(self._at[leaf - self._first])]
        return offer.machine, offer.gpus_for(offer.max_tasks)

    def left(self, depth: int, packing: kernels.GroupPacking | None) -> Ints:
        """Return the room that a packing leaves in each domain of a depth."""
        of = np.arange(len(self.parent))
        room = np.where(np.isin(of, self.parent), 0, self.room)
        if packing is not None:
            np.subtract.at(room, packing.shares[:, 1], packing.shares[:, 2])
        depths = len(self._parents) - 1
        for _ in range(depths - depth):
            is_deep = of >= self._first_of(depth + 1)
            of = np.where(is_deep, self.parent[of], of)
        first, last = self._first_of(depth), self._first_of(depth + 1)
        sums = np.bincount(of, weights=room, minlength=last)
        return sums[first:last].astype(np.int64)

    def whole_machines(self, depth: int, number: int, size: int, packing: kernels.GroupPacking | None) -> int:
        """Return how many groups of `size` the machines of a domain have room for; number: among those of its depth."""
        machines = self.depth_of[MACHINE]
        domain = np.arange(self._first_of(machines), self._first_of(machines + 1))
        for _ in range(machines - depth):
            domain = self.parent[domain]
        inside = domain == self._first_of(depth) + number
        return int((self.left(machines, packing)[inside] // size).sum())

    def name(self, level: str, number: int, view: ClusterView) -> str:
        """Return the name of a domain, for messages; number: its number among those of the level."""
        leaf = self._first_of(self.depth_of[level]) + number
        while leaf in self.parent:
            leaf = int(np.flatnonzero(self.parent == leaf)[0])
        machine = self.place(leaf)[0]
        topology = view.cluster.topology
        named = topology.machine_names[machine]
        if level == SOCKET:
            return f"a socket of {named!r}"
        if level == MACHINE:
            return f"{named!r}"
        found = next(one for one in topology.levels if one.name == level).domains[machine]
        return f"{found or named!r}"

    def _first_of(self, depth: int) -> int:
        return sum(len(parents) for parents in self._parents[:depth])

    def _add(self, level: PlacedLevel, machines: Ints) -> None:
        """Add the domains of a level; machines: those of the same domains so far are neighbours."""
        codes = level.codes[machines]
        starts = np.ones(len(codes), dtype=np.bool_)
        starts[1:] = (codes[1:] != codes[:-1]) | (self._above[1:] != self._above[:-1])
        self._parents.append(self._above[starts])
        self._above = self._size + np.cumsum(starts) - 1
        self._size += int(starts.sum())
        self._rooms.append(np.full(int(starts.sum()), _ANY_ROOM))
        self.depth_of[level.name] = len(self._parents) - 1

    def _add_sockets(self, offered: Iterable[MachineOffer], view: ClusterView) -> None:
        parents: list[int] = []
        rooms: list[int] = []
        for offer, domain in zip(offered, self._above.tolist(), strict=True):
            for socket in view.classes.of(offer.machine).sockets:
                usable = socket & offer.usable
                self._sockets[self._size + len(parents)] = offer.machine, usable
                parents.append(domain)
                rooms.append(usable.bit_count())
        self._parents.append(np.array(parents, dtype=np.int64))
        self._rooms.append(np.array(rooms, dtype=np.int64))
        self.depth_of[SOCKET] = len(self._parents) - 1


class Forest:
    """Groups as `kernels.pack_groups` takes them: without those that others imply."""

    def __init__(self, together: Sequence[Together], depth_of: dict[str, int], tasks: Sequence[int]) -> None:
        self.parent, self.depth = [-1], [0]
        inner = np.full(max(tasks, default=-1) + 1, -1)
        inner[list(tasks)] = 0
        for group in sorted(together, key=lambda one: (-len(one.tasks), depth_of[one.level], one.tasks)):
            around = int(inner[group.tasks[0]])
            if len(group.tasks) > 1 and depth_of[group.level] > self.depth[around]:
                inner[list(group.tasks)] = len(self.parent)
                self.parent.append(around)
                self.depth.append(depth_of[group.level])
        self.inner = inner
        """The innermost group of each task; -1 for tasks that are not placed."""
        self.own = np.bincount(inner[inner >= 0], minlength=len(self.parent))

    def tasks_of(self, group: int) -> Ints:
        """Return the tasks of a group that are in no group inside it."""
        return np.flatnonzero(self.inner == group)


def packed(
    request: JobRequest, domains: DomainTree, together: Sequence[Together], tasks: Sequence[int] | None = None
) -> kernels.GroupPacking | None:
    """Return a packing in which all `together` are; None if there is none.

    tasks: those to place, by default all of the job. SearchTimeoutError if the search ends before it knows.
    """
    forest = Forest(together, domains.depth_of, range(request.size) if tasks is None else tasks)
    balanced = request.job.balanced
    return kernels.pack_groups(
        domains.parent,
        domains.room,
        forest.parent,
        forest.depth,
        forest.own,
        balanced=domains.depth_of[balanced] if balanced else None,
        max_nodes=_MAX_NODES,
    )
