"""A gang on its machines: assign tasks to machines with the least communication between them, then order them inside
each. The order inside a machine is computed once for each part of a job.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace import kernels
from topoplace.engine.machines.machine_class import Mask, members
from topoplace.engine.memo import Memo

if TYPE_CHECKING:
    from topoplace.engine.machines.machine_class import Mask
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.kernels import TargetDistance

_MAX_SIZE = 1 << 22
"""Limit on tasks times machines; above it, the kernel takes too much memory."""
_STARTED_TASKS = 1024
"""Tasks that are bisected over all starts, of which there are two to four."""


class Block(NamedTuple):
    """The GPUs of one machine that a gang may use."""

    gpus: Sequence[int]
    """The machine's GPUs."""
    usable: Mask
    """The usable ones of these GPUs, by their local numbers."""
    orders: InnerOrders


class BlockAssignment(NamedTuple):
    """The GPU of each task of a gang."""

    gpus: list[int]
    is_least: bool
    """True if no assignment to these GPUs costs less, with these distances."""


def in_blocks(job: JobGraph, blocks: Sequence[Block], between: NDArray[np.float64]) -> BlockAssignment | None:
    """Return the assignment of lowest communication cost found on these machines; None if the problem is too large.

    blocks: machines with room for the job; machines near each other should be near in the list. between: (b, b)
    distances between GPUs of different machines; the diagonal is ignored.
    """
    if job.num_tasks * len(blocks) > _MAX_SIZE:
        return None
    distance = between.copy()
    np.fill_diagonal(distance, [block.orders.nearest(block.usable) for block in blocks])
    room = [block.usable.bit_count() for block in blocks]
    starts = min(max(_STARTED_TASKS // job.num_tasks, 2), 4)
    found = kernels.distribute(job.graph, room, distance, starts=starts)
    assert found is not None  # the blocks have room
    gpus, is_least = _ordered_inside(job, blocks, found.block_of)
    return BlockAssignment(gpus, found.optimal and is_least)


def _ordered_inside(
    job: JobGraph, blocks: Sequence[Block], block_of: NDArray[np.int32]
) -> tuple[list[int], bool]:
    """Return the GPU of each task, and True if all edges inside blocks are as short as possible."""
    by_block = np.argsort(block_of, kind="stable")
    first = np.searchsorted(block_of[by_block], np.arange(len(blocks) + 1))
    place = np.empty(job.num_tasks, dtype=np.int64)
    place[by_block] = np.arange(job.num_tasks) - first[block_of[by_block]]
    a, b = job.edge_array[:, :2].astype(np.int64).T
    inside = np.flatnonzero(block_of[a] == block_of[b])
    inside = inside[np.argsort(block_of[a[inside]], kind="stable")]
    edges = job.edge_array[inside]
    edges[:, 0], edges[:, 1] = place[a[inside]], place[b[inside]]
    first_edge = np.searchsorted(block_of[a[inside]], np.arange(len(blocks) + 1))
    gpus, is_least = [0] * job.num_tasks, True
    tasks: list[int] = by_block.tolist()
    for i, block in enumerate(blocks):
        mine = tasks[first[i] : first[i + 1]]
        if mine:
            order = block.orders.of(block.usable, len(mine), edges[first_edge[i] : first_edge[i + 1]])
            is_least = is_least and order.is_least
            for task, local in zip(mine, order.gpus, strict=True):
                gpus[task] = block.gpus[local]
    return gpus, is_least


_EXACT_GPUS = 8
"""Largest number of usable GPUs for which the order is found by exact search; above it, by bisection."""
_ROUNDING = 1e-9


class InnerOrder(NamedTuple):
    """The GPUs of the tasks of one part."""

    gpus: tuple[int, ...]
    """The GPU of each task, by its local number."""
    is_least: bool
    """True if all tasks that communicate are as near as any two usable GPUs."""


class InnerOrders:
    """The orders inside machines with equal hardware; GPUs have local numbers."""

    def __init__(self, distance: NDArray[np.float64], target: TargetDistance | None = None) -> None:
        """Store the (n, n) distances between the GPUs. target: the distances to minimise; None means these."""
        self._distance = distance
        self._target = kernels.TargetDistance(distance) if target is None else target
        self._nearest: dict[Mask, float] = {}
        self._orders: Memo[tuple[Mask, int, bytes], InnerOrder] = Memo()

    def nearest(self, usable: Mask) -> float:
        """Return the smallest distance between two of these GPUs; 0 if there is only one."""
        if usable not in self._nearest:
            gpus = list(members(usable))
            among = self._distance[np.ix_(gpus, gpus)][~np.eye(len(gpus), dtype=np.bool_)]
            self._nearest[usable] = float(among.min(initial=np.inf)) if len(gpus) > 1 else 0.0
        return self._nearest[usable]

    def of(self, usable: Mask, num_tasks: int, edges: NDArray[np.float64]) -> InnerOrder:
        """Return the order of least cost found on these GPUs, at least one for each of the tasks.

        edges: (m, 3) task, task and weight of each edge inside the part.
        """
        key = usable, num_tasks, edges.tobytes()
        known = self._orders.get(key)
        if known is None:
            known = self._orders[key] = self._found(usable, num_tasks, edges)
        return known

    def _found(self, usable: Mask, num_tasks: int, edges: NDArray[np.float64]) -> InnerOrder:
        free = list(members(usable))
        if not len(edges):
            return InnerOrder(tuple(free[:num_tasks]), True)
        graph = kernels.Graph.from_edges(num_tasks, edges)
        found = kernels.map_graph(
            graph, self._target, method="exact" if len(free) <= _EXACT_GPUS else "drb", free=free
        )
        assert found is not None  # there is a GPU for each task
        gpus = found.target_of
        a, b = edges[:, :2].astype(np.int64).T
        cost = float((edges[:, 2] * self._distance[gpus[a], gpus[b]]).sum())
        least = self.nearest(usable) * float(edges[:, 2].sum())
        return InnerOrder(tuple(gpus.tolist()), cost <= least * (1 + _ROUNDING))
