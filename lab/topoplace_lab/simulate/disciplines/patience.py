"""The GPUs for which a policy lets a job wait, and how long; after that, the job takes any GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topoplace.engine.confined import Confined
from topoplace.engine.driver import PolicyDriver

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.policy import Policy
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement


def awaited(job: JobGraph, policy: Policy, cluster: Cluster) -> JobGraph:
    """Return the job with the limits within which the policy lets it wait, or the job itself if there are none.

    An elastic job does not wait for certain GPUs: it starts where it fits.
    """
    if job.elastic is not None or not isinstance(policy, (PolicyDriver, Confined)):
        return job
    return policy.awaited(job, cluster)


def patience(
    job: JobGraph, policy: Policy, cluster: Cluster, seconds: float, other: Placement | None = None
) -> float:
    """Return for how many seconds a job waits for a place within the limits of `awaited`.

    seconds: the job's expected run time. other: its place if it does not wait; None for the best place on an idle
    cluster.
    """
    if not isinstance(policy, (PolicyDriver, Confined)):
        return 0.0
    return policy.patience(job, cluster, seconds, other)
