"""Convert planning problems and nodes (VMs) to and from the form that the C++ kernel uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from topoplace import _core
from topoplace_lab.capacity.problem.plan import Node

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from topoplace_lab.capacity.problem.problem import Floats, Problem

NativeNode = tuple[int, list[tuple[int, int]]]
"""A rented node as the C++ kernel represents it: its VM type, and (job, number of GPUs) of its jobs."""


def arrays_of(problem: Problem) -> tuple[NDArray[np.int32], Floats, Floats, Floats, Floats]:
    """Return a problem's cost tables for the C++ kernel: (gpus, open, run, pay, wait).

    gpus: GPUs of each VM type. open: idle cost of all GPUs of a node of each type. run: tardiness cost of each job by
    type and number of GPUs, minus the idle cost of the GPUs that it uses. pay: price of a node until a job ends. wait:
    cost of letting each job wait. Costs are in the problem's unit of money.
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
    """Return a problem's cost tables as an object of the C++ kernel, which several calls can share."""
    return _core.CapacityTables(*arrays_of(problem))


def from_native(nodes: Iterable[NativeNode]) -> list[Node]:
    """Return nodes in the form of the C++ kernel as nodes of a `Plan`."""
    return [Node(vm_type, tuple(jobs)) for vm_type, jobs in nodes]


def to_native(nodes: Iterable[Node]) -> list[NativeNode]:
    """Return nodes of a `Plan` in the form of the C++ kernel."""
    return [(node.vm_type, list(node.jobs)) for node in nodes]
