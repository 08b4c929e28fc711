"""The queues of a simulation: one follows a policy's plans, the other starts jobs as they are decided."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from topoplace.engine.driver import queue_walk
from topoplace.engine.plan import FOR_EVER, Explanation, Plan, QueuedJob, check_answer
from topoplace.placement import Placement, Refusal
from topoplace_lab.simulate.disciplines.live_queue import Decided, LiveQueue
from topoplace_lab.simulate.metrics import JobRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.policy import Policy
    from topoplace.jobs.job_graph import JobGraph
    from topoplace_lab.simulate.disciplines.live_queue import LiveRule


class Queue(Protocol):
    """The jobs that wait in a simulation, and the policy that decides about them."""

    num_waiting: int

    @property
    def head(self) -> JobRecord | None:
        """Return the first job that waits for GPUs; None if there is none."""
        ...

    @property
    def wakes(self) -> float:
        """Return the time in seconds of the next decision even if no job arrives or ends; infinity for never."""
        ...

    def runs(self, record: JobRecord) -> None:
        """Record a job that runs before time 0 and is never moved."""
        ...

    def submit(self, job: JobRecord) -> None:
        """Add a job behind all others; one that ran before goes to its place in the order of submission."""
        ...

    def decide(self, now: float) -> Decided[JobRecord]:
        """Ask the policy about all jobs at time `now` (seconds); remove and return jobs that start or are rejected."""
        ...

    def force_head(self, now: float) -> Decided[JobRecord]:
        """Start the first job on an idle cluster at time `now` (seconds); reject it if the policy does not start it.

        The job counts as deferred more often than any limit, so that the policy does not defer it for a better
        placement.
        """
        ...

    def count_deferred(self) -> None:
        """Count one postponement for each job that was deferred since the last call and still waits."""
        ...


def queue_of(policy: Policy, cluster: Cluster) -> Queue:
    """Return an empty queue: a `StartedQueue` for policies of the engine, a `PlannedQueue` for others."""
    rule = queue_walk(policy, cluster)
    return PlannedQueue(policy, cluster) if rule is None else StartedQueue(rule, policy, cluster)


class PlannedQueue:
    """A queue that follows the plans of any policy, which may move and pre-empt running jobs."""

    wakes = math.inf

    def __init__(self, policy: Policy, cluster: Cluster) -> None:
        self.num_waiting = 0
        self._policy = policy
        self._cluster = cluster
        self._jobs: dict[str, QueuedJob] = {}
        self._records: dict[str, JobRecord] = {}
        self._deferred: set[str] = set()
        self._staying: set[str] = set()

    @property
    def head(self) -> JobRecord | None:
        """Return the first job; None if there is none."""
        return next(iter(self._records.values()), None)

    def runs(self, record: JobRecord) -> None:
        """Record a job that runs before time 0; ValueError if a plan later moves or pre-empts it."""
        self._staying.add(record.job_id)

    def submit(self, job: JobRecord) -> None:
        """Add a job at its place in the order of submission."""
        entry, youngest = job.submitted, next(reversed(self._records.values()), None)
        self._jobs[entry.job_id] = QueuedJob(
            entry.job_id, entry.job, entry.submit_time, requested_time=entry.requested_time
        )
        self._records[entry.job_id] = job
        self.num_waiting += 1
        if youngest is not None and age(job) < age(youngest):
            self._records = dict(sorted(self._records.items(), key=lambda item: age(item[1])))
            self._jobs = {job_id: self._jobs[job_id] for job_id in self._records}

    def decide(self, now: float) -> Decided[JobRecord]:
        """Follow the policy's plan for all jobs at time `now`, in seconds.

        PolicyError if the policy answers with no `Plan`. ValueError if the plan names a job that is not waiting, or
        gives a job a wrong number of GPUs.
        """
        plan = _planned(self._policy, tuple(self._jobs.values()), self._cluster, now)
        decided = self._follow(plan)
        self._deferred |= {job_id for job_id, _ in plan.defer}
        return decided

    def force_head(self, now: float) -> Decided[JobRecord]:
        """Start the first job on an idle cluster at time `now`, in seconds, or reject it."""
        head = next(iter(self._jobs.values()))
        decided = self._follow(_forced(head, self._policy, self._cluster, now))
        if head.job_id in self._jobs:
            record = self._take(head.job_id)
            reason = why_not(record.submitted.least, self._policy, self._cluster)
            decided.reject.append((record, reason))
        return decided

    def count_deferred(self) -> None:
        """Count one postponement for each job that was deferred since the last call and still waits."""
        for job_id in self._deferred & self._jobs.keys():
            entry = self._jobs[job_id]
            self._jobs[job_id] = replace(entry, postponed=entry.postponed + 1)
            self._records[job_id].postponed += 1
        self._deferred.clear()

    def _follow(self, plan: Plan) -> Decided[JobRecord]:
        decided: Decided[JobRecord] = Decided([], [], plan.move, plan.preempt)
        self._rearrange(plan)
        for job_id, placement in plan.start:
            record = self._take(job_id)
            _allocate(job_id, record.job, placement, self._policy, self._cluster)
            decided.start.append((record, placement))
        decided.reject.extend((self._take(job_id), reason) for job_id, reason in plan.reject)
        for job_id, _ in plan.defer:
            self._check_waits(job_id)
        return decided

    def _rearrange(self, plan: Plan) -> None:
        """Move and pre-empt running jobs; ValueError if the plan names one that does not run."""
        leaving = (*plan.preempt, *(job_id for job_id, _ in plan.move))
        for job_id in leaving:
            if job_id in self._staying:
                raise ValueError(
                    f"policy {self._policy.name!r}: {job_id!r} in its plan runs since before time 0, and stays"
                )
            if not self._cluster.runs(job_id):
                raise ValueError(f"policy {self._policy.name!r}: {job_id!r} in its plan is not a running job")
        jobs = {job_id: self._cluster.jobs[job_id] for job_id, _ in plan.move}
        for job_id in leaving:
            self._cluster.release(job_id)
        for job_id, placement in plan.move:
            _allocate(job_id, jobs[job_id], placement, self._policy, self._cluster)

    def _take(self, job_id: str) -> JobRecord:
        """Remove a job and return its record; raise ValueError if it does not wait."""
        self._check_waits(job_id)
        del self._jobs[job_id]
        self.num_waiting -= 1
        return self._records.pop(job_id)

    def _check_waits(self, job_id: str) -> None:
        if job_id not in self._jobs:
            raise ValueError(f"policy {self._policy.name!r}: {job_id!r} in its plan is not a waiting job")


class StartedQueue(LiveQueue[JobRecord]):
    """A queue that starts jobs as a policy of the engine decides them, with the same decisions as `PlannedQueue`.

    These policies pre-empt no jobs, so each submitted job is younger than all others, but for those that failed or made
    way for a repair.
    """

    def __init__(self, rule: LiveRule, policy: Policy, cluster: Cluster) -> None:
        super().__init__(rule)
        self._policy = policy
        self._cluster = cluster
        self._number_of: dict[str, int] = {}

    def submit(self, job: JobRecord) -> None:
        """Add a job at its place in the order of submission."""
        if job.history is None:
            self._number_of[job.job_id] = self._next_number
            super().submit(job)
        else:
            self.put_back(self._number_of[job.job_id], job)

    def runs(self, record: JobRecord) -> None:
        """Do nothing: these policies move no job."""

    def force_head(self, now: float) -> Decided[JobRecord]:
        """Start the first job on an idle cluster at time `now`, in seconds, or reject it."""
        record = self.take_head()
        head = QueuedJob(record.job_id, record.job, record.submitted.submit_time)
        plan = _forced(head, self._policy, self._cluster, now)
        for _, placement in plan.start:
            _allocate(record.job_id, record.job, placement, self._policy, self._cluster)
            return Decided([(record, placement)], [])
        least = record.submitted.least
        reason = plan.reject[0][1] if plan.reject else why_not(least, self._policy, self._cluster)
        return Decided([], [(record, reason)])


def _planned(policy: Policy, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
    """Return the policy's plan for waiting jobs; PolicyError if it returns something else."""
    plan = policy.plan(queue, cluster, now)
    check_answer(plan, Plan, policy, "plan")
    return plan


def _forced(head: QueuedJob, policy: Policy, cluster: Cluster, now: float) -> Plan:
    return _planned(policy, (replace(head, postponed=FOR_EVER),), cluster, now)


def why_not(job: JobGraph, policy: Policy, cluster: Cluster) -> Refusal:
    """Return why the policy does not start a job on an idle cluster."""
    explained = policy.explain(job, cluster, top=1)
    check_answer(explained, Explanation, policy, "explain")
    return explained.refusal or Refusal("refused on an idle cluster")


def age(record: JobRecord) -> tuple[float, int]:
    """Return the sort key of a job by its submission; the oldest is first."""
    return record.submitted.submit_time, record.submitted.index


def _allocate(job_id: str, job: JobGraph, placement: Placement, policy: Policy, cluster: Cluster) -> None:
    """Allocate a placement of a plan; ValueError if it does not have one GPU per task, PolicyError if it is none."""
    check_answer(placement, Placement, policy, "plan")
    if job.elastic is not None and len(placement.gpus) in job.sizes:
        job = job.with_tasks(len(placement.gpus))
    if len(placement.gpus) != job.num_tasks:
        raise ValueError(
            f"policy {policy.name!r}: {len(placement.gpus)} GPUs for {job_id!r}, which has {job.num_tasks} tasks"
        )
    cluster.allocate(job_id, placement, job)
