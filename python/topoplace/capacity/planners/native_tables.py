"""A problem as the native kernel takes it: what nodes and jobs cost."""

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
"""The type, and (job, GPUs) of its jobs."""


def arrays_of(problem: Problem) -> tuple[NDArray[np.int32], Floats, Floats, Floats, Floats]:
    """(gpus, open, run, pay, wait): idle GPUs are paid when a node is opened, and a job that runs gives some back."""
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
    """The handle."""
    return _core.CapacityTables(*arrays_of(problem))


def from_native(nodes: Iterable[NativeNode]) -> list[Node]:
    """As a plan has them."""
    return [Node(vm_type, tuple(jobs)) for vm_type, jobs in nodes]


def to_native(nodes: Iterable[Node]) -> list[NativeNode]:
    """As the kernel has them."""
    return [(node.vm_type, list(node.jobs)) for node in nodes]
