"""Which machine gets which tasks of a job with groups: each required group in one domain of its level.

The groups are packed into the levels of the cluster (`kernels.pack_groups`): few domains from the top down. Preferred
groups are required one after the other, as many as can be. Tasks of a group that are on several machines, and equal
groups, are then exchanged for less communication between machines (`kernels.distribute`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from topoplace import kernels
from topoplace.engine.level_chain import LevelChains, PlacedLevel, named_levels
from topoplace.engine.machines.machine_class import Mask, finite, members
from topoplace.errors import SearchTimeoutError
from topoplace.jobs.groups import MACHINE, SOCKET
from topoplace.jobs.job_graph import JobGraph

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topoplace.engine.gangs.offers import MachineOffer, Offers
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest

    Ints = NDArray[np.int64]

_MAX_NODES = 1 << 20
"""Nodes of the search for a packing."""
_MAX_SIZE = 1 << 22
"""Most tasks, or groups, times the places among which they are exchanged."""
_ANY_ROOM = (1 << 31) - 1


class Part(NamedTuple):
    """Tasks of a job that one machine gets."""

    machine: int
    usable: Mask
    """The machine's GPUs that they may use, at least one for each."""
    tasks: list[int]


class Together(NamedTuple):
    """Tasks that must be in one domain of a level."""

    tasks: tuple[int, ...]
    level: str


def divided(request: JobRequest, offers: Offers, view: ClusterView) -> list[Part] | None:
    """Return which of these machines gets which tasks, with as many preferred groups as can be; None if none can.

    Raises:
        SearchTimeoutError: If the search ends before it knows.
    """
    if not len(offers):
        return None
    domains = _Domains(request, offers, view)
    required = required_of(request.job)
    if (best := _packed(request, domains, required)) is None:
        return None
    for wishes in _wishes(request, required):
        fulfilled, best = _most(request, domains, required, wishes, best)
        required = [*required, *wishes[:fulfilled]]
    leaf_of = _assigned(request, domains, required, best, view)
    order = np.argsort(leaf_of, kind="stable")
    return [
        Part(*domains.place(leaf), list(tasks))
        for leaf, tasks in groupby(order.tolist(), key=lambda task: int(leaf_of[task]))
    ]


def part_jobs(job: JobGraph, parts: Sequence[Part]) -> list[JobGraph]:
    """Return the job of each part: its tasks by their order there, and the edges among them."""
    part_of = np.empty(job.num_tasks, dtype=np.int64)
    place = np.empty(job.num_tasks, dtype=np.int64)
    for number, part in enumerate(parts):
        part_of[part.tasks], place[part.tasks] = number, np.arange(len(part.tasks))
    a, b = job.edge_array[:, :2].astype(np.int64).T
    inside = np.flatnonzero(part_of[a] == part_of[b])
    inside = inside[np.argsort(part_of[a[inside]], kind="stable")]
    first = np.searchsorted(part_of[a[inside]], np.arange(len(parts) + 1))
    rows = np.column_stack((place[a[inside]], place[b[inside]], job.edge_array[inside, 2]))
    made: dict[tuple[int, bytes], JobGraph] = {}
    found: list[JobGraph] = []
    for number, part in enumerate(parts):
        mine = rows[first[number] : first[number + 1]]
        key = len(part.tasks), mine.tobytes()
        if key not in made:
            edges = [(int(u), int(v), weight) for u, v, weight in mine.tolist()]
            one = JobGraph.from_edges(len(part.tasks), edges, name=job.name)
            made[key] = one.with_(bandwidth_sensitive=job.bandwidth_sensitive, profile=job.profile)
        found.append(made[key])
    return found


def lack(request: JobRequest, offers: Offers, view: ClusterView) -> str | None:
    """Return which groups these machines have no room for, and what the nearest domain lacks; None if all fit.

    For example "7 of 8 groups of 16 fit within a rack; 'r4' lacks 2 GPUs". Without a search that ends in time, None.
    """
    if not len(offers):
        return None
    domains = _Domains(request, offers, view)
    required = sorted(
        required_of(request.job), key=lambda one: (domains.depth_of[one.level], -len(one.tasks))
    )
    try:
        for level, groups in groupby(required, key=lambda one: one.level):
            found = _lack_of(request, domains, level, list(groups), view)
            if found:
                return found
        if _packed(request, domains, required) is None:
            return "not all of its groups fit at the same time"
    except SearchTimeoutError:
        pass
    return None


def _lack_of(
    request: JobRequest, domains: _Domains, level: str, groups: Sequence[Together], view: ClusterView
) -> str | None:
    """Return how many of the groups of one level fit, and what the domain with the most room lacks; None if all do."""
    placed, packing = _count_together(request, domains, groups)
    if placed == len(groups):
        return None
    sizes = sorted({len(group.tasks) for group in groups})
    many = f"groups of {sizes[0]}" if len(sizes) == 1 else f"groups of {sizes[0]} to {sizes[-1]}"
    what = f"{placed} of {len(groups)} {many} fit within a {level}"
    size = len(groups[placed].tasks)
    room = domains.left(domains.depth_of[level], packing)
    best = int(room.argmax())
    name = domains.name(level, best, view)
    inside = {
        len(one.tasks) for one in required_of(request.job) if one.level == MACHINE and len(one.tasks) < size
    }
    if level != MACHINE and len(inside) == 1:
        each = inside.pop()
        whole = domains.whole_machines(domains.depth_of[level], best, each, packing)
        if (few := size // each - whole) > 0:
            return f"{what}; {name} lacks {_count(few, 'machine')} with {_count(each, 'free GPU')}"
    if room[best] < size:
        return f"{what}; {name} lacks {_count(size - int(room[best]), 'GPU')}"
    return f"{what}; {name} has {_count(int(room[best]), 'GPU')}, but not for the groups inside"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number > 1)}"


def _count_together(
    request: JobRequest, domains: _Domains, groups: Sequence[Together]
) -> tuple[int, kernels.GroupPacking | None]:
    """Return how many of these groups, the first ones, fit at the same time, and how."""
    required = required_of(request.job)
    low, high, best = 0, len(groups), None
    middle = high
    while low < high:
        tasks = {task for group in groups[:middle] for task in group.tasks}
        inside = [one for one in required if tasks.issuperset(one.tasks)]
        found = _packed(request, domains, inside, sorted(tasks))
        if found is None:
            high = middle - 1
        else:
            low, best = middle, found
        middle = (low + high + 1) // 2
    return low, best


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


# ---- the domains and their groups ----------------------------------------------------------------------------


class _Domains:
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
            self._add_sockets([offers[i] for i in order.tolist()], view)
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


class _Forest:
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


def _packed(
    request: JobRequest, domains: _Domains, together: Sequence[Together], tasks: Sequence[int] | None = None
) -> kernels.GroupPacking | None:
    forest = _Forest(together, domains.depth_of, range(request.size) if tasks is None else tasks)
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


# ---- preferred groups ----------------------------------------------------------------------------------------


def _wishes(request: JobRequest, required: Sequence[Together]) -> Iterator[list[Together]]:
    """Yield the preferred groups, equal ones in one list, the largest first.

    A group that crosses required ones is made larger until it has them whole: if all of it is together, they are too.
    """
    job = request.job
    wishes = [Together(group.tasks, group.prefer) for group in job.groups if group.prefer]
    if job.prefer:
        wishes.append(Together(tuple(range(job.num_tasks)), job.prefer))
    whole = {Together(_closed(wish.tasks, required), wish.level) for wish in wishes}
    ordered = sorted(whole, key=lambda wish: (-len(wish.tasks), wish.level, wish.tasks))
    for _, equal in groupby(ordered, key=lambda wish: (len(wish.tasks), wish.level)):
        yield list(equal)


def _closed(tasks: Iterable[int], required: Sequence[Together]) -> tuple[int, ...]:
    whole = set(tasks)
    for group in sorted(required, key=lambda one: len(one.tasks)):
        if not whole.isdisjoint(group.tasks) and not whole.issubset(group.tasks):
            whole.update(group.tasks)
    return tuple(sorted(whole))


def _most(
    request: JobRequest,
    domains: _Domains,
    required: Sequence[Together],
    wishes: Sequence[Together],
    packing: kernels.GroupPacking,
) -> tuple[int, kernels.GroupPacking]:
    """Return how many of `wishes`, the first ones, can be fulfilled, and the packing with them."""
    low, high, best = 0, len(wishes), packing
    middle = high
    while low < high:
        try:
            found = _packed(request, domains, [*required, *wishes[:middle]])
        except SearchTimeoutError:
            found = None
        if found is None:
            high = middle - 1
        else:
            low, best = middle, found
        middle = (low + high + 1) // 2
    return low, best


# ---- tasks to places -----------------------------------------------------------------------------------------


def _assigned(
    request: JobRequest,
    domains: _Domains,
    together: Sequence[Together],
    packing: kernels.GroupPacking,
    view: ClusterView,
) -> Ints:
    """Return (k,) the leaf of each task."""
    forest = _Forest(together, domains.depth_of, range(request.size))
    leaf_of = np.full(request.size, -1)
    shares = packing.shares.astype(np.int64)
    for group in np.unique(shares[:, 0]).tolist():
        mine = shares[shares[:, 0] == group]
        leaf_of[forest.tasks_of(group)] = np.repeat(mine[:, 1], mine[:, 2])
    if request.job.edges:
        _exchange(request, domains, forest, leaf_of, view)
    return leaf_of


def _exchange(
    request: JobRequest, domains: _Domains, forest: _Forest, leaf_of: Ints, view: ClusterView
) -> None:
    """Exchange equal groups, and then the tasks of each group, for less communication between the leaves."""
    a, b, weight = request.job.edge_array.T
    ends = a.astype(np.int64), b.astype(np.int64)
    groups = forest.inner[ends[0]], forest.inner[ends[1]]
    has_inside = np.bincount(np.array(forest.parent[1:], dtype=np.int64), minlength=len(forest.parent)) > 0
    kinds: dict[tuple[int, int, int], list[int]] = {}
    for group, (parent, depth) in enumerate(zip(forest.parent, forest.depth, strict=True)):
        if group and not has_inside[group]:
            kinds.setdefault((parent, depth, int(forest.own[group])), []).append(group)
    for equal in kinds.values():
        places = [leaf_of[forest.tasks_of(group)] for group in equal]
        number = np.full(len(forest.parent), -1)
        number[equal] = np.arange(len(equal))
        order = _cheaper(
            number[groups[0]], number[groups[1]], weight, [int(one[0]) for one in places], domains, view
        )
        for i, group in enumerate(equal):
            leaf_of[forest.tasks_of(group)] = places[order[i]]
    for group in range(len(forest.parent)):
        tasks = forest.tasks_of(group)
        if len(tasks) > 1 and (leaf_of[tasks] != leaf_of[tasks[0]]).any():
            number = np.full(len(forest.inner), -1)
            number[tasks] = np.arange(len(tasks))
            mine = leaf_of[tasks]
            order = _cheaper(number[ends[0]], number[ends[1]], weight, mine.tolist(), domains, view)
            leaf_of[tasks] = mine[order]


def _cheaper(
    a: Ints, b: Ints, weight: NDArray[np.float64], leaves: Sequence[int], domains: _Domains, view: ClusterView
) -> list[int]:
    """Return which of the places each thing gets, for less communication; `leaves`: that of the place of each.

    a, b, weight: the edges between things, by their numbers; -1 for other things.
    """
    unchanged = list(range(len(leaves)))
    counts = np.flatnonzero((a >= 0) & (b >= 0) & (a != b))
    different, block, room = np.unique(leaves, return_inverse=True, return_counts=True)
    if not counts.size or len(different) < 2 or len(different) * len(leaves) > _MAX_SIZE:
        return unchanged
    low, high = np.minimum(a[counts], b[counts]), np.maximum(a[counts], b[counts])
    pairs, where = np.unique(low * len(leaves) + high, return_inverse=True)
    sums = np.bincount(where, weights=weight[counts])
    edges = np.column_stack((pairs // len(leaves), pairs % len(leaves), sums))
    classes = view.classes
    places = map(domains.place, different.tolist())
    firsts = [classes.gpus_of[machine][next(members(usable))] for machine, usable in places]
    distance = finite(_between(firsts, view))
    found = kernels.distribute(kernels.Graph.from_edges(len(leaves), edges), room, distance, starts=2)
    assert found is not None  # there is a place for each
    free: list[list[int]] = [[] for _ in different]
    for place, at in enumerate(block.tolist()):
        free[at].append(place)
    for left in free:
        left.reverse()
    return [free[at].pop() for at in found.block_of.tolist()]


def _between(gpus: Sequence[int], view: ClusterView) -> NDArray[np.float64]:
    """Return the distances between GPUs of different machines or sockets."""
    classes, topology = view.classes, view.cluster.topology
    machines = [classes.machine_of[gpu] for gpu in gpus]
    if len(set(machines)) == len(machines):
        return classes.between(gpus, topology)
    return np.array([[topology.distance(u, v) if u != v else 0.0 for v in gpus] for u in gpus])
