"""The ways in which jobs of a problem can run, as columns of numbers: one per job, type and number of GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from topoplace.capacity.problem.plan import Node

if TYPE_CHECKING:
    from topoplace.capacity.planners.highs_model import Ints
    from topoplace.capacity.problem.problem import Floats, Problem


@dataclass(frozen=True, slots=True, eq=False)
class RunOptions:
    """All arrays are (ways,), in the order of job, type, GPUs."""

    job: Ints
    vm_type: Ints
    gpus: Ints
    hours: Floats
    tardiness: Floats
    deployment: Floats

    @classmethod
    def of(cls, problem: Problem) -> RunOptions:
        """Those with a finite time."""
        job, vm_type, gpus = np.nonzero(np.isfinite(problem.hours))
        at = job, vm_type, gpus
        return cls(job, vm_type, gpus + 1, problem.hours[at], problem.tardiness[at], problem.deployment[at])

    def __len__(self) -> int:
        return len(self.job)

    def nodes(self, chosen: NDArray[np.bool_]) -> list[Node]:
        """Of `chosen` (nodes, ways): the nodes that have a job."""
        nodes: list[Node] = []
        for row in chosen:
            ways = np.flatnonzero(row)
            if len(ways):
                jobs = zip(self.job[ways].tolist(), self.gpus[ways].tolist(), strict=True)
                nodes.append(Node(int(self.vm_type[ways[0]]), tuple(jobs)))
        return nodes
