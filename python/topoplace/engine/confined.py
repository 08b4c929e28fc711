"""A policy for jobs that may use only some of the machines."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from topoplace.engine.driver import PolicyDriver

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.plan import Explanation, Plan, QueuedJob
    from topoplace.engine.policy import Policy
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement


class Confined:
    """A policy that decides as another one, with some machines drained."""

    def __init__(self, policy: Policy, excluded: Collection[str]) -> None:
        """Store the arguments; `excluded` are the names of the machines that jobs must not get."""
        self._policy = policy
        self._excluded = excluded

    @property
    def name(self) -> str:
        """Return the name of the policy that decides."""
        return self._policy.name

    def place(self, job: JobGraph, cluster: Cluster) -> Placement | None:
        """Return the policy's placement on the other machines; None if nothing fits or waiting is better."""
        with self._drained(cluster):
            return self._policy.place(job, cluster)

    def awaited(self, job: JobGraph, cluster: Cluster) -> JobGraph:
        """Return the job with the limits within which it waits for GPUs; see `PolicyDriver.awaited`."""
        policy = self._policy
        return policy.awaited(job, cluster) if isinstance(policy, PolicyDriver) else job

    def patience(
        self, job: JobGraph, cluster: Cluster, seconds: float, other: Placement | None = None
    ) -> float:
        """Return the seconds that a job waits within these limits; see `PolicyDriver.patience`."""
        policy = self._policy
        with self._drained(cluster):
            return policy.patience(job, cluster, seconds, other) if isinstance(policy, PolicyDriver) else 0.0

    def explain(self, job: JobGraph, cluster: Cluster, top: int = 5) -> Explanation:
        """Return the policy's explanation on the other machines; a reason counts the excluded machines."""
        with self._drained(cluster):
            found = self._policy.explain(job, cluster, top)
        if found.refusal is None:
            return found
        count, excluded = len(cluster.topology.machine_names), len(self._excluded)
        reason = f"{found.refusal.reason}; {excluded} of {count} machines it may not use, and they count as drained"
        if excluded == count:
            reason = f"it may use none of the {count} machines"
        return replace(found, refusal=replace(found.refusal, reason=reason))

    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        """Return the policy's plan on the other machines."""
        with self._drained(cluster):
            return self._policy.plan(queue, cluster, now)

    @contextmanager
    def _drained(self, cluster: Cluster) -> Generator[None]:
        with cluster.what_if():
            for machine in self._excluded:
                cluster.drain(machine)
            yield


def confined(policy: Policy, excluded: Collection[str]) -> Policy:
    """Return a policy that decides as `policy`, but never uses the machines in `excluded`."""
    return Confined(policy, excluded) if excluded else policy
