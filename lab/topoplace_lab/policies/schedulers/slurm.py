"""Slurm's topology plugins: leaf switches by best fit, and blocks filled so that large ones stay whole."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from topoplace.engine.level_chain import LevelChains, named_levels
from topoplace.jobs.groups import MACHINE, SOCKET
from topoplace_lab.policies.schedulers.scheduler_policy import Asked, SchedulerPolicy, Share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest
    from topoplace.jobs.job_graph import JobGraph
    from topoplace_lab.policies.schedulers.levels import Levels

    Ints = NDArray[np.int64]


class SlurmPolicy(SchedulerPolicy):
    """Base of Slurm's rules, which take the machines of one lowest domain in order, then those of the next."""

    @abstractmethod
    def taken(self, asked: Asked, need: int, left: Left, sizes: Sequence[int]) -> list[Share] | None:
        """Return how many of `need` tasks each machine gets; None if they have to wait.

        left: changed by the call. sizes: for each depth, the tasks for which the largest domain has GPUs, free or not.
        """

    def shares(
        self, asked: Asked, request: JobRequest, levels: Levels, view: ClusterView
    ) -> Sequence[Sequence[Share]] | None:
        """Return the number of tasks of each machine; None if the job has to wait."""
        alone = asked.per_pod
        left, found = Left(levels, levels.room // alone), list[list[Share]]()
        key = _sizes, named_levels(request.job), alone
        sizes = view.table(key, lambda: _sizes(request.job, view, alone))
        for tasks in self.groups_of(asked):
            shares = self.taken(asked, len(tasks) // alone, left, sizes)
            if shares is None:
                return None
            found.append([(machine, count * alone) for machine, count in shares])
        return found


class Left:
    """The number of tasks for which domains have room, at each depth."""

    def __init__(self, levels: Levels, room: Ints) -> None:
        """room: the number of tasks for which each machine has room."""
        self.levels = levels
        self.leaf_depth = levels.last - 1
        """The depth of the lowest level of the fabric; 0, all machines, if there is none."""
        self.at = levels.totals(room)
        """The room at each depth, by domain."""

    def best(self, need: int, inside: slice, depth: int, *, last_of_equal: bool = False) -> tuple[int, bool]:
        """Return the smallest of these domains that fits, or else the largest; and True if it fits."""
        room = self.at[depth][inside]
        room = room[::-1] if last_of_equal else room
        fits = bool(room.max() >= need)
        at = (
            int(np.argmin(np.where(room >= need, room, np.iinfo(np.int64).max)))
            if fits
            else int(room.argmax())
        )
        return inside.start + (len(room) - 1 - at if last_of_equal else at), fits

    def take(self, leaf: int, need: int) -> list[Share]:
        """Use the room of the first machines of a lowest domain for up to `need` tasks; return their shares."""
        inside = self.levels.inside(self.leaf_depth, leaf, self.levels.last)
        room = self.at[-1][inside]
        counts = np.clip(need - (np.cumsum(room) - room), 0, room)
        self.at[-1][inside] -= counts
        for depth in range(self.leaf_depth, -1, -1):
            self.at[depth][leaf] -= counts.sum()
            leaf = int(self.levels.above[depth][leaf])
        used = np.flatnonzero(counts)
        return list(zip((used + inside.start).tolist(), counts[used].tolist(), strict=True))


class SlurmTree(SlurmPolicy):
    """Slurm's topology/tree: below the lowest switch that fits the job, the leaf switches that fit it best.

    The first leaf switch is the smallest that fits, or else the largest one below the smallest lowest switch that fits.
    The next, as near as possible, is the smallest that fits the rest, or else the largest. `within` the lowest level of
    the fabric is `--switches=1`; `single_machine` is `--nodes=1`, and equal groups of `machine` for all tasks are
    `--gpus-per-node`. All machines meet above the top level.

    Source: Slurm's topology guide and plugin at commit 284c3b95f08a. Slurm counts nodes, this policy GPUs. Not
    modelled: node weights, the time that a job waits for its number of switches, dragonfly networks. If no near switch
    fits the rest, the original may take the first one in its table.
    """

    name = "slurm-tree"
    honours = frozenset(("within", "groups"))

    def lacks(self, asked: Asked, job: JobGraph, cluster: Cluster) -> tuple[str, str] | None:
        """Return a requirement that Slurm's tree lacks: any but a limit of one switch."""
        if asked.parts or asked.prefer:
            return "groups", "knows no parts of jobs but equal ones for each node, and no preferred levels"
        leaf = next((level.name for level in cluster.topology.levels if not level.rail), None)
        if set(asked.within) - {MACHINE, leaf}:
            return "within", "takes one leaf switch, or several under any switch"
        return None

    def taken(self, asked: Asked, need: int, left: Left, sizes: Sequence[int]) -> list[Share] | None:
        """Return how many of `need` tasks each machine gets; None if they have to wait."""
        whole = left.leaf_depth if asked.within else 0
        if left.at[whole].max() < need:
            return None
        shares, scope, depth = list[Share](), 0, 0
        while need:
            scope, depth = self._leaf(left, need, depth, scope), left.leaf_depth
            taken = left.take(scope, need)
            need -= sum(count for _, count in taken)
            shares += taken
            while depth and not left.at[depth][scope]:
                scope, depth = int(left.levels.above[depth][scope]), depth - 1
        return shares

    def _leaf(self, left: Left, need: int, depth: int, scope: int) -> int:
        """Return the best leaf switch under a switch."""
        for level in range(left.leaf_depth, depth - 1, -1):
            best, fits = left.best(need, left.levels.inside(depth, scope, level), level)
            if fits:
                break
        else:
            best, level = scope, depth
        while level < left.leaf_depth:
            level, inside = level + 1, left.levels.inside(level, best, level + 1)
            best, _ = left.best(need, inside, level)
        return best


class SlurmBlock(SlurmPolicy):
    """Slurm's topology/block: the smallest block size that holds the job, and of it the block with the least room.

    Inside it, the rule takes as few blocks of the next smaller size as hold the job: the smallest that fits the rest,
    or else the largest. It continues in the same way down to the base blocks. The levels of the fabric are the block
    sizes; the lowest level has the base blocks. `groups` of equal size are `--segment`, placed one after the other in
    this way. Equal groups of `machine` for all tasks are `--gpus-per-node`. Ties go to the last block.

    Source: Slurm's topology guide and plugin at commit 284c3b95f08a. Slurm counts nodes, this policy GPUs. Not
    modelled: node weights, ranges of nodes, `--spread-segments`, `--consolidate-segments`.
    """

    name = "slurm-block"
    honours = frozenset(("groups",))

    def lacks(self, asked: Asked, job: JobGraph, cluster: Cluster) -> tuple[str, str] | None:
        """Return a requirement that is no segment: groups of other levels, or of different sizes."""
        if asked.prefer or set(asked.within) - {MACHINE}:
            return "groups", "chooses the level of a job by its size"
        sizes = {len(group.tasks) for group in asked.parts}
        levels = {group.within for group in asked.parts}
        if not sizes or (
            len(sizes) == len(levels) == 1
            and levels.isdisjoint((SOCKET, MACHINE, None))
            and not any(group.prefer for group in asked.parts)
            and min(sizes) * len(asked.parts) == asked.size
        ):
            return None
        return "groups", "takes segments of equal size within blocks"

    def groups_of(self, asked: Asked) -> Sequence[Sequence[int]]:
        """Return the tasks of each segment."""
        return [asked.in_pods(group.tasks) for group in asked.parts] or super().groups_of(asked)

    def taken(self, asked: Asked, need: int, left: Left, sizes: Sequence[int]) -> list[Share] | None:
        """Return how many of `need` tasks each machine gets; None if they have to wait."""
        depth = max(d for d in range(left.leaf_depth + 1) if sizes[d] >= need or d == 0)
        inner = min(depth + 1, left.leaf_depth)
        if any(left.levels.depth_of[str(group.within)] > depth for group in asked.parts):
            return None
        most = -(-need // max(1, sizes[inner]))
        block = self._block(left, need, depth, inner, most)
        if block is None:
            return None
        shares, blocks = list[Share](), left.levels.inside(depth, block, inner)
        while need:
            chosen, _ = left.best(need, blocks, inner, last_of_equal=True)
            while need and left.at[inner][chosen]:
                bases = left.levels.inside(inner, chosen, left.leaf_depth)
                base, _ = left.best(need, bases, left.leaf_depth, last_of_equal=True)
                taken = left.take(base, need)
                need -= sum(count for _, count in taken)
                shares += taken
        return shares

    def _block(self, left: Left, need: int, depth: int, inner: int, most: int) -> int | None:
        """Return the block of a depth with the least room that fits; at most `most` blocks inside it may be used."""
        room = left.at[depth]
        blocks: list[int] = np.lexsort((-np.arange(len(room)), room)).tolist()
        for block in blocks[int((room < need).sum()) :]:
            parts = np.sort(left.at[inner][left.levels.inside(depth, block, inner)])[::-1]
            if parts[:most].sum() >= need:
                return block
        return None


def _sizes(job: JobGraph, view: ClusterView, alone: int) -> list[int]:
    """Return for how many `alone` GPUs of a machine the largest domain of each depth has some, from the top down."""
    gpus = [len(its) // alone for its in view.classes.gpus_of]
    chain = view.cluster.topology.derived(LevelChains).of(named_levels(job))
    assert chain is not None  # `engine.requirements` has refused levels that do not nest
    return [sum(gpus), *(int(np.bincount(level.codes, weights=gpus).max()) for level in reversed(chain))]
