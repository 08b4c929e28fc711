"""The job in one row of a workload, as the simulator and its performance models see it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from topoplace.jobs.job_graph import JobGraph
from topoplace_lab.simulate.performance.transfers import Transfers


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
