"""Data that policies derive from a cluster, kept up to date: requests, conditions of machines, columns and tables."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from topoplace.engine.machines.machine_class import MachineClasses
from topoplace.engine.machines.machine_conditions import Conditions, MachineState, Sight
from topoplace.engine.memo import Memo
from topoplace.engine.request import JobRequest, exact_request_key, request_key

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.machines.decided_job import DecidedJob
    from topoplace.jobs.job_graph import JobGraph

Built = TypeVar("Built")
_MAX_REQUESTS = 1 << 14
_MAX_DECIDED = 1 << 10
_MAX_POLICIES = 1 << 6
_MAX_TABLES = 1 << 11
"""Maximum number of cached tables, about one per request and policy; beyond it the oldest are dropped."""


class ClusterView:
    """Tables derived from a cluster that follow its changes (`Cluster.view`); one object serves all policies."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._conditions: dict[Sight, Conditions] = {}
        self._tables: Memo[Hashable, Any] = Memo(_MAX_TABLES)
        self._requests: Memo[Hashable, JobRequest] = Memo(_MAX_REQUESTS, self._forgot_requests)
        self._request_of: Memo[tuple[int, bool], tuple[JobGraph, JobRequest]] = Memo()
        self.decided: Memo[Hashable, DecidedJob] = Memo(_MAX_DECIDED)
        """Jobs that were decided before, by policy, its `split`, and the identity of the job's graph."""
        self.plain_jobs: Memo[Hashable, Any] = Memo(_MAX_POLICIES)
        """What decides jobs in few calls, by policy and its options."""

    # ---- jobs ----------------------------------------------------------------------------------------------

    def request(self, job: JobGraph) -> JobRequest:
        """Return the `JobRequest` of a job; jobs with equal `request_key` share one object."""
        known = self._request_of.get((id(job), False))  # holds the job, so that no other gets its id
        return self._shared_request(job, request_key, exact=False) if known is None else known[1]

    def exact_request(self, job: JobGraph) -> JobRequest:
        """Return the `JobRequest` of a job; only jobs that no policy distinguishes share one object."""
        return self._shared_request(job, exact_request_key, exact=True)

    def _shared_request(
        self, job: JobGraph, key_of: Callable[[JobGraph], Hashable], *, exact: bool
    ) -> JobRequest:
        known = self._request_of.get((id(job), exact))  # holds the job, so that no other gets its id
        if known is None:
            request = self._requests.get_or_build(key_of(job), lambda: JobRequest(job, self.cluster.topology))
            known = self._request_of[id(job), exact] = (job, request)
        return known[1]

    # ---- machines ------------------------------------------------------------------------------------------

    @cached_property
    def classes(self) -> MachineClasses:
        """Return the topology's machines, grouped into classes of interchangeable hardware."""
        return self.cluster.topology.derived(MachineClasses)

    def conditions(self, sight: Sight) -> Conditions:
        """Return the machines' conditions for a rule of this sight; machines that look the same share one."""
        known = self._conditions.get(sight)
        if known is None:
            known = self._conditions[sight] = Conditions(self.cluster, self.classes, sight)
        return known

    def state(self, machine: int) -> MachineState:
        """Return the present state of machine number `machine`, with the jobs on it."""
        return self.conditions(Sight(jobs=True)).of_machine(machine)[1]

    @cached_property
    def idle(self) -> ClusterView:
        """Return the view of an equal cluster without jobs, with all GPUs and machines in service."""
        unhealthy = self.cluster.topology.unhealthy_gpus
        if not unhealthy:
            return self.without_jobs
        idle = self._new_cluster()
        idle.native.set_unhealthy(unhealthy, unhealthy=False)
        return idle.view(ClusterView)

    @cached_property
    def without_jobs(self) -> ClusterView:
        """Return `idle`, but with the GPUs that are unhealthy in the topology out of service."""
        return self._new_cluster().view(ClusterView)

    def _new_cluster(self) -> Cluster:
        cluster = self.cluster
        return type(cluster)(cluster.topology, cluster.hosts.resources or None, classes=cluster.classes)

    @cached_property
    def pool_of(self) -> list[int]:
        """Return the number of each machine's GPU pool; the GPUs of a pool are local to all its machines."""
        pools: list[int] = self.cluster.hosts.pool_of().tolist()
        return pools

    # ---- tables --------------------------------------------------------------------------------------------

    def table(self, key: Hashable, build: Callable[[], Built]) -> Built:
        """Return the result of `build`, cached under `key`.

        The oldest objects are dropped if there are too many.
        """
        found: Built = self._tables.get_or_build(key, build)
        return found

    def _forgot_requests(self) -> None:
        self._request_of.clear()
