"""Running elastic jobs: which of them grow while no job waits, and which shrink so that a waiting job starts.

An elastic job (`JobGraph.elastic`) starts with as many tasks as fit, and waits for no better GPUs; a policy that does
not decide job after job, such as DRMaestro, starts it as it is in the workload. While no job waits, elastic jobs grow
if they end sooner then, the oldest first. If the first job that waits can start then, they shrink: the youngest first,
and none of a higher priority. After a failure they go on with fewer tasks if there are no GPUs for all.

The base time of a job is that of the R tasks that it has in the workload. With r tasks it does the same work in R / r
times as long; under `StepTime`, only compute takes longer, and communication takes what it takes r tasks. A job writes
a checkpoint before its size changes, and then holds its new GPUs for `Recovery.restart_s` before it goes on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from topoplace.engine.confined import confined
from topoplace.errors import SearchTimeoutError
from topoplace.moving import resize
from topoplace.objectives import link_scores
from topoplace_lab.simulate.scheduling import age

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.policy import Policy
    from topoplace.moving import Reassignment
    from topoplace_lab.simulate.metrics import JobRecord


def resized(record: JobRecord, num_tasks: int, cluster: Cluster) -> Reassignment | None:
    """Return the plan with which a running job goes on with another number of tasks, on machines that it may use.

    None if there is no room, or the job has a requirement that such plans do not honour.
    """
    try:
        with cluster.what_if():
            for machine in record.submitted.excluded:
                cluster.drain(machine)
            job = record.submitted.with_tasks(num_tasks).job
            plan = resize(record.job_id, cluster, job, further=False)
    except (ValueError, SearchTimeoutError):
        return None
    return scored(plan, record)


def scored(plan: Reassignment | None, record: JobRecord) -> Reassignment | None:
    """Return the plan with MAPA's scores of links, which run times may need, if the present placement has them."""
    if plan is None or plan.placement is None or record.placement is None:
        return plan
    after = plan.placement
    if "effective_bandwidth" not in record.placement.scores or after.job is None:
        return plan
    scores = link_scores(after.job.edges, after.gpus, after.topology)
    return replace(plan, placement=replace(after, scores=scores))


class ElasticJobs:
    """The elastic jobs of a simulation."""

    def __init__(self, records: Iterable[JobRecord], policy: Policy, cluster: Cluster) -> None:
        self._records = sorted((record for record in records if record.job.elastic), key=age)
        self._policy = policy
        self._cluster = cluster
        self._stuck: tuple[int, str] | None = None
        """The number of the cluster's changes for which no job made way, and the id of the job that waited."""
        self._full = -1
        """The number of the cluster's changes for which no job could grow."""

    def __bool__(self) -> bool:
        return bool(self._records)

    def larger(
        self, now: float, pause: float, allowed: Callable[[JobRecord, int], bool] | None
    ) -> Iterator[tuple[JobRecord, Reassignment]]:
        """Yield the running jobs for whose further tasks there is room, the oldest first, with the largest plan.

        pause: seconds that it takes; jobs that would not gain as many if they were faster in proportion are left out.
        allowed: whether a job may have a number of tasks; None allows all.
        """
        if self._full == self._cluster.native.num_changes:
            return
        for record in self._running():
            sizes = (n for n in self._growths(record, now, pause) if allowed is None or allowed(record, n))
            plans = (resized(record, size, self._cluster) for size in sizes)
            if plan := next(filter(None, plans), None):
                yield record, plan
        self._full = self._cluster.native.num_changes

    def _growths(self, record: JobRecord, now: float, pause: float) -> Iterator[int]:
        """Yield the sizes to which a running job may gain by growing on free GPUs, the largest first."""
        held = len(self._cluster.gpus_of(record.job_id))
        for size in record.job.sizes:
            gain = (record.end - now) * (size - held) / size
            if gain > pause and size - held <= self._cluster.num_free:
                yield size

    def making_way(self, head: JobRecord) -> list[tuple[JobRecord, Reassignment]]:
        """Return plans with which jobs shrink so that the first job that waits can start with its least size.

        The youngest shrink first, to their least size but for the last one, which keeps what it can. There are no plans
        if the job could start without, or not even with all of them.
        """
        now = self._cluster.native.num_changes, head.job_id
        if now == self._stuck:
            return []
        self._stuck = now
        plans: list[tuple[JobRecord, Reassignment]] = []
        with self._cluster.what_if():
            if self._has_room(head):
                return []
            for record in reversed(list(self._running())):
                for plan in self._smaller(record, head):
                    if self._has_room(head, plan):
                        return [*plans, (record, plan)]
                    if plan.placement and len(plan.placement.gpus) == record.job.sizes[-1]:
                        plan.carry_out(self._cluster)
                        plans.append((record, plan))
        return []

    def _has_room(self, head: JobRecord, plan: Reassignment | None = None) -> bool:
        """Return True if a job could start with its least size, after a plan."""
        policy = confined(self._policy, head.submitted.excluded)
        with self._cluster.what_if():
            if plan is not None:
                plan.carry_out(self._cluster)
            return policy.place(head.submitted.least, self._cluster) is not None

    def _smaller(self, record: JobRecord, head: JobRecord) -> Iterator[Reassignment]:
        """Yield plans for fewer tasks of a running job, the most first: those that free enough GPUs, and the least."""
        if record.job.priority > head.job.priority:
            return
        held, least = len(self._cluster.gpus_of(record.job_id)), record.job.sizes[-1]
        enough = self._cluster.num_free + held - head.submitted.least.num_tasks
        for size in record.job.sizes:
            if size < held and (size <= enough or size == least):
                plan = resized(record, size, self._cluster)
                if plan is not None:
                    yield plan

    def _running(self) -> Iterator[JobRecord]:
        return (record for record in self._records if self._cluster.runs(record.job_id))
