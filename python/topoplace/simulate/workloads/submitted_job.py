"""A job of a workload as the simulator and its performance models see it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from topoplace.jobs.job_graph import JobGraph
from topoplace.simulate.performance.transfers import Transfers


@dataclass(frozen=True, slots=True)
class SubmittedJob:
    """One job of a workload: `base_time` is its run time in seconds on the best GPUs it could have."""

    index: int
    job_id: str
    job: JobGraph
    submit_time: float
    base_time: float
    transfers: Transfers | None = None
    """Data that each of its nodes sends; None if unknown."""
    requested_time: float = field(default=math.nan, compare=False)
    """Run time in seconds that the user requested; NaN if unknown. Not compared, as NaN does not equal itself."""
