"""When a waiting job of a snapshot starts: now, after which jobs, or never; and what would help most."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from topoplace import _checks, policies
from topoplace._fewest import fewest
from topoplace.cluster.cluster import Cluster
from topoplace.engine.confined import confined
from topoplace.engine.policy import Policy
from topoplace.errors import SnapshotError
from topoplace.experiments.simulate.disciplines.reservations import Reservation, Timetable
from topoplace.jobs.job_graph import JobGraph
from topoplace.moving import MoveCosts, make_room
from topoplace.moving.rearrangement import Rearrangement
from topoplace.placement import Placement
from topoplace.snapshot.records import Snapshot, WaitingJob

_MOVES_ONLY: Final = MoveCosts(preempt=math.inf)


@dataclass(frozen=True, slots=True)
class StartTime:
    """When a waiting job starts, if running jobs use all of their time and no job arrives."""

    job_id: str
    gpus: tuple[int, ...] = ()
    """The GPUs with which it starts, in task order; none if it never does."""
    seconds: float = math.inf
    """Seconds from now: 0 for now, infinite for never and after a job whose end is not known."""
    after: tuple[str, ...] = ()
    """The running jobs that end first, as they hold these GPUs."""
    behind: tuple[str, ...] = ()
    """The jobs ahead of it in the queue that get the GPUs first with which it would start earlier."""
    seconds_if_first: float = math.inf
    """Seconds from now if it were the first in the queue."""
    held: str = ""
    """Why it does not start whatever is free, such as a dependency; the rest is what holds once that is over."""
    reason: str = ""
    """Why it never starts; "" if it does."""
    room: Rearrangement | None = None
    """The cheapest moves of running jobs after which it starts now; None if it fits now, or never."""

    @property
    def is_now(self) -> bool:
        """True if it can start now."""
        return self.seconds == 0 and not self.held


def when(
    snapshot: Snapshot,
    job_id: str,
    *,
    policy: Policy | str = policies.DEFAULT,
    cost: MoveCosts | None = None,
    timeout: float = 10.0,
) -> StartTime:
    """Return when a waiting job starts, after which jobs, or why never, and which moves would let it start now.

    Running jobs are taken to end at their limits of time. Jobs ahead in the queue get the earliest time at which they
    fit, one after another, and keep it (conservative backfilling); those that may not start are passed over.

    Args:
        policy: Places all jobs, and so decides what fits; it divides them among nodes as the scheduler does.
        cost: What moving a job costs; by default 1 for each GPU, and no job is pre-empted.
        timeout: Limit on the search for moves, in seconds.

    Raises:
        SnapshotError: If no job of this id waits.
        ValueError: Names a wrong argument.
    """
    _checks.instance(snapshot, Snapshot, "snapshot", ValueError)
    chosen = policies.get(policy) if isinstance(policy, str) else policy
    _checks.instance(chosen, Policy, "policy", ValueError)
    timeout = _checks.positive(timeout, "timeout", ValueError)
    entry = snapshot.waiting_job(_checks.text(job_id, "job_id", SnapshotError))
    forecast = _Forecast(snapshot, entry, snapshot.policy(chosen))
    if reason := forecast.never():
        return StartTime(entry.job_id, held=entry.held, reason=reason)
    found = forecast.in_queue()
    if forecast.fits_now:
        return found
    return replace(found, room=forecast.room(_MOVES_ONLY if cost is None else cost, timeout))


class _Forecast:
    """What is known of the start of one waiting job."""

    def __init__(self, snapshot: Snapshot, entry: WaitingJob, policy: Policy) -> None:
        self._entry = entry
        self._policy = policy
        self._snapshot = snapshot
        self._cluster = snapshot.cluster.copy()
        self._running = list(snapshot.running.values())
        self._ahead = [one for one in snapshot.waiting[: snapshot.waiting.index(entry)] if not one.held]
        self._excluded = entry.excluded(self._cluster.topology.machine_names)
        self._without_time: list[str] = []
        """Jobs ahead that also wait for jobs whose ends are not known."""

    def never(self) -> str:
        """Return why the job does not fit even if all running jobs end; "" if it does."""
        policy = confined(self._policy, self._excluded)
        with self._after(len(self._running)) as idle:
            refusal = policy.explain(self._entry.job, idle, 1).refusal
            if refusal is None and policy.place(self._entry.job, idle) is None:
                return f"{policy.name} places it nowhere"
        return refusal.reason if refusal else ""

    def in_queue(self) -> StartTime:
        """Return when the job starts, next to those ahead of it in the queue."""
        first = self._first()
        alone = self._seconds(first)
        reserved = list(self._reserved())
        mine = self._timetable.reserve(
            self._entry.job_id, self._entry.job, self._entry.seconds, self._excluded
        )
        gpus = first.gpus if mine is None else mine.placement.gpus
        seconds = math.inf if mine is None else mine.start
        until = max(seconds, alone + self._entry.seconds)
        behind = _in_the_way(reserved, first, alone, until) if seconds > alone else ()
        if mine is None:
            behind += tuple(self._without_time)
        return StartTime(
            self._entry.job_id,
            gpus,
            seconds,
            self._owners(gpus) if seconds > 0 else (),
            behind,
            alone,
            self._entry.held,
        )

    @property
    def fits_now(self) -> bool:
        """True if the job fits next to the running jobs."""
        return self._place(0) is not None

    def room(self, cost: MoveCosts, timeout: float) -> Rearrangement:
        """Return the cheapest moves after which the job starts now."""
        return make_room(
            self._entry.job,
            self._cluster,
            movable=self._snapshot.movable(),
            cost=cost,
            policy=self._policy,
            excluded=self._snapshot.excluded(),
            job_id=self._entry.job_id,
            timeout=timeout,
        )

    def _first(self) -> Placement:
        """Return the placement with which the job would start as the first of the queue."""
        found = self._place(0)
        if found is None:
            number = fewest(len(self._running), lambda ended: self._place(ended) is not None)
            found = self._place(len(self._running) if number is None else number)
        assert found is not None  # `never` has said that it fits after all have ended
        return found

    def _seconds(self, placement: Placement) -> float:
        """Return after how many seconds all GPUs of a placement are free."""
        owners = set(self._owners(placement.gpus))
        return max((one.seconds_left for one in self._running if one.job_id in owners), default=0.0)

    def _owners(self, gpus: Iterable[int]) -> tuple[str, ...]:
        """Return the running jobs that hold some of the GPUs, the first to end first."""
        wanted = set(gpus)
        return tuple(one.job_id for one in self._running if not wanted.isdisjoint(one.gpus))

    def _reserved(self) -> Iterable[Reservation]:
        """Yield the times that the jobs ahead get; those that never fit get none."""
        topology = self._cluster.topology
        running = [
            Reservation(
                one.job_id,
                one.job or JobGraph.independent(len(one.gpus)),
                Placement(one.gpus, topology=topology),
                0.0,
                one.seconds_left,
            )
            for one in self._running
        ]
        self._timetable = Timetable(running, self._policy, self._cluster, 0.0)
        for one in self._ahead:
            if not _is_honoured(one.job, self._policy, self._cluster):
                continue
            found = self._timetable.reserve(
                one.job_id, one.job, one.seconds, one.excluded(topology.machine_names)
            )
            if found is None:
                self._without_time.append(one.job_id)
            else:
                yield found

    def _place(self, ended: int) -> Placement | None:
        """Return where the policy places the job after the first running jobs have ended."""
        with self._after(ended) as state:
            return self._policy.place(self._entry.job, state)

    @contextmanager
    def _after(self, ended: int) -> Generator[Cluster]:
        """Open a block in which the first running jobs have ended, and the job gets no machine it may not use."""
        with self._cluster.what_if() as state:
            for one in self._running[:ended]:
                state.release(one.job_id)
            for machine in self._excluded:
                state.drain(machine)
            yield state


def _is_honoured(job: JobGraph, policy: Policy, cluster: Cluster) -> bool:
    """Return False if the policy refuses the job whatever is free."""
    refusal = policy.explain(job, cluster, 1).refusal
    return refusal is None or not refusal.permanent


def _in_the_way(
    reserved: Sequence[Reservation], first: Placement, start: float, end: float
) -> tuple[str, ...]:
    """Return the jobs ahead that have GPUs of a placement between two times; if none has, all that run then."""
    gpus = set(first.gpus)
    meanwhile = [one for one in reserved if one.start < end and start < one.end]
    blocking = [one for one in meanwhile if not gpus.isdisjoint(one.placement.gpus)]
    return tuple(one.job_id for one in blocking or meanwhile)
