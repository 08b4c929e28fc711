"""The groups of a job, packed into the tree of a cluster's domains (`kernels.pack_groups`).

A group whose level crosses a higher one may be in several domains of the tree. It goes where the other groups leave
room in one domain of the group's own level. If there is no such domain, all ways to divide the group among the parts of
one domain are tried.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from topoplace import kernels
from topoplace.engine.level_chain import LevelChains, PlacedLevel
from topoplace.engine.machines.machine_class import Mask
from topoplace.errors import SearchTimeoutError
from topoplace.jobs.groups import MACHINE, SOCKET

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topoplace.engine.level_chain import Together

    Ints = NDArray[np.int64]
    from topoplace.engine.gangs.offers import MachineOffer, Offers
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest

_MAX_NODES: Final = 1 << 20
"""Nodes of the search for a packing."""
_MAX_WAYS: Final = 2000
"""Limit on the ways to divide groups of crossing levels that are tried."""


class Forest:
    """Groups for `kernels.pack_groups`: nested or disjoint, without groups that others imply."""

    def __init__(
        self,
        together: Iterable[Together],
        depth_of: dict[str, int],
        tasks: Sequence[int],
        apart: Sequence[Together] = (),
    ) -> None:
        self.parent, self.depth = [-1], [0]
        self.inner = np.full(max(tasks, default=-1) + 1, -1)
        """The innermost group of each task; -1 for tasks that are not placed, and those of groups apart."""
        self.inner[list(tasks)] = 0
        taken = {task for group in apart for task in group.tasks}
        self.inner[list(taken)] = -1
        found = _nested((depth_of[group.level], set(group.tasks) - taken) for group in together)
        for depth, listed in sorted(found, key=lambda one: (-len(one[1]), one[0], one[1])):
            self.add(int(self.inner[listed[0]]), depth, listed)

    def add(self, parent: int, depth: int, tasks: Sequence[int]) -> None:
        """Add a group; the groups that contain it must have been added before."""
        self.inner[list(tasks)] = len(self.parent)
        self.parent.append(parent)
        self.depth.append(depth)

    @property
    def own(self) -> Ints:
        """Return (g,) the number of tasks of each group that are in no group inside it."""
        return np.bincount(self.inner[self.inner >= 0], minlength=len(self.parent))


def _nested(groups: Iterable[tuple[int, Iterable[int]]]) -> list[tuple[int, list[int]]]:
    """Return the depth and the tasks of nested or disjoint groups that keep the same tasks together.

    Groups with a task in common are in the same domain of the smaller depth: there they are one group.
    """
    name: dict[int, int] = {}
    members: dict[int, list[int]] = {}
    found: list[tuple[int, list[int]]] = []
    deepest_first = sorted(groups, key=lambda one: -one[0])
    for depth, equal in groupby(deepest_first, key=lambda one: one[0]):
        grown: set[int] = set()
        for _, tasks in equal:
            names = {name.setdefault(task, task) for task in tasks}
            if len(names) < 2:
                continue
            largest = max(names, key=lambda one: (len(members.get(one, ())), -one))
            mine = members.setdefault(largest, [largest])
            for other in names - {largest}:
                moved = members.pop(other, [other])
                name.update(dict.fromkeys(moved, largest))
                mine += moved
            grown -= names
            grown.add(largest)
        found += [(depth, sorted(members[one])) for one in grown]
    return found


class Packed(NamedTuple):
    """Groups that are packed into the tree."""

    forest: Forest
    shares: Ints
    """(s, 3): group, leaf and number of tasks, by group and then by leaf."""


def packed(
    domains: DomainTree,
    together: Collection[Together],
    tasks: Sequence[int],
    balanced: str | None = None,
    timeout: float | None = None,
) -> Packed | None:
    """Return a packing of these tasks in which each of `together` is in one domain; None if there is none.

    Args:
        balanced: The level over whose domains the tasks are as even as possible; None for no such level.
        timeout: Limit in seconds on the search for even shares, and on that for any if levels do not cross.

    Raises:
        SearchTimeoutError: The search reaches a limit without an answer.
    """
    apart = [group for group in domains.apart if group in together]
    if apart:
        return _Apart(domains, together, apart, tasks).packed()
    forest = Forest(together, domains.depth_of, tasks)
    shares = _shares(domains, forest, domains.room, balanced, timeout)
    return None if shares is None else Packed(forest, shares)


def _shares(
    domains: DomainTree,
    forest: Forest,
    room: Ints,
    balanced: str | None = None,
    timeout: float | None = None,
) -> Ints | None:
    found = kernels.pack_groups(
        domains.parent,
        room,
        forest.parent,
        forest.depth,
        forest.own,
        balanced=domains.depth_of[balanced] if balanced else None,
        max_nodes=_MAX_NODES,
        timeout=timeout,
    )
    return None if found is None else found.shares.astype(np.int64)


# ---- groups whose level crosses others -----------------------------------------------------------------------


class _Apart:
    """A search for domains of groups that may be in several domains of the tree."""

    def __init__(
        self,
        domains: DomainTree,
        together: Iterable[Together],
        apart: Sequence[Together],
        tasks: Sequence[int],
    ) -> None:
        self._domains = domains
        self._apart = sorted(apart, key=lambda one: -len(one.tasks))
        self._homes = [domains.domains_of(group.level) for group in self._apart]
        self._parts = [domains.part_of(group.level) for group in self._apart]
        others = [group for group in together if group not in apart]
        around = [domains.domains_of(group.level) for group in others if len(group.tasks) == len(tasks)]
        self._regions = _same(around, len(self._homes[0]))
        self._forest = Forest(others, domains.depth_of, tasks, apart)
        self._ways = 0

    def packed(self) -> Packed | None:
        """Return a packing; None if there is none."""
        for region in range(int(self._regions.max(initial=0)) + 1):
            room = np.where(self._regions == region, self._domains.left(), 0)
            capacity = self._capacity(room)
            shares = _shares(self._domains, self._forest, capacity)
            if shares is None:
                continue
            found = self._beside(room, shares) or self._divided(room, capacity, [])
            if found:
                return found
        return None

    def _capacity(self, room: Ints) -> Ints:
        """Return the room of each domain of the tree."""
        capacity = np.zeros(len(self._domains.parent), dtype=np.int64)
        at = np.arange(self._domains.first_leaf, len(capacity))
        while at[0] >= 0:
            np.add.at(capacity, at, room)
            at = self._domains.parent[at]
        return capacity

    def _beside(self, room: Ints, shares: Ints) -> Packed | None:
        """Return a packing with each group apart in what the others leave, in the fullest domain that suffices."""
        left = self._left(room, shares)
        rows: list[tuple[int, int, int]] = []
        for number, group in enumerate(self._apart):
            rooms = np.bincount(self._homes[number], weights=left)
            fitting = np.flatnonzero(rooms >= len(group.tasks))
            if not fitting.size:
                return None
            home = fitting[rooms[fitting].argmin()]
            rows += _taken(left, np.flatnonzero(self._homes[number] == home), number, len(group.tasks))
        return self._with(shares, rows)

    def _divided(self, room: Ints, capacity: Ints, pieces: Sequence[tuple[int, int, int]]) -> Packed | None:
        """Return a packing with these pieces of the first groups; None if there is none.

        capacity: the room of each domain of the tree that the pieces leave. pieces: group, domain and number of tasks.
        """
        number = pieces[-1][0] + 1 if pieces else 0
        if number == len(self._apart):
            return self._filled(room, capacity, pieces)
        for home in np.unique(self._homes[number][room > 0]).tolist():
            parts = np.unique(self._parts[number][self._homes[number] == home]).tolist()
            rooms = [int(capacity[part]) for part in parts]
            for sizes in _divisions(len(self._apart[number].tasks), rooms):
                self._ways += 1
                if self._ways > _MAX_WAYS:
                    raise SearchTimeoutError(f"no packing found in {_MAX_WAYS} ways to divide groups", None)
                left = capacity.copy()
                mine = [(number, part, size) for part, size in zip(parts, sizes, strict=True) if size]
                for _, part, size in mine:
                    while part >= 0:
                        left[part] -= size
                        part = int(self._domains.parent[part])
                if left.min() >= 0 and (found := self._divided(room, left, [*pieces, *mine])):
                    return found
        return None

    def _filled(self, room: Ints, capacity: Ints, pieces: Iterable[tuple[int, int, int]]) -> Packed | None:
        """Return a packing of the other groups beside these pieces."""
        shares = _shares(self._domains, self._forest, capacity)
        if shares is None:
            return None
        left = self._left(room, shares)
        rows: list[tuple[int, int, int]] = []
        for number, part, size in sorted(pieces, key=lambda piece: -piece[1]):  # the inner domains first
            rows += _taken(left, np.flatnonzero(self._parts[number] == part), number, size)
        return self._with(shares, rows)

    def _left(self, room: Ints, shares: Ints) -> Ints:
        left = room.copy()
        np.subtract.at(left, shares[:, 1] - self._domains.first_leaf, shares[:, 2])
        return left

    def _with(self, shares: Ints, rows: list[tuple[int, int, int]]) -> Packed:
        """Return the packing with the groups apart; rows: number of the group, leaf and number of tasks."""
        first = len(self._forest.parent)
        for group in self._apart:
            self._forest.add(0, -self._domains.depth_of[group.level], group.tasks)
        offset = np.array([first, self._domains.first_leaf, 0])
        added = np.array(sorted(rows), dtype=np.int64).reshape(-1, 3) + offset
        return Packed(self._forest, np.concatenate((shares, added)))


def _same(codes: Sequence[Ints], count: int) -> Ints:
    """Return a number for each of `count` things, the same for those with equal codes."""
    found = np.zeros(count, dtype=np.int64)
    for one in codes:
        found = np.unique(found * (int(one.max(initial=0)) + 1) + one, return_inverse=True)[1].reshape(-1)
    return found


def _taken(left: Ints, leaves: Ints, number: int, size: int) -> list[tuple[int, int, int]]:
    """Take the room of `size` tasks from these leaves, from those with the most first; return (number, leaf, tasks)."""
    rows: list[tuple[int, int, int]] = []
    for leaf in leaves[np.argsort(-left[leaves], kind="stable")].tolist():
        tasks = min(size, int(left[leaf]))
        if tasks:
            left[leaf] -= tasks
            size -= tasks
            rows.append((number, leaf, tasks))
    assert size == 0
    return rows


def _divisions(size: int, rooms: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield all ways to divide things among places with these rooms, most in the first ones first."""
    if not rooms:
        if size == 0:
            yield ()
        return
    least = max(size - sum(rooms[1:]), 0)
    for here in range(min(size, rooms[0]), least - 1, -1):
        for others in _divisions(size - here, rooms[1:]):
            yield here, *others


_ANY_ROOM = (1 << 31) - 1


class DomainTree:
    """The tree of the domains of the offered machines, an input of `kernels.pack_groups`; its leaves offer the GPUs."""

    def __init__(self, request: JobRequest, offers: Offers, view: ClusterView) -> None:
        levels = view.cluster.topology.derived(LevelChains).for_job(request.job)
        assert levels is not None  # `engine.requirements` has refused levels that no tree can honour
        self.apart = levels.apart
        self.levels = levels.chain[::-1]
        """The levels from the top down, but for sockets, with the domain of every machine of the cluster."""
        machines = offers.machines
        order = np.lexsort([level.codes[machines] for level in levels.chain])
        self.machines = machines[order]
        """The machines in the order of their domains, top down: those of the leaves, unless these are sockets."""
        self.depth_of: dict[str, int] = {}
        self._domains: dict[str, Ints] = {}
        """For each level, the number of the domain of each machine of the tree."""
        self._parents: list[Ints] = [np.array([-1])]
        self._rooms: list[Ints] = [np.array([_ANY_ROOM])]
        self._size = 1
        self._sockets: dict[int, tuple[int, Mask]] = {}
        self._above = np.zeros(len(machines), dtype=np.int64)
        for level in reversed(levels.chain):
            self._add(level, machines[order])
        sizes = np.minimum(offers.sizes, 1) if request.anti_affine else offers.sizes
        self._rooms[-1] = sizes[order]
        self._machine_of = np.arange(len(order))
        if request.needs_sockets:
            self._add_sockets(list(offers.at(order)), view)
        else:
            self._offers, self._at = offers, order
        self.parent = np.concatenate(self._parents)
        self.room = np.concatenate(self._rooms)
        self.first_leaf = self._size - len(self._machine_of)

    @property
    def leaf_machines(self) -> Ints:
        """Return the machine of each leaf."""
        return self.machines[self._machine_of]

    def place(self, leaf: int) -> tuple[int, Mask]:
        """Return the machine of a leaf, and the GPUs that the job may use there."""
        if self._sockets:
            return self._sockets[leaf]
        offer = self._offer_of(leaf)
        return offer.machine, offer.gpus_for(offer.max_tasks)

    def usable(self, leaf: int) -> tuple[int, Mask]:
        """Return the machine of a leaf, and all GPUs there that the job may use, even if its room is smaller."""
        if self._sockets:
            return self._sockets[leaf]
        offer = self._offer_of(leaf)
        return offer.machine, offer.usable

    def _offer_of(self, leaf: int) -> MachineOffer:
        return self._offers[int(self._at[leaf - self.first_leaf])]

    def domains_of(self, level: str) -> Ints:
        """Return the number of each leaf's domain of a level; other levels may cut this domain."""
        if level == SOCKET:
            return np.arange(len(self._machine_of))
        return self._domains[level][self._machine_of]

    def part_of(self, level: str) -> Ints:
        """Return each leaf's domain in the tree, at the depth of a level."""
        found = np.arange(self.first_leaf, self._size)
        for _ in range(len(self._parents) - 1 - self.depth_of[level]):
            found = self.parent[found]
        return found

    def left(self, shares: Ints | None = None) -> Ints:
        """Return the room that `shares` leave in each leaf; all room for None."""
        room = self.room[self.first_leaf :].astype(np.int64)
        if shares is not None:
            np.subtract.at(room, shares[:, 1] - self.first_leaf, shares[:, 2])
        return room

    def name(self, level: str, number: int, view: ClusterView) -> str:
        """Return the name of a domain, for messages; number: one that `domains_of` returns."""
        leaf = int(np.flatnonzero(self.domains_of(level) == number)[0])
        machine = self.place(self.first_leaf + leaf)[0]
        topology = view.cluster.topology
        named = topology.machine_names[machine]
        if level == SOCKET:
            return f"a socket of {named!r}"
        if level == MACHINE:
            return f"{named!r}"
        found = next(one for one in topology.levels if one.name == level).domains[machine]
        return f"{found or named!r}"

    def first_of(self, depth: int) -> int:
        """Return the number of the first domain of a depth; the root, of depth 0, has number 0."""
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
        domains = level.domains[machines]
        self._domains[level.name] = np.unique(domains, return_inverse=True)[1].reshape(-1)

    def _add_sockets(self, offered: Iterable[MachineOffer], view: ClusterView) -> None:
        parents: list[int] = []
        rooms: list[int] = []
        machine_of: list[int] = []
        for i, (offer, domain) in enumerate(zip(offered, self._above.tolist(), strict=True)):
            for socket in view.classes.of(offer.machine).sockets:
                usable = socket & offer.usable
                self._sockets[self._size + len(parents)] = offer.machine, usable
                parents.append(domain)
                rooms.append(usable.bit_count())
                machine_of.append(i)
        self._machine_of = np.array(machine_of, dtype=np.int64)
        self._parents.append(np.array(parents, dtype=np.int64))
        self._rooms.append(np.array(rooms, dtype=np.int64))
        self._size += len(parents)
        self.depth_of[SOCKET] = len(self._parents) - 1
