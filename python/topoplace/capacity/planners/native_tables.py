"""Convert problems and nodes to and from the form of the native kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from topoplace import _core
from topoplace.capacity.problem.plan import Node

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from topoplace.capacity.problem.problem import Floats, Problem

NativeNode = tuple[int, list[tuple[int, int]]]
"""A node: its VM type, and (job, GPUs) of its jobs."""


def arrays_of(problem: Problem) -> tuple[NDArray[np.int32], Floats, Floats, Floats, Floats]:
    """Return the cost tables (gpus, open, run, pay, wait) of the kernel.

    Opening a node pays for all its GPUs as idle; each running job refunds the GPUs it uses.
    """
    most: int = problem.hours.shape[2]
    used: Floats = problem.idle * np.arange(1.0, most + 1)
    return (
        problem.num_gpus,
        problem.idle * problem.num_gpus.astype(np.float64),
        np.ascontiguousarray(problem.tardiness - used),
        np.ascontiguousarray(problem.deployment),
        problem.waiting,
    )


def tables_of(problem: Problem) -> _core.CapacityTables:
    """Build the cost tables of a problem as a handle that several calls can share."""
    return _core.CapacityTables(*arrays_of(problem))


def from_native(nodes: Iterable[NativeNode]) -> list[Node]:
    """Convert nodes of the kernel to nodes of a plan."""
    return [Node(vm_type, tuple(jobs)) for vm_type, jobs in nodes]


def to_native(nodes: Iterable[Node]) -> list[NativeNode]:
    """Convert nodes of a plan to nodes of the kernel."""
    return [(node.vm_type, list(node.jobs)) for node in nodes]
