"""What a waiting job asks a policy for: the GPUs that the policy lets it wait for, and after a while any."""

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
    """Return the job with the limits within which the policy lets it wait; itself if it waits for nothing."""
    return policy.awaited(job, cluster) if isinstance(policy, (PolicyDriver, Confined)) else job


def patience(
    job: JobGraph, policy: Policy, cluster: Cluster, seconds: float, other: Placement | None = None
) -> float:
    """Return for how many seconds a job waits for a place within these limits.

    seconds: its expected run time. other: where it would start else; None for the best place on an idle cluster.
    """
    if not isinstance(policy, (PolicyDriver, Confined)):
        return 0.0
    return policy.patience(job, cluster, seconds, other)
