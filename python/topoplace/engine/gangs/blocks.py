"""A gang on its machines: assign tasks to machines with the least communication between them, then order them inside
each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace import kernels

if TYPE_CHECKING:
    from topoplace.engine.gangs.inner_orders import InnerOrders
    from topoplace.engine.machines.machine_class import Mask
    from topoplace.jobs.job_graph import JobGraph

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
