"""A queue discipline: its options, and the waiting jobs under it; the policy only says where a job goes."""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from topoplace import _checks
from topoplace.engine.confined import confined
from topoplace.engine.driver import without_limits
from topoplace.engine.machine_policy import MachinePolicy
from topoplace.engine.queueing import sizes_to_try
from topoplace.engine.reservations import (
    Reservation,
    Timetable,
    end_of,
    expected_start,
    has_room,
    spare_gpus,
    whole_gpus,
    would_delay,
)
from topoplace.placement import Placement, Refusal
from topoplace_lab.simulate.disciplines.group_shares import GroupShares
from topoplace_lab.simulate.disciplines.live_queue import Decided
from topoplace_lab.simulate.disciplines.patience import awaited, patience
from topoplace_lab.simulate.scheduling import age, why_not

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.policy import Policy
    from topoplace.jobs.job_graph import JobGraph
    from topoplace_lab.simulate.metrics import JobRecord

Order = Literal["submitted", "priority", "fair"]
Backfill = Literal["none", "easy", "conservative"]


@dataclass(frozen=True, slots=True)
class Discipline:
    """How a simulation orders its waiting jobs, and which of them may start before older ones.

    Args:
        order: "submitted": the oldest job first. "priority": the highest `JobGraph.priority` first, then the oldest.
            "fair": the group (`JobGraph.group`) with the smallest weighted dominant share first, then the oldest
            (weighted dominant resource fairness, Ghodsi et al., NSDI'11). A group's dominant share is the largest of
            its shares of all GPUs, CPUs and memory.
        backfill: "none": no job starts before the first one that waits. "easy": a job may, if the first one then does
            not start later than expected (Lifka, JSSPP'95). "conservative": a job may, if none before it then starts
            later than expected (Mu'alem and Feitelson, 2001). The expected run time is `requested_time`, or `base_time`
            if it is unknown.
        weights: Weights of groups for "fair", 1 for groups that are not named.
        quotas: Limit on the GPUs that all jobs of a group hold at once. Jobs above it wait without delaying others;
        jobs that exceed it alone are rejected.
        depth: Number of waiting jobs behind the first one that are considered for backfill.

    Raises:
        ValueError: Names a wrong value.
    """

    order: Order = "submitted"
    backfill: Backfill = "easy"
    weights: Mapping[str, float] = field(default_factory=dict[str, float], hash=False)
    quotas: Mapping[str, float] = field(default_factory=dict[str, float], hash=False)
    depth: int = 100

    def __post_init__(self) -> None:
        _checks.one_of(self.order, "order", ("submitted", "priority", "fair"), ValueError)
        _checks.one_of(self.backfill, "backfill", ("none", "easy", "conservative"), ValueError)
        _checks.integer(self.depth, "depth", ValueError, low=1, high=1 << 30)
        for name in ("weights", "quotas"):
            given = getattr(self, name)
            _checks.instance(given, Mapping, name, ValueError)
            for group, value in given.items():
                _checks.text(group, f"a group in {name}", ValueError)
                _checks.positive(value, f"{name}[{group!r}]", ValueError)
            object.__setattr__(self, name, MappingProxyType(dict(given)))
        if self.weights and self.order != "fair":
            raise ValueError(f'weights are for order = "fair", not for {self.order!r}')

    def quota(self, group: str | None) -> float:
        """Return the limit on the GPUs that a group's jobs hold at once; infinite without a quota."""
        return math.inf if group is None else self.quotas.get(group, math.inf)

    def weight(self, group: str | None) -> float:
        """Return the weight of a group."""
        return 1.0 if group is None else self.weights.get(group, 1.0)


_Kind = tuple["JobGraph", frozenset[str]]
"""A job graph, and the names of machines that the job must not get."""


class _First(NamedTuple):
    """The first job that waits."""

    record: JobRecord
    asked: JobGraph
    """The job with the limits within which it waits."""
    start: float
    """When it is expected to start, in seconds."""


class DisciplineQueue:
    """A queue in which a discipline orders the jobs and lets some overtake others."""

    def __init__(self, policy: Policy, cluster: Cluster, discipline: Discipline) -> None:
        if discipline.backfill == "conservative" and isinstance(policy, MachinePolicy) and policy.may_reslice:
            raise ValueError(
                f"backfill = 'conservative': {policy.name} may reslice GPUs, "
                "and reservations are for GPUs as they are sliced"
            )
        self.num_waiting = 0
        self.wakes = math.inf
        """The time in seconds at which a job that waits for certain GPUs takes others, unless an event comes before."""
        self._policy = policy
        self._cluster = cluster
        self._discipline = discipline
        self._waiting: dict[str, JobRecord] = {}
        self._running: dict[str, tuple[JobRecord, Reservation]] = {}
        self._ends: list[Reservation] = []
        """The running jobs by their expected ends."""
        self._shares = GroupShares(cluster, discipline.weight, discipline.quota)
        self._possible: set[_Kind] = set()
        """Kinds of jobs that are known to fit an idle cluster."""
        self._refused: set[_Kind] = set()
        """Kinds of jobs that found no place in a cluster such as the present one, or one with fewer jobs."""
        self._others: dict[_Kind, Placement] = {}
        """Where kinds of jobs would start in the present cluster that wait for certain GPUs."""
        self._version = -1
        """The number of the cluster's changes for which `_refused` and `_others` hold."""

    @property
    def head(self) -> JobRecord | None:
        """Return the first job that is within the quota of its group; None if there is none."""
        jobs = (record for record in self._in_order() if self._shares.within_quota(record.submitted.least))
        return next(jobs, None)

    def may_grow(self, record: JobRecord, num_tasks: int) -> bool:
        """Return True if a running job may grow to this number of tasks within the quota of its group."""
        placed = self._running[record.job_id][1].placement
        return self._shares.within_quota(record.submitted.with_tasks(num_tasks).job, len(placed.gpus))

    def submit(self, job: JobRecord) -> None:
        """Add a job."""
        self._waiting[job.job_id] = job
        self.num_waiting += 1

    def count_deferred(self) -> None:
        """Do nothing: the policy makes no plans here, so it defers no job."""

    def decide(self, now: float) -> Decided[JobRecord]:
        """Return the jobs that start at time `now` (seconds), and those that can never start."""
        decided: Decided[JobRecord] = Decided([], [])
        self.wakes = math.inf
        if self._discipline.backfill == "conservative":
            while self._decide_by_timetable(now, decided):
                pass  # those that started made place for others among the first in the queue
        else:
            self._decide_in_order(now, decided)
        return decided

    def force_head(self, now: float) -> Decided[JobRecord]:
        """Reject the first job, which does not start on an idle cluster."""
        head = next(self._in_order())
        decided: Decided[JobRecord] = Decided([], [])
        self._reject(head, why_not(head.submitted.least, self._policy_for(head), self._cluster), decided)
        return decided

    # ---- who is next -----------------------------------------------------------------------------------------

    def _in_order(self) -> Iterator[JobRecord]:
        waiting = sorted(self._waiting.values(), key=age)
        if self._discipline.order == "fair":
            return self._shares.in_order(waiting)
        if self._discipline.order == "priority":
            waiting.sort(key=lambda record: -record.job.priority)
        return iter(waiting)

    def _admitted(self, decided: Decided[JobRecord]) -> Iterator[JobRecord]:
        """Yield the jobs in order, without those above the quota of their group and those that never fit.

        At most `depth` jobs are yielded in addition to those that start.
        """
        left = self._discipline.depth + 1
        for record in self._in_order():
            job = record.submitted.least
            gpus, quota = job.num_tasks * job.gpu_share, self._discipline.quota(job.group)
            if gpus > quota:
                reason = f"needs {gpus:g} GPUs, the quota of {job.group!r} is {quota:g}"
                self._reject(record, Refusal(reason, permanent=True), decided)
            elif self._shares.within_quota(job) and not self._is_impossible(record, decided):
                yield record
                left -= record.job_id in self._waiting
                if not left:
                    return

    def _forms(self, decided: Decided[JobRecord]) -> Iterator[tuple[JobRecord, JobGraph]]:
        """Yield the admitted jobs, an elastic one with each number of tasks until it starts, the largest first."""
        for record in self._admitted(decided):
            for size in sizes_to_try(record.job, self._cluster.num_free):
                job = record.submitted.with_tasks(size).job
                if record.job_id in self._waiting and self._shares.within_quota(job):
                    yield record, job

    # ---- who starts ------------------------------------------------------------------------------------------

    def _decide_in_order(self, now: float, decided: Decided[JobRecord]) -> None:
        """Start jobs in order; behind the first one that waits, only those that do not delay it."""
        if self._version != self._cluster.native.num_changes:
            self._refused.clear()
            self._others.clear()
        first: _First | None = None
        spare = math.inf
        delaying: set[_Kind] = set()
        for record, job in self._forms(decided):
            outlives = first is not None and end_of(now, _expected_seconds(record, job)) > first.start
            if outlives and (whole_gpus(job) > spare or _kind(record, job) in delaying):
                continue
            placement = self._placed(record, job, now)
            if placement is None:
                if first is None and job == record.submitted.least:
                    if self._discipline.backfill == "none":
                        break
                    first, spare = self._first(record, now)
                continue
            wanted = self._expected(record, placement, now)
            if first is None or not self._would_delay(first, wanted, now):
                self._start(record, wanted, decided)
                spare -= whole_gpus(job) if outlives else 0
                delaying.clear()
            else:
                delaying.add(_kind(record, job))
        if decided.start:
            self._refused.clear()  # a policy may like what is left better
        self._version = self._cluster.native.num_changes

    def _placed(self, record: JobRecord, job: JobGraph, now: float) -> Placement | None:
        """Return where a job starts now as `job`; None if it waits."""
        policy = self._policy_for(record)
        limited = awaited(job, policy, self._cluster)
        if limited is job:
            return self._found(job, record)
        placement = self._found(limited, record)
        if placement is not None:
            return without_limits(placement, job)
        if self._waits(record, now):
            return None
        placement = self._others.get(kind := _kind(record, job)) or self._found(job, record)
        if placement is None or not self._waits(record, now, placement):
            return placement
        self._others[kind] = placement
        return None

    def _found(self, job: JobGraph, record: JobRecord) -> Placement | None:
        """Return where the policy places a job; it is not asked again about kinds that found no place."""
        kind = _kind(record, job)
        if kind in self._refused:
            return None
        placement = self._policy_for(record).place(job, self._cluster)
        if placement is None:
            self._refused.add(kind)
        return placement

    def _waits(self, record: JobRecord, now: float, other: Placement | None = None) -> bool:
        """Return True if a job waits for certain GPUs; other: where it would start else, None for the best split."""
        until = self._until(record, other)
        if now >= until:
            return False
        self.wakes = min(self.wakes, until)
        return True

    def _until(self, record: JobRecord, other: Placement | None = None) -> float:
        """Return how long, in seconds, a job waits for certain GPUs rather than starting elsewhere."""
        policy, seconds = self._policy_for(record), _expected_seconds(record)
        return record.submit_time + patience(record.job, policy, self._cluster, seconds, other)

    def _first(self, record: JobRecord, now: float) -> tuple[_First, float]:
        """Return the first job that waits, and the whole GPUs that younger ones may take without delaying it.

        The GPUs that it waits for are reserved, if they ever come.
        """
        policy, running = self._policy_for(record), self._running_by_end(now)
        least = record.submitted.least
        job = awaited(least, policy, self._cluster)
        start = expected_start(job, running, policy, self._cluster)
        if start == math.inf and job is not least:
            job, start = least, expected_start(least, running, policy, self._cluster)
        return _First(record, job, start), spare_gpus(job, start, running, self._cluster)

    def _would_delay(self, first: _First, wanted: Reservation, now: float) -> bool:
        policy, running = self._policy_for(first.record), self._running_by_end(now)
        return would_delay(first.asked, first.start, wanted, running, policy, self._cluster)

    def _decide_by_timetable(self, now: float, decided: Decided[JobRecord]) -> bool:
        """Reserve the earliest time for each job in order, and start those whose time is now; return True if any do."""
        num_started = len(decided.start)
        last = self._last_that_fits(decided)
        timetable = Timetable(self._running_by_end(now), self._policy, self._cluster, now)
        for number, record in enumerate(self._admitted(decided)):
            if number > last:
                break
            found = self._reserved(record, timetable, now)
            if found is not None and found.start == now:
                self._start(record, found, decided)
                timetable.started(record.job_id)
        return len(decided.start) > num_started

    def _reserved(self, record: JobRecord, timetable: Timetable, now: float) -> Reservation | None:
        """Reserve the earliest time for a job: for the GPUs that it waits for, if they come before it takes others.

        An elastic job gets the largest number of tasks with which it starts now, else the least.
        """
        if record.job.elastic is not None:
            for size in sizes_to_try(record.job, self._cluster.num_free):
                if found := self._reserved_as(record, record.job.with_tasks(size), timetable, now):
                    return found
            return self._reserved_as(record, record.submitted.least, timetable)
        limited = awaited(record.job, self._policy_for(record), self._cluster)
        seconds, excluded = _expected_seconds(record), record.submitted.excluded
        if limited is not record.job:
            found = timetable.reserve(record.job_id, limited, seconds, excluded, self._until(record))
            if found is not None:
                return found._replace(job=record.job, placement=without_limits(found.placement, record.job))
        return timetable.reserve(record.job_id, record.job, seconds, excluded)

    def _reserved_as(
        self, record: JobRecord, job: JobGraph, timetable: Timetable, latest: float = math.inf
    ) -> Reservation | None:
        """Reserve the earliest time for a job in another form; None if that is after `latest`, or above its quota."""
        if not self._shares.within_quota(job):
            return None
        seconds, excluded = _expected_seconds(record, job), record.submitted.excluded
        return timetable.reserve(record.job_id, job, seconds, excluded, latest)

    def _is_impossible(self, record: JobRecord, decided: Decided[JobRecord]) -> bool:
        """Return True if a job can never run; it is then rejected."""
        job = record.submitted.least
        if (kind := _kind(record, job)) in self._possible:
            return False
        refusal = self._policy_for(record).explain(job, self._cluster, top=1).refusal
        if refusal is not None and refusal.permanent:
            self._reject(record, refusal, decided)
            return True
        self._possible.add(kind)
        return False

    def _last_that_fits(self, decided: Decided[JobRecord]) -> int:
        """Return the number of the last job in order that could start now if none was before it, or -1."""
        fits: dict[_Kind, bool] = {}
        last = -1
        for number, record in enumerate(self._admitted(decided)):
            kind = _kind(record, job := record.submitted.least)
            if kind not in fits:
                fits[kind] = has_room(job, self._policy_for(record), self._cluster)
            if fits[kind]:
                last = number
        return last

    def _policy_for(self, record: JobRecord) -> Policy:
        return confined(self._policy, record.submitted.excluded)

    def _start(self, record: JobRecord, wanted: Reservation, decided: Decided[JobRecord]) -> None:
        self._cluster.allocate(record.job_id, wanted.placement, wanted.job)
        self._hold(record, wanted)
        self._others.clear()
        self._leave(record)
        decided.start.append((record, wanted.placement))

    def _reject(self, record: JobRecord, why: Refusal, decided: Decided[JobRecord]) -> None:
        self._leave(record)
        decided.reject.append((record, why))

    def _leave(self, record: JobRecord) -> None:
        del self._waiting[record.job_id]
        self.num_waiting -= 1

    # ---- who runs --------------------------------------------------------------------------------------------

    def runs(self, record: JobRecord) -> None:
        """Record a job that runs before time 0."""
        assert record.placement is not None
        self._hold(record, Reservation(record.job_id, record.job, record.placement, record.start, record.end))

    def goes_on(self, record: JobRecord, now: float) -> None:
        """Record that a job that was stopped runs again from `now` on, in seconds."""
        assert record.placement is not None
        self._hold(record, self._expected(record, record.placement, now))

    def _hold(self, record: JobRecord, placed: Reservation) -> None:
        self._running[record.job_id] = (record, placed)
        insort(self._ends, placed, key=_by_end)
        self._shares.add(record, placed.placement, 1)

    def ended(self, job: JobRecord) -> None:
        """Forget a job that is finished, or was stopped."""
        record, reservation = self._running.pop(job.job_id)
        del self._ends[bisect_right(self._ends, _by_end(reservation), key=_by_end) - 1]
        self._shares.add(record, reservation.placement, -1)

    def _running_by_end(self, now: float) -> list[Reservation]:
        """Return the running jobs, the first to end first; one that takes longer than expected may end any moment."""
        late = bisect_right(self._ends, now, key=lambda one: one.end)
        soon = end_of(now, 0.0)
        first = [one._replace(end=soon) for one in self._ends[:late]]
        late += bisect_right(self._ends[late:], soon, key=lambda one: one.end)
        return [*sorted([*first, *self._ends[len(first) : late]], key=_by_end), *self._ends[late:]]

    def _expected(self, record: JobRecord, placement: Placement, now: float) -> Reservation:
        job = record.submitted.on(placement).job
        end = end_of(now, _expected_seconds(record, job))
        return Reservation(record.job_id, job, placement, now, end)


def _by_end(one: Reservation) -> tuple[float, str]:
    return one.end, one.job_id


def _kind(record: JobRecord, job: JobGraph) -> _Kind:
    return job, record.submitted.excluded


def _expected_seconds(record: JobRecord, job: JobGraph | None = None) -> float:
    """Return the seconds that are left of a job that runs as `job`; None for the job as it was submitted."""
    form = record.submitted.with_tasks(job.num_tasks) if job is not None else record.submitted
    left = record.history.left if record.history else 1.0
    return left * (form.base_time if math.isnan(form.requested_time) else form.requested_time)
