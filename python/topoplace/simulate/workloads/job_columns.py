"""Job graphs of the rows of a job list; equal rows get the same object, for which policies can cache results."""

from __future__ import annotations

from functools import lru_cache

from topoplace import _checks
from topoplace.jobs.job_graph import PATTERNS, JobGraph


@lru_cache(maxsize=4096)
def job_of(pattern: str, size: int, sensitive: bool, profile: str | None, weight: float = 1.0) -> JobGraph:
    """Return the job graph for one row of a job list, cached.

    pattern: name of the communication pattern, such as ring. size: number of tasks. sensitive: True if bandwidth
    sensitive. profile: name of the job's measured profile. weight: weight of every edge. ValueError for an unknown
    pattern or an impossible size.
    """
    build = PATTERNS.get("clique" if pattern == "all" else pattern)  # MAPA's artifact writes "all"
    if build is None:
        raise ValueError(f"pattern = {_checks.shown(pattern)}, not one of {', '.join(PATTERNS)}")
    job = build(size)
    if weight != 1.0:
        job = JobGraph.from_edges(size, [(a, b, weight) for a, b, _ in job.edges], name=job.name)
    return job.with_(bandwidth_sensitive=sensitive, profile=profile)
