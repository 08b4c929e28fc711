"""Build job graphs from the columns of a job list. Equal rows share one object, which policies can cache by."""

from __future__ import annotations

from functools import lru_cache

from topoplace import _checks
from topoplace.jobs.job_graph import PATTERNS, JobGraph


@lru_cache(maxsize=4096)
def job_of(pattern: str, size: int, sensitive: bool, profile: str | None, weight: float = 1.0) -> JobGraph:
    """Build the job graph of a row. weight: weight of every edge."""
    build = PATTERNS.get("clique" if pattern == "all" else pattern)  # MAPA's artifact writes "all"
    if build is None:
        raise ValueError(f"pattern = {_checks.shown(pattern)}, not one of {', '.join(PATTERNS)}")
    job = build(size)
    if weight != 1.0:
        job = JobGraph.from_edges(size, [(a, b, weight) for a, b, _ in job.edges], name=job.name)
    return job.with_(bandwidth_sensitive=sensitive, profile=profile)
