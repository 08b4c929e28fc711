"""The GPU of each task of a part of a job inside one machine, computed once for each part."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace import kernels
from topoplace.engine.machines.machine_class import Mask, members
from topoplace.engine.memo import Memo

if TYPE_CHECKING:
    from topoplace.kernels import TargetDistance

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
