"""The simulator's event loop, which submits, starts and completes jobs, and asks a policy what to start.

The policy gets all waiting jobs in order of submission; it decides whether younger jobs may overtake the first one. At
equal times completions precede failures, failures submissions, and submissions starts. Ties go to the earlier row of
the workload.

Jobs on the same ports (`PortModel`), machine (`ColocationModel`) or link (`LinkModel`) can slow each other down. With
these performance models, a running job's speed changes whenever a neighbour starts or ends; its total work stays the
same.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from topoplace import _checks
from topoplace._progress import Progress
from topoplace.cluster.cluster import Cluster
from topoplace.engine.policy import Policy
from topoplace.text_formats.csv_rows import MAX_NUMBER
from topoplace_lab.simulate.beginning import Beginning, cluster_of, running_before
from topoplace_lab.simulate.disciplines.discipline import Discipline, DisciplineQueue
from topoplace_lab.simulate.elastic_jobs import ElasticJobs
from topoplace_lab.simulate.failures import Failures, Outages
from topoplace_lab.simulate.interruptions import History, MoveTimes
from topoplace_lab.simulate.metrics import JobRecord, Result
from topoplace_lab.simulate.monitoring import Monitoring, monitoring
from topoplace_lab.simulate.performance.models import PerformanceModel
from topoplace_lab.simulate.performance.step_time import StepTime
from topoplace_lab.simulate.recovery import Recovery
from topoplace_lab.simulate.running_jobs import running_jobs
from topoplace_lab.simulate.scheduling import Queue, age, queue_of
from topoplace_lab.simulate.ticks import Ticks
from topoplace_lab.simulate.workloads.generators import seeded
from topoplace_lab.simulate.workloads.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from topoplace.cluster.hosts import GivenHosts
    from topoplace.moving import Reassignment
    from topoplace.placement import Placement
    from topoplace.topology.topology import Topology
    from topoplace_lab.simulate.disciplines.live_queue import Decided
    from topoplace_lab.simulate.failures import Strike
    from topoplace_lab.simulate.workloads.submitted_job import SubmittedJob
    from topoplace_lab.telemetry import Observer

_MOST_FAILURES: Final = 10_000
"""The largest number of failures between two ends of jobs."""


def simulate(
    topology: Topology | Cluster,
    workload: Workload,
    policy: Policy,
    *,
    performance: PerformanceModel | None = None,
    seed: int = 0,
    progress: bool = False,
    hosts: GivenHosts | None = None,
    decide_every: float | None = None,
    observer: Observer | None = None,
    measure_every: float | None = None,
    move_times: MoveTimes | None = None,
    discipline: Discipline | None = None,
    seconds_left: Mapping[str, float] | None = None,
    failures: Failures | None = None,
    recovery: Recovery | None = None,
) -> Result:
    """Simulate the jobs of `workload` under `policy` on an idle `topology`, or on a cluster, and return the result.

    On a cluster, which does not change, running jobs keep their GPUs until they end; they slow others down, but are in
    no figure. Jobs that would not fit even after the last end are rejected at once.
    A plan may move running jobs, which keep their work, and pre-empt them: back to their place in the queue. A job that
    the policy rejects, or does not start although it is first in the queue and no job runs, is recorded as rejected.
    Elastic jobs grow and shrink; see `simulate.elastic_jobs`.

    Args:
        hosts: CPUs and memory of the machines, as for `Cluster`; a policy that ignores them allocates none.
        performance: Model of run times, `StepTime()` by default: steps that compute and communicate.
        seed: Seed of the failures, which are the same for all policies, and of what the performance model draws.
        progress: Show a bar on standard error if the run takes over a second, and rich is installed.
        decide_every: Ask the policy at multiples of this many seconds while jobs wait; None asks it at each event.
        observer: Gets each run that ends (`finished`), and each running job's network load every `measure_every`
            seconds while jobs run (`measured`). It may be the policy itself.
        move_times: How long a move or a pre-emption takes, and whether work is kept; `MoveTimes()` by default.
        discipline: Which job is next, and which may overtake; the policy then only decides where a job goes. None
            takes the policy's own order.
        seconds_left: Seconds until each job that runs on the cluster ends, by id; others never end.
        failures: How often parts fail. That stops the jobs on a part, which is out of service until it is repaired.
        recovery: How jobs then go on, and what a change of size takes; `Recovery()` by default.

    Raises:
        TypeError: If the policy's `plan` returns something that is no `Plan`.
        ValueError: A plan names a job that does not wait, gives one a wrong number of GPUs, or moves or pre-empts one
            that does not run; a run time is negative or not finite; `decide_every` or `measure_every` is too small for
            the clock; `observer` and `measure_every` are not given together, with a `MeteredModel`; `seconds_left`
            names a job that does not run; jobs exclude machines without a discipline; parts fail, and jobs have no
            GPUs, run before, or never end.
        AllocationError: If the policy allocates what is not free, or if `hosts` does not match the machines.
    """
    _checks.flag(progress, "progress", ValueError)
    model = StepTime() if performance is None else performance
    run = _begun(topology, hosts, workload, policy, model, seed, discipline, seconds_left)
    run.let_fail(failures, recovery, seed)
    run.monitoring = monitoring(observer, measure_every, model)
    run.ticks = None if decide_every is None else Ticks(decide_every, "decide_every")
    run.move_times = MoveTimes() if move_times is None else move_times
    _checks.instance(run.move_times, MoveTimes, "move_times", ValueError)
    run.to_end(progress=progress)
    return Result(run.cluster.topology, policy.name, tuple(run.records), seed)


def _begun(
    where: Topology | Cluster,
    hosts: GivenHosts | None,
    workload: Workload,
    policy: Policy,
    model: PerformanceModel,
    seed: int,
    discipline: Discipline | None,
    seconds_left: Mapping[str, float] | None,
) -> _Run:
    """Return a simulation at time 0."""
    _checks.instance(workload, Workload, "workload", ValueError)
    _checks.instance(policy, Policy, "policy", ValueError)
    _checks.instance(model, PerformanceModel, "performance", ValueError)
    if discipline is not None:
        _checks.instance(discipline, Discipline, "discipline", ValueError)
    elif any(workload.excluded):
        row = next(row for row, names in enumerate(workload.excluded) if names)
        raise ValueError(
            f"discipline = None: excluded[{row}] needs a discipline, as plans know no such limit"
        )
    cluster = cluster_of(where, hosts)
    run = _Run(cluster, workload, policy, model, seed, discipline)
    if isinstance(where, Cluster):
        run.begin(Beginning(running_before(cluster, seconds_left, workload), policy, cluster))
    elif seconds_left is not None:
        raise ValueError("seconds_left: on an idle topology no job runs")
    return run


class _Run:
    """A simulation in progress; each call of `step` handles all events of one point in time."""

    def __init__(
        self,
        cluster: Cluster,
        workload: Workload,
        policy: Policy,
        performance: PerformanceModel,
        seed: int,
        discipline: Discipline | None = None,
    ) -> None:
        self.cluster = cluster
        self.policy = policy
        self.performance = performance
        self.random = seeded(seed)
        self.records = [JobRecord(entry) for entry in workload]
        rows: list[int] = np.argsort(workload.submit_time, kind="stable")[::-1].tolist()
        self.arrivals = [self.records[row] for row in rows]  # the last first; at equal times, the last row
        self.arrival_times: list[float] = [math.inf, *workload.submit_time[rows].tolist()]
        self.queue: Queue = (
            DisciplineQueue(policy, cluster, discipline) if discipline else queue_of(policy, cluster)
        )
        self.running = running_jobs(cluster.topology, performance)
        self.num_done = 0
        self.ticks: Ticks | None = None
        """The times at which the policy may be asked; None if it is asked at every event."""
        self.monitoring: Monitoring | None = None
        self.move_times = MoveTimes()
        self.beginning: Beginning | None = None
        """The jobs that run before; None on an idle cluster."""
        self.outages: Outages | None = None
        """The failures of parts; None if none fail."""
        self.recovery = Recovery()
        self.elastic = ElasticJobs(self.records, policy, cluster)
        self.num_failures = 0
        """The failures since a job has ended."""

    def begin(self, beginning: Beginning) -> None:
        """Let the jobs run that do so before time 0."""
        self.beginning = beginning
        for record in beginning.records:
            self.running.keep(record)
            self.queue.runs(record)

    def let_fail(self, failures: Failures | None, recovery: Recovery | None, seed: int) -> None:
        """Let parts fail, unless that is None, and jobs recover; ValueError names what cannot be simulated then."""
        if recovery is not None:
            _checks.instance(recovery, Recovery, "recovery", ValueError)
            self.recovery = recovery
        if failures is None and recovery is not None and not self.elastic:
            raise ValueError("recovery: without failures and elastic jobs, no job restarts")
        self.recovery.hold_spares(self.cluster)
        if failures is None:
            return
        _checks.instance(failures, Failures, "failures", ValueError)
        if self.beginning:
            if self.beginning.records:
                raise ValueError("failures: jobs that run before have no known work, so that none is lost")
            self.beginning = Beginning([], self.policy, self.cluster.copy())
        if row := next((record for record in self.records if not record.job.num_tasks), None):
            raise ValueError(f"failures: {row.job_id!r} has no GPUs, and only GPUs fail")
        self.outages = Outages(failures, self.cluster, seed)

    def to_end(self, *, progress: bool) -> None:
        """Handle all events. progress: show a bar."""
        done = Progress(
            "simulating", fraction=lambda: self.num_done / max(1, len(self.records)), enabled=progress
        )
        with done:
            while self.step():
                pass

    def step(self) -> bool:
        """Handle all events of the next point in time; return False if there is none."""
        running, queue, times = self.running, self.queue, self.arrival_times
        now = self._next_time()
        if now == math.inf:
            return False
        changed = not self.ticks and queue.wakes == now
        if running.next_end() == now:
            self._end(now)
            changed = True
        if self.outages and self.outages.next_time() == now:
            self._fail(self.outages, now)
            changed = True
        while times[-1] == now:
            times.pop()
            self._submit(self.arrivals.pop())
            changed = True
        if queue.num_waiting and (self.ticks.due(now) if self.ticks else changed):
            self._schedule(now)
            self._make_way(now)
        if self.elastic and queue.head is None:
            self._grow(now)
        running.update(now)
        if self.monitoring:
            self.monitoring.measure(now)
        return True

    def _next_time(self) -> float:
        """Return the time of the next event in seconds; infinite if there is none."""
        times = [self.running.next_end(), self.arrival_times[-1]]
        if not self.ticks:
            times.append(self.queue.wakes)
        elif self.queue.num_waiting:
            times.append(self.ticks.next_time())
        if self.monitoring:
            times.append(self.monitoring.next_time())
        if self.outages and self.num_done < len(self.records):
            times.append(self.outages.next_time())
        return min(times)

    def _submit(self, record: JobRecord) -> None:
        if self.beginning and (reason := self.beginning.why_never(record.submitted)):
            record.rejected = reason
            self.num_done += 1
        else:
            self.queue.submit(record)

    def _end(self, now: float) -> None:
        for record in self.running.ended(now):
            self.cluster.release(record.submitted.job_id)
            if isinstance(self.queue, DisciplineQueue):
                self.queue.ended(record)
            if self.beginning and record.job_id in self.beginning.job_ids:
                continue
            self.num_done += 1
            self.num_failures = 0
            if self.monitoring:
                self.monitoring.ended(record, now)

    def _schedule(self, now: float) -> None:
        queue = self.queue
        while queue.num_waiting:
            decided = queue.decide(now)
            self._follow(decided, now)
            if self.running or not queue.num_waiting or queue.wakes < math.inf or self._awaits_repairs:
                break
            if not decided.start and not decided.reject:
                self._follow(queue.force_head(now), now)
        queue.count_deferred()

    def _make_way(self, now: float) -> None:
        """Let elastic jobs shrink as long as the first job that waits can then start."""
        while self.elastic and (head := self.queue.head) and (plans := self.elastic.making_way(head)):
            for record, plan in plans:
                self._resize(record, plan, now)
            self._schedule(now)

    def _grow(self, now: float) -> None:
        """Let elastic jobs grow that end sooner then."""
        allowed = self.queue.may_grow if isinstance(self.queue, DisciplineQueue) else None
        for record, plan in self.elastic.larger(now, self.recovery.restart_s, allowed):
            if self._is_sooner(record, plan, now):
                self._resize(record, plan, now)

    def _is_sooner(self, record: JobRecord, plan: Reassignment, now: float) -> bool:
        """Return True if a running job ends sooner if it is resized, at its present speed next to others."""
        assert record.placement is not None
        assert plan.placement is not None
        before, after = (self._run_time(record.submitted, one) for one in (record.placement, plan.placement))
        pause = self.recovery.pause(record.job_id, record.placement, plan.placement)
        return pause * before < (record.end - now) * (before - after)

    def _resize(self, record: JobRecord, plan: Reassignment, now: float) -> None:
        """Let a running job go on with another number of tasks; it writes a checkpoint and loses no work."""
        assert record.placement is not None
        assert plan.placement is not None
        pause = self.recovery.pause(record.job_id, record.placement, plan.placement)
        self._stop(record, now)
        plan.carry_out(self.cluster)
        if isinstance(self.queue, DisciplineQueue):
            self.queue.ended(record)
        self._start_again(record, plan.placement, now, pause)
        if isinstance(self.queue, DisciplineQueue):
            self.queue.goes_on(record, now)

    def _follow(self, decided: Decided[JobRecord], now: float) -> None:
        for job_id in decided.preempt:
            self._preempt(self._record_of[job_id], now)
        for job_id, placement in decided.move:
            record = self._record_of[job_id]
            self._stop(record, now).num_moves += 1
            self._start_again(record, placement, now, self.move_times.move_s)
        for record, placement in decided.start:
            if record.history:
                pause = self.move_times.restart_s
                if record.history.has_failed:
                    before = record.history.stays[-1].placement
                    pause = self.recovery.pause(record.job_id, before, placement)
                self._start_again(record, placement, now, pause)
                continue
            run_time = self._run_time(record.submitted, placement)
            record.placement, record.start = placement, now
            record.run_time, record.end = run_time, now + run_time
            self.running.start(record, now, run_time)
            if self.monitoring:
                self.monitoring.started(record, now)
        for record, reason in decided.reject:
            record.rejected = reason.reason
            self.num_done += 1

    @cached_property
    def _record_of(self) -> dict[str, JobRecord]:
        """The records of the workload's jobs by id."""
        return {record.job_id: record for record in self.records}

    def _preempt(self, record: JobRecord, now: float, checkpoint_every: float = 0.0) -> None:
        """Stop a job, whose GPUs are free by now, and put it back into the queue; it loses its work since a checkpoint.

        checkpoint_every: as for `History.stop`.
        """
        history = self._stop(record, now, checkpoint_every)
        history.num_preemptions += 1
        if not self.move_times.keeps_work:
            history.start_over()
        self._wait_again(record, history, now)

    def _wait_again(self, record: JobRecord, history: History, now: float) -> None:
        record.end = now
        record.run_time = history.ran
        self.queue.submit(record)

    def _fail(self, outages: Outages, now: float) -> None:
        """Stop the jobs on each part that fails now, and let them go on as the recovery says."""
        for strike in outages.due(now):
            self.num_failures += 1
            if self.num_failures > _MOST_FAILURES:
                raise ValueError(
                    f"failures: {_MOST_FAILURES} by {now:g} s since a job has ended, too many for these jobs"
                )
            hit = self.cluster.occupants(strike.gpus)[1]
            for record in sorted((self._record_of[job_id] for job_id in hit), key=age):
                if self.cluster.runs(record.job_id):  # it has not made way for an older one
                    self._recover(record, strike, hit[record.job_id], now)
        self.recovery.hold_spares(self.cluster)

    def _recover(self, record: JobRecord, strike: Strike, lost: Collection[int], now: float) -> None:
        """Stop a job and start it again from its last checkpoint, or put it back into the queue."""
        history = self._stop(record, now, self.recovery.checkpoint_every)
        history.failures.append(strike.failure)
        placement = record.placement
        leaving: Collection[str] = ()
        if strike.is_out:
            placement, leaving = self.recovery.replaced(record, lost, self.policy, self.cluster)
        for job_id in leaving:
            self._leave_spare(self._record_of[job_id], now)
        if isinstance(self.queue, DisciplineQueue):
            self.queue.ended(record)
        if placement is None:
            self._wait_again(record, history, now)
            return
        pause = self.recovery.pause(record.job_id, history.stays[-1].placement, placement)
        self._start_again(record, placement, now, pause)
        if isinstance(self.queue, DisciplineQueue):
            self.queue.goes_on(record, now)

    def _leave_spare(self, record: JobRecord, now: float) -> None:
        """Pre-empt a job on a lent spare, whose GPUs a repair has taken."""
        if isinstance(self.queue, DisciplineQueue):
            self.queue.ended(record)
        self._preempt(record, now, self.recovery.checkpoint_every)

    @property
    def _awaits_repairs(self) -> bool:
        """Return True if the first job may wait for a part that is out of service."""
        return self.outages is not None and self.outages.are_any

    def _stop(self, record: JobRecord, now: float, checkpoint_every: float = 0.0) -> History:
        """End the present stay of a running job, see `History.stop`."""
        assert record.placement is not None
        left, seconds = self.running.stop(record, now)
        if self.monitoring:
            self.monitoring.stopped(record)
        if record.history is None:
            record.history = History(since=record.start, work=seconds, run_time=seconds)
        record.history.stop(record.placement, now, left, checkpoint_every)
        return record.history

    def _start_again(self, record: JobRecord, placement: Placement, now: float, pause: float) -> None:
        """Let a job that was stopped go on with the work that is left, after a pause in seconds."""
        history = record.history
        assert history is not None
        run_time = self._run_time(record.submitted, placement)
        seconds = history.resume(now, run_time, pause, len(placement.gpus))
        record.placement, record.end = placement, now + seconds
        record.run_time = history.ran + seconds
        self.running.start(record, now, seconds)
        if self.monitoring:
            self.monitoring.started(record, now)

    def _run_time(self, entry: SubmittedJob, placement: Placement) -> float:
        seconds = self.performance.run_time(entry.on(placement), placement, self.random)
        if type(seconds) is float and 0.0 < seconds <= MAX_NUMBER:
            return seconds
        what = f"performance: run time of {entry.job_id!r}"
        return _checks.real(seconds, what, ValueError, high=MAX_NUMBER)
