"""The job in one row of a workload, as the simulator and its performance models see it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from topoplace.jobs.job_graph import JobGraph
from topoplace_lab.simulate.performance.transfers import Transfers

if TYPE_CHECKING:
    from topoplace.placement import Placement


@dataclass(frozen=True, slots=True)
class SubmittedJob:
    """One job of a workload, with times in seconds.

    Args:
        index: The job's row in the workload.
        base_time: The job's run time alone on the best GPUs that it could get.
    """

    index: int
    job_id: str
    job: JobGraph
    submit_time: float
    base_time: float
    transfers: Transfers | None = None
    """Data that the job sends from each of its machines; None if unknown."""
    requested_time: float = field(default=math.nan, compare=False)
    """Run time limit in seconds that the user requested; NaN if unknown, so it is left out of comparisons by `==`."""
    excluded: frozenset[str] = field(default=frozenset(), compare=False)
    """Names of the machines that the job must not get; left out of comparisons by `==`."""
    stated: JobGraph | None = None
    """The elastic job as it was submitted, if `job` has another number of tasks."""

    def with_tasks(self, num_tasks: int) -> Self:
        """Return an elastic job as it runs with another number of tasks, which takes longer in proportion."""
        if num_tasks == self.job.num_tasks:
            return self
        longer = self.job.num_tasks / num_tasks
        return replace(
            self,
            job=self.job.with_tasks(num_tasks),
            base_time=self.base_time * longer,
            requested_time=self.requested_time * longer,
            stated=self.job,
        )

    @property
    def least(self) -> JobGraph:
        """Return the job with the least number of tasks with which it can run."""
        return self.with_tasks(self.job.sizes[-1]).job

    def on(self, placement: Placement) -> Self:
        """Return the job as it runs on a placement, which has its own number of tasks unless the job is elastic."""
        return self if self.job.elastic is None else self.with_tasks(len(placement.gpus))
