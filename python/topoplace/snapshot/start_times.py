"""The start times of a snapshot's waiting jobs, the jobs they wait for, and the moves that would help most."""

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
from topoplace.engine.reservations import Reservation, Timetable
from topoplace.errors import SnapshotError
from topoplace.jobs.job_graph import JobGraph
from topoplace.moving import MoveCosts, make_room
from topoplace.moving.rearrangement import Rearrangement
from topoplace.placement import Placement
from topoplace.snapshot.records import Snapshot, WaitingJob

_Need = tuple[JobGraph, frozenset[str] | None]
"""A job and the machines that it may use; jobs of equal need fit at the same times."""
_MOVES_ONLY: Final = MoveCosts(preempt=math.inf)


@dataclass(frozen=True, slots=True)
class StartTime:
    """The start of a waiting job if running jobs use all of their time and no job arrives."""

    job_id: str
    gpus: tuple[int, ...] = ()
    """The GPUs with which the job starts, in task order; () if it never does."""
    seconds: float = math.inf
    """Seconds from now: 0 for now, infinite for never or after a job whose end is unknown."""
    after: tuple[str, ...] = ()
    """The running jobs that must end first, as they hold these GPUs."""
    behind: tuple[str, ...] = ()
    """The jobs ahead in the queue that get the GPUs with which the job would otherwise start earlier."""
    seconds_if_first: float = math.inf
    """Seconds from now if the job were the first in the queue."""
    held: str = ""
    """The reason why the job does not start on any free GPUs, such as a dependency, or ""; other fields assume that it
    is over.
    """
    reason: str = ""
    """The reason why the job never starts; "" if it does."""
    room: Rearrangement | None = None
    """The cheapest moves of running jobs after which the job starts now; None if it fits now, or never."""

    @property
    def is_now(self) -> bool:
        """Return True if the job can start now."""
        return self.seconds == 0 and not self.held


def when(
    snapshot: Snapshot,
    job_id: str,
    *,
    policy: Policy | str = policies.DEFAULT,
    cost: MoveCosts | None = None,
    timeout: float = 10.0,
) -> StartTime:
    """Return when a waiting job starts, after which jobs, or why never, and the moves that would let it start now.

    Running jobs are assumed to end at their time limits. Jobs ahead in the queue reserve the earliest time at which
    they fit, one after another (conservative backfilling); jobs that may not start are skipped.

    Args:
        policy: The policy that places all jobs, and so decides what fits; jobs are divided among nodes as the scheduler
            does.
        cost: The costs of moves; None means 1 for each GPU, and that no job is pre-empted.
        timeout: Limit on the search for moves, in seconds.

    Raises:
        SnapshotError: No job of this id waits.
        ValueError: Names a wrong argument.
    """
    timeout = _checks.positive(timeout, "timeout", ValueError)
    forecast = _forecast(snapshot, policy)
    entry = snapshot.waiting_job(_checks.text(job_id, "job_id", SnapshotError))
    if reason := forecast.never(entry):
        return StartTime(entry.job_id, held=entry.held, reason=reason)
    for one in snapshot.waiting[: snapshot.waiting.index(entry)]:
        if not one.held:
            forecast.reserve(one)
    found = forecast.start(entry)
    if forecast.place(entry, ended=0) is not None:
        return found
    return replace(found, room=forecast.room(entry, _MOVES_ONLY if cost is None else cost, timeout))


def start_times(snapshot: Snapshot, *, policy: Policy | str = policies.DEFAULT) -> tuple[StartTime, ...]:
    """Return the start of each waiting job, in queue order, as `when` does but without moves.

    For a job that may not start, only `held` is set.

    Raises:
        ValueError: Names a wrong argument.
    """
    forecast = _forecast(snapshot, policy)
    found: list[StartTime] = []
    for entry in snapshot.waiting:
        if entry.held:
            found.append(StartTime(entry.job_id, held=entry.held))
        elif reason := forecast.never(entry):
            found.append(StartTime(entry.job_id, reason=reason))
        else:
            found.append(forecast.start(entry))
    return tuple(found)


def _forecast(snapshot: Snapshot, policy: Policy | str) -> _Forecast:
    _checks.instance(snapshot, Snapshot, "snapshot", ValueError)
    chosen = policies.get(policy) if isinstance(policy, str) else policy
    _checks.instance(chosen, Policy, "policy", ValueError)
    return _Forecast(snapshot, snapshot.policy(chosen))


class _Forecast:
    """What is known of the starts of waiting jobs, which are asked about in the order of the queue."""

    def __init__(self, snapshot: Snapshot, policy: Policy) -> None:
        self._policy = policy
        self._snapshot = snapshot
        self._cluster = snapshot.cluster.copy()
        self._running = list(snapshot.running.values())
        self._reasons: dict[_Need, str] = {}
        self._firsts: dict[_Need, Placement] = {}
        self._reserved: list[Reservation] = []
        """The times that jobs ahead have got."""
        self._without_time: list[str] = []
        """Jobs ahead that also wait for jobs whose ends are not known."""
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
        self._timetable = Timetable(running, policy, self._cluster, 0.0)

    def never(self, entry: WaitingJob) -> str:
        """Return why a job does not fit even if all running jobs end; "" if it does."""
        need = entry.job, entry.machines
        if need not in self._reasons:
            policy = confined(self._policy, self._excluded(entry))
            with self._after(len(self._running), entry) as idle:
                refusal = policy.explain(entry.job, idle, 1).refusal
                reason = refusal.reason if refusal else ""
                if refusal is None and policy.place(entry.job, idle) is None:
                    reason = f"{policy.name} places it nowhere"
            self._reasons[need] = reason
        return self._reasons[need]

    def start(self, entry: WaitingJob) -> StartTime:
        """Return when a job that fits after all have ended starts, next to those ahead of it, and keep its time."""
        first = self._first(entry)
        alone = self._seconds(first)
        ahead, without_time = tuple(self._reserved), tuple(self._without_time)
        mine = self.reserve(entry)
        gpus = first.gpus if mine is None else mine.placement.gpus
        seconds = math.inf if mine is None else mine.start
        until = max(seconds, alone + entry.seconds)
        behind = _in_the_way(ahead, first, alone, until) if seconds > alone else ()
        if mine is None:
            behind += without_time
        owners = self._owners(gpus) if seconds > 0 else ()
        return StartTime(entry.job_id, gpus, seconds, owners, behind, alone, entry.held)

    def reserve(self, entry: WaitingJob) -> Reservation | None:
        """Return the earliest time at which a job fits, and keep it; None if none is known, or it never fits."""
        if self.never(entry):
            return None
        found = self._timetable.reserve(entry.job_id, entry.job, entry.seconds, self._excluded(entry))
        if found is None:
            self._without_time.append(entry.job_id)
        else:
            self._reserved.append(found)
        return found

    def place(self, entry: WaitingJob, *, ended: int) -> Placement | None:
        """Return where the policy places a job after the first running jobs have ended."""
        with self._after(ended, entry) as state:
            return self._policy.place(entry.job, state)

    def room(self, entry: WaitingJob, cost: MoveCosts, timeout: float) -> Rearrangement:
        """Return the cheapest moves after which a job starts now."""
        return make_room(
            entry.job,
            self._cluster,
            movable=self._snapshot.movable(),
            cost=cost,
            policy=self._policy,
            excluded=self._snapshot.excluded(),
            job_id=entry.job_id,
            timeout=timeout,
        )

    def _first(self, entry: WaitingJob) -> Placement:
        """Return the placement with which a job would start as the first of the queue."""
        need = entry.job, entry.machines
        if need not in self._firsts:
            found = self.place(entry, ended=0)
            if found is None:
                number = fewest(len(self._running), lambda ended: self.place(entry, ended=ended) is not None)
                found = self.place(entry, ended=len(self._running) if number is None else number)
            assert found is not None  # `never` has said that it fits after all have ended
            self._firsts[need] = found
        return self._firsts[need]

    def _seconds(self, placement: Placement) -> float:
        """Return after how many seconds all GPUs of a placement are free."""
        owners = set(self._owners(placement.gpus))
        return max((one.seconds_left for one in self._running if one.job_id in owners), default=0.0)

    def _owners(self, gpus: Iterable[int]) -> tuple[str, ...]:
        """Return the running jobs that hold some of the GPUs, the first to end first."""
        wanted = set(gpus)
        return tuple(one.job_id for one in self._running if not wanted.isdisjoint(one.gpus))

    def _excluded(self, entry: WaitingJob) -> list[str]:
        return entry.excluded(self._cluster.topology.machine_names)

    @contextmanager
    def _after(self, ended: int, entry: WaitingJob) -> Generator[Cluster]:
        """Open a block in which the first running jobs have ended, and a job gets no machine that it may not use."""
        with self._cluster.what_if() as state:
            for one in self._running[:ended]:
                state.release(one.job_id)
            for machine in self._excluded(entry):
                state.drain(machine)
            yield state


def _in_the_way(
    reserved: Sequence[Reservation], first: Placement, start: float, end: float
) -> tuple[str, ...]:
    """Return the jobs ahead that have GPUs of a placement between two times; if none has, all that run then."""
    gpus = set(first.gpus)
    meanwhile = [one for one in reserved if one.start < end and start < one.end]
    blocking = [one for one in meanwhile if not gpus.isdisjoint(one.placement.gpus)]
    return tuple(one.job_id for one in blocking or meanwhile)
