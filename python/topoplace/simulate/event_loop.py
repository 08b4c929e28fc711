"""The simulator's event loop, which submits, starts and completes jobs, and asks a policy what to start.

The policy gets all waiting jobs in order of submission; it decides whether younger jobs may overtake the first one. At
equal times completions precede submissions, and submissions precede starts. Ties go to the earlier row of the workload.

Jobs on the same machine (`ColocationModel`) or network link (`LinkModel`) can slow each other down. With these
performance models, a running job's speed changes whenever a neighbour starts or ends; its total work stays the same.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.engine.plan import Plan, QueuedJob
from topoplace.engine.policy import Policy
from topoplace.placement import Refusal
from topoplace.simulate.metrics import JobRecord, Result
from topoplace.simulate.performance.models import FixedTime, PerformanceModel
from topoplace.simulate.progress import Progress
from topoplace.simulate.running_jobs import Running
from topoplace.simulate.workloads.generators import seeded
from topoplace.simulate.workloads.workload import Workload
from topoplace.text_formats.csv_rows import MAX_NUMBER

if TYPE_CHECKING:
    from topoplace.cluster.hosts import GivenHosts
    from topoplace.placement import Placement
    from topoplace.simulate.workloads.submitted_job import SubmittedJob
    from topoplace.topology.topology import Topology


_FOR_EVER = 1 << 30
"""A number of postponements above any policy's limit."""


def simulate(
    topology: Topology,
    workload: Workload,
    policy: Policy,
    *,
    performance: PerformanceModel | None = None,
    seed: int = 0,
    progress: bool = False,
    hosts: GivenHosts | None = None,
) -> Result:
    """Simulate the jobs of `workload` on an initially idle `topology` under `policy`, and return the result.

    hosts: CPUs and memory of the machines, as for `Cluster`; a policy that ignores them allocates none. performance:
    model of run times, `FixedTime()` by default. seed: seed of the random generator that the performance model may use.
    progress: show a progress bar on standard error if the run takes over a second and the package rich is installed.

    A job that the policy rejects, or does not start although it is first in the queue and no job is running, is
    recorded as rejected; the others continue. Raises ValueError if the policy's plan names a job that is not waiting or
    gives a job a wrong number of GPUs, or if a run time of the model is negative or not finite. Raises AllocationError
    if the policy allocates what is not free, or if `hosts` does not match the machines.
    """
    _checks.instance(workload, Workload, "workload", ValueError)
    _checks.instance(policy, Policy, "policy", ValueError)
    _checks.flag(progress, "progress", ValueError)
    model = FixedTime() if performance is None else performance
    _checks.instance(model, PerformanceModel, "performance", ValueError)
    run = _Run(Cluster(topology, hosts), workload, policy, model, seed)
    with Progress(len(workload), enabled=progress) as shown:
        while run.step():
            shown.update(run.num_done)
    return Result(topology, policy.name, tuple(run.records))


class _Run:
    """A simulation in progress; each call of `step` handles all events of one point in time."""

    def __init__(
        self, cluster: Cluster, workload: Workload, policy: Policy, performance: PerformanceModel, seed: int
    ) -> None:
        self.cluster = cluster
        self.policy = policy
        self.performance = performance
        self.random = seeded(seed)
        self.records = [JobRecord(entry) for entry in workload]
        self.by_id = {record.submitted.job_id: record for record in self.records}
        order = sorted(
            self.records, key=lambda record: (record.submitted.submit_time, record.submitted.index)
        )
        self.arrivals = [record.submitted for record in reversed(order)]
        self.queue: dict[str, QueuedJob] = {}
        self.running = Running(cluster.topology, performance)
        self.num_done = 0

    def step(self) -> bool:
        """Handle all events of the next point in time; return False if there is none."""
        now = min(self.running.next_end(), self.arrivals[-1].submit_time if self.arrivals else math.inf)
        if now == math.inf:
            return False
        for record in self.running.ended(now):
            self.cluster.release(record.submitted.job_id)
            self.num_done += 1
        while self.arrivals and self.arrivals[-1].submit_time == now:
            entry = self.arrivals.pop()
            self.queue[entry.job_id] = QueuedJob(entry.job_id, entry.job, entry.submit_time)
        self._schedule(now)
        self.running.update(now)
        return True

    def _schedule(self, now: float) -> None:
        postponed: set[str] = set()
        while self.queue:
            plan = self.policy.plan(tuple(self.queue.values()), self.cluster, now)
            self._follow(plan, now)
            postponed |= {job_id for job_id, _ in plan.defer}
            if self.running or not self.queue:
                break
            if not plan.start and not plan.reject:
                self._force_head(now)
        for job_id in sorted(postponed & self.queue.keys()):
            self._postpone(job_id)

    def _follow(self, plan: Plan, now: float) -> None:
        for job_id, placement in plan.start:
            self._start(self._take_from_queue(job_id), placement, now)
        for job_id, reason in plan.reject:
            self._reject(self._take_from_queue(job_id), reason)
        for job_id, _ in plan.defer:
            self._check_waits(job_id)

    def _force_head(self, now: float) -> None:
        """Start the first waiting job on an idle cluster; if the policy still does not start it, reject it.

        The queue entry states that the job was already deferred more often than any limit, so that the policy does not
        defer it for a better placement.
        """
        head = next(iter(self.queue.values()))
        plan = self.policy.plan((replace(head, postponed=_FOR_EVER),), self.cluster, now)
        self._follow(plan, now)
        if head.job_id in self.queue:
            why = self.policy.explain(head.job, self.cluster, top=1).refusal
            self._reject(self._take_from_queue(head.job_id), why or Refusal("refused on an idle cluster"))

    def _take_from_queue(self, job_id: str) -> JobRecord:
        """Remove a job from the queue and return its record; raise ValueError if it is not in the queue."""
        self._check_waits(job_id)
        del self.queue[job_id]
        return self.by_id[job_id]

    def _postpone(self, job_id: str) -> None:
        entry = self.queue[job_id]
        self.queue[job_id] = replace(entry, postponed=entry.postponed + 1)
        self.by_id[job_id].postponed += 1

    def _check_waits(self, job_id: str) -> None:
        if job_id not in self.queue:
            raise ValueError(f"policy {self.policy.name!r}: {job_id!r} in its plan is not a waiting job")

    def _start(self, record: JobRecord, placement: Placement, now: float) -> None:
        entry = record.submitted
        if len(placement.gpus) != entry.job.num_tasks:
            raise ValueError(
                f"policy {self.policy.name!r}: {len(placement.gpus)} GPUs for {entry.job_id!r}, "
                f"which has {entry.job.num_tasks} tasks"
            )
        self.cluster.allocate(entry.job_id, placement, entry.job)
        record.placement, record.start = placement, now
        record.run_time = self._run_time(entry, placement)
        record.end = now + record.run_time
        self.running.start(record, now)

    def _run_time(self, entry: SubmittedJob, placement: Placement) -> float:
        seconds = self.performance.run_time(entry, placement, self.random)
        what = f"performance: run time of {entry.job_id!r}"
        return _checks.real(seconds, what, ValueError, high=MAX_NUMBER)

    def _reject(self, record: JobRecord, reason: Refusal) -> None:
        record.rejected = reason.reason
        self.num_done += 1
