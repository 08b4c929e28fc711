"""Queue disciplines: walk along a queue and decide for each job whether it starts, is deferred, is rejected, or waits.

`walk` decides one job after the other. With `head_blocks`, no job starts before an older one that waits; without it,
jobs that fit may overtake. `BatchWalk` decides several jobs at once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, NamedTuple, Protocol

from topoplace import _checks
from topoplace.engine.plan import Plan, QueuedJob
from topoplace.placement import Placement, Refusal

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.jobs.job_graph import JobGraph


class WaitingJob(Protocol):
    """Protocol of a job in a queue: the attributes that a rule and the queue read."""

    postponed: int
    """Number of times at which the job was deferred; current when the job is decided, and when it leaves."""

    @property
    def job_id(self) -> str:
        """Return the job's id."""
        ...

    @property
    def job(self) -> JobGraph:
        """Return the job graph."""
        ...

    @property
    def submit_time(self) -> float:
        """Return the submission time, in seconds."""
        ...

    @property
    def requested_time(self) -> float:
        """Return the run time that the user requested, in seconds; NaN if unknown."""
        ...


def sizes_to_try(job: JobGraph, num_free: int) -> tuple[int, ...]:
    """Return the numbers of tasks with which a job may start on free GPUs, the largest first, or the least one."""
    if job.elastic is None or job.takes_parts:
        return job.sizes
    return tuple(size for size in job.sizes if size <= num_free) or job.sizes[-1:]


Outcome = Placement | Refusal | None
"""The decision about a queued job: its placement, its refusal, or None if it waits without a reason."""


def checked_queue(queue: object, cluster: Cluster) -> tuple[QueuedJob, ...]:
    """Return the queue as a tuple.

    Raise ValueError for the first entry that is not a `QueuedJob`, repeats an id, or whose job already runs.
    """
    entries: tuple[QueuedJob, ...] = _checks.sequence(queue, "queue", ValueError)
    if not set(map(type, entries)) <= {QueuedJob}:
        for i, entry in enumerate(entries):
            _checks.instance(entry, QueuedJob, f"queue[{i}]", ValueError)
    ids = {entry.job_id for entry in entries}
    if len(ids) < len(entries) or _running(ids, cluster):
        _refuse_ids(entries, cluster)
    return entries


def _running(ids: Set[str], cluster: Cluster) -> Set[str]:
    """Return which of these jobs run; of the queue and the running jobs, the smaller set is walked along."""
    if len(ids) < len(cluster.jobs):
        return set(filter(cluster.runs, ids))
    return ids & set(cluster.native.job_ids())


def _refuse_ids(entries: Sequence[QueuedJob], cluster: Cluster) -> None:
    known: set[str] = set()
    for i, entry in enumerate(entries):
        runs = cluster.runs(entry.job_id)
        if runs or entry.job_id in known:
            wrong = "is a running job" if runs else "is in the queue twice"
            raise ValueError(f"queue[{i}].job_id = {_checks.shown(entry.job_id)} {wrong}")
        known.add(entry.job_id)


class Outcomes:
    """The decisions collected during a walk along a queue."""

    def __init__(self) -> None:
        self._start: list[tuple[str, Placement]] = []
        self._defer: list[tuple[str, Refusal]] = []
        self._reject: list[tuple[str, Refusal]] = []

    def note(self, entry: QueuedJob, outcome: Outcome) -> bool:
        """Record the outcome of a job; return True if the job keeps waiting, False if it starts or is rejected."""
        if isinstance(outcome, Placement):
            self._start.append((entry.job_id, outcome))
        elif outcome is not None and outcome.permanent:
            self._reject.append((entry.job_id, outcome))
        else:
            if outcome is not None:
                self._defer.append((entry.job_id, outcome))
            return True
        return False

    def plan(self) -> Plan:
        """Return the recorded outcomes as a plan."""
        return Plan(tuple(self._start), tuple(self._defer), tuple(self._reject))


def walk(
    entries: Iterable[QueuedJob],
    decide: Callable[[QueuedJob], Outcome],
    *,
    head_blocks: bool,
    exhausted: Callable[[], bool] | None = None,
) -> Plan:
    """Return the plan that results from deciding the jobs in `entries` one by one, in the given order.

    decide: returns the outcome of one job. head_blocks: stop at the first job that waits. exhausted: called after each
    job that starts or waits; True means that no resources are left, and ends the walk.
    """
    outcomes = Outcomes()
    for entry in entries:
        outcome = decide(entry)
        waits = outcome is None or outcomes.note(entry, outcome)
        if waits and head_blocks:
            break
        if exhausted and (waits or isinstance(outcome, Placement)) and exhausted():
            break
    return outcomes.plan()


class Ask(NamedTuple):
    """The resources that a job needs, as a batch adds them up."""

    group: Hashable
    """Equal for interchangeable jobs: if one of them does not fit, no other does."""
    gpus: int
    """Number of GPUs that the job needs."""
    needs: tuple[int, ...]
    """Needs in the columns of `Hosts.free`: thousandths of CPUs, MB of memory, and drives."""


class BatchRule(Protocol):
    """An interface for rules that decide several waiting jobs at once.

    A rule copies the free resources when it is created; `decide` takes from this copy, and `free` returns the rest.
    """

    def ask(self, entry: QueuedJob) -> Ask | Refusal:
        """Return the resources that a job needs; for a job that can never run, return the refusal instead."""
        ...

    def free(self) -> tuple[int, Sequence[int]]:
        """Return the number of free GPUs, and the sums of `Hosts.free` by column: thousandths of CPUs, MB, drives."""
        ...

    def room(self, group: Hashable) -> int:
        """Return a quick upper bound on the number of jobs of this group that fit the free resources."""
        ...

    def decide(self, batch: Sequence[QueuedJob]) -> tuple[list[tuple[QueuedJob, Outcome]], bool]:
        """Return the decided jobs with their outcomes, and True if jobs of the batch disturbed each other.

        A job with outcome None may be tried again in a later batch. Jobs that are not returned found no placement; if
        jobs disturbed each other, they may find one in a batch of their own.
        """
        ...


class _Group(NamedTuple):
    """The waiting jobs of one group, oldest first, each with its number in the queue."""

    ask: Ask
    jobs: list[tuple[int, QueuedJob]]


_Member = tuple[QueuedJob, _Group]
"""A job with its group."""


class BatchWalk:
    """A walk along a queue in batches. A batch takes jobs, oldest first, and skips those that exceed the remaining
    resources.

    A job that cannot be placed is not tried again in this walk, nor are jobs with the same request. But if jobs of its
    batch disturbed each other, it is first tried once more in its own batch. A batch has no more jobs of one group than
    the rule's `room`. Its size therefore depends on the free resources, and not on the number of waiting jobs.

    repeat: False to decide one batch only.
    """

    def __init__(self, entries: Sequence[QueuedJob], rule: BatchRule, *, repeat: bool = True) -> None:
        self._rule = rule
        self._repeat = repeat
        self._outcomes = Outcomes()
        self._groups: dict[Hashable, _Group] = {}
        """The groups of jobs that wait and may find a place; those that do not fit or were deferred are dropped."""
        self._alone: list[_Member] = []
        """Jobs that found no place together with others of their batch, the oldest last; each is retried alone."""
        jobs_of: dict[int, list[tuple[int, QueuedJob]]] = {}
        asks: list[Ask] = []  # so that no other gets the identity of one
        for number, entry in enumerate(entries):
            ask = rule.ask(entry)
            jobs = jobs_of.get(id(ask))
            if jobs is not None:
                jobs.append((number, entry))
            elif isinstance(ask, Refusal):
                self._outcomes.note(entry, ask)
            else:
                asks.append(ask)
                jobs = jobs_of[id(ask)] = self._groups.setdefault(ask.group, _Group(ask, [])).jobs
                jobs.append((number, entry))

    def plan(self) -> Plan:
        """Return the plan that results from deciding batch after batch until no job is left to try; one batch without
        `repeat`.
        """
        while batch := self._next_batch():
            self._decide(batch)
            if not self._repeat:
                break
        return self._outcomes.plan()

    def _next_batch(self) -> list[_Member]:
        while self._alone:
            entry, group = self._alone.pop()
            if self._batch({group.ask.group: _Group(group.ask, [(0, entry)])}):
                return [(entry, group)]
        return self._batch(self._groups)

    def _batch(self, groups: Mapping[Hashable, _Group]) -> list[_Member]:
        """Return the oldest jobs of these groups whose requests together do not exceed what is free."""
        gpus, (cpus, memory, drives) = self._rule.free()
        heads = [(group.jobs[0][0], 0, group) for group in groups.values() if group.jobs]
        heapify(heads)
        batch: list[_Member] = []
        rooms: dict[Hashable, int] = {}
        while heads:
            _, at, group = heappop(heads)
            asked, (own_cpus, own_memory, own_drives) = group.ask.gpus, group.ask.needs
            if asked > gpus or own_cpus > cpus or own_memory > memory or own_drives > drives:
                continue
            if at == 0:
                rooms[group.ask.group] = self._rule.room(group.ask.group)
            if at == rooms[group.ask.group]:
                continue
            gpus, cpus, memory, drives = (
                *(gpus - asked, cpus - own_cpus),
                *(memory - own_memory, drives - own_drives),
            )
            batch.append((group.jobs[at][1], group))
            if at + 1 < len(group.jobs):
                heappush(heads, (group.jobs[at + 1][0], at + 1, group))
        for key in [key for key, room in rooms.items() if room == 0]:
            self._groups.pop(key, None)
        return batch

    def _decide(self, batch: Sequence[_Member]) -> None:
        results, disturbed = self._rule.decide([entry for entry, _ in batch])
        self._record(batch, {entry.job_id: outcome for entry, outcome in results})
        found = {entry.job_id for entry, _ in results}
        lost: dict[Hashable, _Member] = {}
        for entry, group in batch:
            if entry.job_id not in found:
                lost.setdefault(group.ask.group, (entry, group))
        if disturbed and len(batch) > 1:
            self._alone += reversed(lost.values())
        else:
            for key in lost:
                self._groups.pop(key, None)

    def _record(self, batch: Sequence[_Member], outcomes: Mapping[str, Outcome]) -> None:
        """Note the outcomes of a batch's jobs, in the order of decision; forget these jobs, and groups that wait."""
        members = {entry.job_id: (entry, group) for entry, group in batch}
        decided = {job_id: outcome for job_id, outcome in outcomes.items() if outcome is not None}
        for job_id, outcome in decided.items():
            entry, group = members[job_id]
            if self._outcomes.note(entry, outcome):
                self._groups.pop(group.ask.group, None)
        for group in {id(group): group for _, group in members.values()}.values():
            group.jobs[:] = [(number, entry) for number, entry in group.jobs if entry.job_id not in decided]
