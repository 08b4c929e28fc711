"""All options to run the jobs of a problem, as columns: a row for each possible job, VM type and number of GPUs."""

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
    """Columns with one entry per option, sorted by job, VM type and GPUs. Times are in hours, costs in $."""

    job: Ints
    vm_type: Ints
    gpus: Ints
    hours: Floats
    tardiness: Floats
    deployment: Floats

    @classmethod
    def of(cls, problem: Problem) -> RunOptions:
        """List the options of the problem that have a finite time."""
        job, vm_type, gpus = np.nonzero(np.isfinite(problem.hours))
        at = job, vm_type, gpus
        return cls(job, vm_type, gpus + 1, problem.hours[at], problem.tardiness[at], problem.deployment[at])

    def __len__(self) -> int:
        return len(self.job)

    def nodes(self, chosen: NDArray[np.bool_]) -> list[Node]:
        """Return the nodes that have a job. chosen: (nodes, options), True if the node runs that option."""
        nodes: list[Node] = []
        for row in chosen:
            ways = np.flatnonzero(row)
            if len(ways):
                jobs = zip(self.job[ways].tolist(), self.gpus[ways].tolist(), strict=True)
                nodes.append(Node(int(self.vm_type[ways[0]]), tuple(jobs)))
        return nodes
