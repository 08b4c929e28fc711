"""All options to run the jobs of a planning problem; an option is a job with a VM type and a number of GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from topoplace_lab.capacity.problem.plan import Node

if TYPE_CHECKING:
    from topoplace_lab.capacity.planners.highs_model import Ints
    from topoplace_lab.capacity.problem.problem import Floats, Problem


@dataclass(frozen=True, slots=True, eq=False)
class RunOptions:
    """All options to run jobs (a job, a VM type, a number of GPUs) as arrays with one entry per option.

    Options are sorted by job, VM type and GPUs. hours: run time. tardiness: tardiness cost. deployment: price of the
    node until the job ends. Costs are in the problem's unit of money, $ unless it was rescaled.
    """

    job: Ints
    vm_type: Ints
    gpus: Ints
    hours: Floats
    tardiness: Floats
    deployment: Floats

    @classmethod
    def of(cls, problem: Problem) -> RunOptions:
        """Return the options of a problem: each job with every VM type and number of GPUs on which it can run."""
        job, vm_type, gpus = np.nonzero(np.isfinite(problem.hours))
        at = job, vm_type, gpus
        return cls(job, vm_type, gpus + 1, problem.hours[at], problem.tardiness[at], problem.deployment[at])

    def __len__(self) -> int:
        return len(self.job)

    def nodes(self, chosen: NDArray[np.bool_]) -> list[Node]:
        """Return the nodes that run at least one option, as nodes of a plan.

        chosen: (nodes, options) array, True if the node runs the option.
        """
        nodes: list[Node] = []
        for row in chosen:
            ways = np.flatnonzero(row)
            if len(ways):
                jobs = zip(self.job[ways].tolist(), self.gpus[ways].tolist(), strict=True)
                nodes.append(Node(int(self.vm_type[ways[0]]), tuple(jobs)))
        return nodes
