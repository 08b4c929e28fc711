"""Kueue's topology-aware scheduling: one domain that fits, then the fewest domains inside it, by BestFit or not."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from topoplace.engine.level_chain import LevelChains, named_levels
from topoplace.jobs.groups import SOCKET
from topoplace_lab.policies.schedulers.scheduler_policy import Asked, SchedulerPolicy, Share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.machines.machine_class import MachineClass, Mask
    from topoplace.engine.machines.machine_conditions import MachineState
    from topoplace.engine.request import JobRequest
    from topoplace.jobs.groups import Group
    from topoplace.jobs.job_graph import JobGraph
    from topoplace_lab.policies.schedulers.levels import Levels

    Ints = NDArray[np.int64]


class Room:
    """The number of tasks, and of slices, for which each domain has room."""

    def __init__(self, layers: Sequence[tuple[int, int]], levels: Levels) -> None:
        """layers: the depth and the size of each kind of slices, the outermost first."""
        self.levels = levels
        self.slice_depth, self.slice_size = layers[0] if layers else (levels.last, 1)
        self.size_at: dict[int, int] = {}
        """For depths below the slices, the size of inner slices there, if it is above one."""
        for (above, _), (depth, size) in pairwise(layers):
            self.size_at.update(dict.fromkeys(range(above + 1, depth + 1), size))
        self.tasks = [levels.room]
        for depth in range(levels.last, 0, -1):
            size = self.size_at.get(depth, 1)
            self.tasks.insert(0, levels.up(depth, self.tasks[0] // size * size))
        self.slices = [np.zeros_like(tasks) for tasks in self.tasks]
        self.slices[self.slice_depth] = self.tasks[self.slice_depth] // self.slice_size
        for depth in range(self.slice_depth, 0, -1):
            self.slices[depth - 1] = levels.up(depth, self.slices[depth])

    def ordered(self, depth: int, domains: Ints, *, fewest_first: bool) -> Ints:
        """Return domains sorted by their slices; ties go to the fewest tasks, then to the lowest number."""
        slices = self.slices[depth][domains]
        return domains[np.lexsort((domains, self.tasks[depth][domains], slices if fewest_first else -slices))]


class KueueBestFit(SchedulerPolicy):
    """Kueue's BestFit: the smallest domain of the asked level that fits, then the domains with the most room.

    Required (`within`, `single_machine`): a domain of this level, or the job waits. Preferred (`prefer`): if none fits,
    one of the next level up; if none of the top level fits, several of these. No level: a machine, or several. At each
    lower level, domains with the most room are filled first; the last one is the smallest that fits the rest. `groups`
    are Kueue's slices of equal size, each in one domain of a level at or below the job's. Smaller slices may be inside
    larger ones at a lower level. A job with slices alone is placed from the top level.

    Source: Kueue's KEP 2724 and its scheduler at commit ff69552e79ad. There, jobs that ask for nothing follow
    `kueue-least-free` by default. Not modelled: leader pods, affinity, taints, replacement of nodes, elastic jobs,
    preemption and quota. Names decide ties there, here the order of the domains in the fabric.
    """

    name = "kueue-best-fit"
    honours = frozenset(("within", "prefer", "groups"))
    fewest_first: ClassVar[bool] = False
    """True to fill the domains with the least room first."""

    def order(self, machine_class: MachineClass, state: MachineState, free: Mask) -> tuple[float, ...]:
        """Return the number of free GPUs, as the sort key."""
        return (float(free.bit_count()),)

    def lacks(self, asked: Asked, job: JobGraph, cluster: Cluster) -> tuple[str, str] | None:
        """Return the first requirement that Kueue lacks: any but one level, and nested slices of equal sizes."""
        if asked.within and asked.prefer:
            return "prefer", "takes a required or a preferred level"
        if SOCKET in (*asked.within, *asked.prefer, *(group.within for group in asked.groups)):
            return "groups", "knows no level below the machine"
        if any(group.prefer for group in asked.groups):
            return "groups", "prefers a level for whole jobs only"
        layers = _layers(asked.groups)
        if not (all(map(_is_equal, layers)) and _is_nested(asked, layers, job, cluster)):
            return "groups", "knows slices of equal size, smaller ones in them at lower levels"
        return None

    def groups_of(self, asked: Asked) -> Sequence[Sequence[int]]:
        """Return the tasks slice after slice."""
        if not asked.groups:
            return super().groups_of(asked)
        slice_of = np.zeros((len(_layers(asked.groups)), asked.size), dtype=np.int64)
        for row, (_, groups) in enumerate(_layers(asked.groups)):
            for number, group in enumerate(groups):
                slice_of[row, list(group.tasks)] = number
        order: list[int] = np.lexsort((np.arange(asked.size), *slice_of[::-1])).tolist()
        return [order]

    def shares(
        self, asked: Asked, request: JobRequest, levels: Levels, view: ClusterView
    ) -> Sequence[Sequence[Share]] | None:
        """Return the number of tasks of each machine; None if the job has to wait."""
        room = room_of(asked, levels)
        found = self.started(asked, room)
        if found is None:
            return None
        depth, shares = found
        while depth < room.slice_depth:  # all domains together
            shares = self.taken(
                room, depth + 1, self.children(room, depth, shares), asked.size // room.slice_size
            )
            depth += 1
        shares = [(domain, slices * room.slice_size) for domain, slices in shares]
        return [self.spread(room, depth, shares)]

    def started(self, asked: Asked, room: Room) -> tuple[int, list[Share]] | None:
        """Return the first depth, and the slices that its domains get; None if the job has to wait."""
        named = [room.levels.depth_of[level] for level in (*asked.within, *asked.prefer)]
        depth = max(named) if named else 1 if asked.groups else room.levels.last
        need = asked.size // room.slice_size
        while True:
            domains = room.ordered(depth, np.arange(len(room.tasks[depth])), fewest_first=True)
            fitting = domains[room.slices[depth][domains] >= need]
            if fitting.size:
                return depth, [(int(fitting[0]), need)]
            if asked.within:
                return None
            if depth <= 1 or not asked.prefer:
                shares = self.taken(room, depth, domains, need)
                return (depth, shares) if shares else None
            depth -= 1

    def children(self, room: Room, depth: int, shares: Sequence[Share]) -> Ints:
        """Return the domains of the next depth inside those of `shares`."""
        inside: list[Ints] = []
        for domain, _ in shares:
            one = room.levels.inside(depth, domain, depth + 1)
            inside.append(np.arange(int(one.start), int(one.stop)))
        return np.concatenate(inside)

    def taken(
        self, room: Room, depth: int, domains: Ints, need: int, amounts: Ints | None = None
    ) -> list[Share]:
        """Return how many of `need` slices each domain gets; [] if there is no room.

        amounts: the room of each domain of the depth in another unit; None counts slices.
        """
        ordered = room.ordered(depth, domains, fewest_first=self.fewest_first)
        left = (room.slices[depth] if amounts is None else amounts)[ordered]
        total = np.cumsum(left)
        last = int(np.searchsorted(total, need))
        if last == len(ordered):
            return []
        rest = need - int(total[last] - left[last])
        end = last
        if not self.fewest_first:
            end += int(np.argmin(np.where(left[last:] >= rest, left[last:], np.iinfo(np.int64).max)))
        shares = zip(ordered[:last].tolist(), left[:last].tolist(), strict=True)
        return [*((domain, count) for domain, count in shares if count), (int(ordered[end]), rest)]

    def spread(self, room: Room, depth: int, shares: list[Share]) -> list[Share]:
        """Return how many tasks each machine gets, from the tasks of domains at a depth."""
        for below in range(depth + 1, room.levels.last + 1):
            size = room.slice_size if below <= room.slice_depth else room.size_at.get(below, 1)
            amounts = room.tasks[below] // size
            shares = [
                (child, count * size)
                for domain, tasks in shares
                for child, count in self.taken(
                    room, below, self.children(room, below - 1, [(domain, 0)]), tasks // size, amounts
                )
            ]
        return shares


class KueueLeastFree(KueueBestFit):
    """Kueue's LeastFreeCapacity: takes the domains with the least room first, to leave the others whole.

    All else is as in `kueue-best-fit`. This is Kueue's default for jobs that ask for no level.
    """

    name = "kueue-least-free"
    fewest_first = True


def room_of(asked: Asked, levels: Levels) -> Room:
    """Return the domains' room for the slices of a job."""
    layers = _layers(asked.groups)
    return Room([(levels.depth_of[level], len(groups[0].tasks)) for level, groups in layers], levels)


def _layers(groups: Sequence[Group]) -> list[tuple[str, list[Group]]]:
    """Return groups by level, those with the largest first."""
    by_level: dict[str, list[Group]] = {}
    for group in groups:
        by_level.setdefault(str(group.within), []).append(group)
    layers = [(level, sorted(its, key=lambda one: one.tasks)) for level, its in by_level.items()]
    return sorted(layers, key=lambda layer: -len(layer[1][0].tasks))


def _is_equal(layer: tuple[str, Sequence[Group]]) -> bool:
    return len({len(group.tasks) for group in layer[1]}) == 1


def _is_nested(
    asked: Asked, layers: Sequence[tuple[str, Sequence[Group]]], job: JobGraph, cluster: Cluster
) -> bool:
    """Return whether slices of equal size divide the job and each other, and are at lower and lower levels."""
    chain = cluster.topology.derived(LevelChains).of(named_levels(job))
    height = {level.name: number for number, level in enumerate(chain or ())}
    of_job = [height[level] for level in (*asked.within, *asked.prefer)]
    heights = [height[level] for level, _ in layers]
    sizes = [asked.size, *(len(groups[0].tasks) for _, groups in layers)]
    return (
        all(len(groups) * size == asked.size for (_, groups), size in zip(layers, sizes[1:], strict=True))
        and all(large % small == 0 for large, small in pairwise(sizes))
        and all(above > below for above, below in pairwise(heights))
        and all(one >= heights[0] for one in of_job if heights)
    )
