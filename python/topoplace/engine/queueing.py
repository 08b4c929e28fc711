"""Queue disciplines: walk along a queue and decide for each job whether it starts, is deferred, is rejected, or waits.

`walk` decides one job after the other. With `head_blocks`, no job starts before an older one that waits; without it,
jobs that fit may overtake. `BatchWalk` decides several jobs at once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from topoplace import _checks
from topoplace.engine.plan import Plan, QueuedJob
from topoplace.placement import Placement, Refusal

Outcome = Placement | Refusal | None
"""The decision about a queued job: its placement, its refusal, or None if it waits without a reason."""


def checked_queue(queue: object) -> tuple[QueuedJob, ...]:
    """Return the queue as a tuple; ValueError names the first entry that is not a `QueuedJob`."""
    entries = _checks.sequence(queue, "queue", ValueError)
    if not set(map(type, entries)) <= {QueuedJob}:
        for i, entry in enumerate(entries):
            _checks.instance(entry, QueuedJob, f"queue[{i}]", ValueError)
    return entries


def refuse_duplicates(entries: Sequence[QueuedJob]) -> None:
    """Raise ValueError if a job id is not a string or occurs twice in the queue."""
    known: set[str] = set()
    for i, entry in enumerate(entries):
        job_id = _checks.text(entry.job_id, f"queue[{i}].job_id", ValueError)
        if job_id in known:
            raise ValueError(f"queue[{i}].job_id = {_checks.shown(job_id)} is in the queue twice")
        known.add(job_id)


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
    """The resources that a job asks for, in the form in which a batch adds them up."""

    group: Hashable
    """Equal for interchangeable jobs: if one of them does not fit, no other does."""
    gpus: int
    """Number of GPUs the job needs."""
    needs: NDArray[np.int64]
    """CPUs, MB of memory and drives the job needs, the columns of `Hosts.free`."""


class BatchRule(Protocol):
    """An interface for rules that decide several waiting jobs at once.

    A rule copies the free resources when it is created; `decide` takes from this copy, and `free` returns what is left.
    """

    def ask(self, entry: QueuedJob) -> Ask | Refusal:
        """Return the resources a job needs; if it can never run, return the refusal instead."""
        ...

    def free(self) -> tuple[int, NDArray[np.int64]]:
        """Return the number of free GPUs, and the totals of free CPUs, MB and drives over all machines."""
        ...

    def decide(self, batch: Sequence[QueuedJob]) -> tuple[list[tuple[QueuedJob, Outcome]], bool]:
        """Return the decided jobs with their outcomes, and True if jobs of the batch disturbed each other.

        A job with outcome None may be tried again in a later batch. Jobs that are not returned found no place; if jobs
        disturbed each other, they might in a batch of their own.
        """
        ...


class BatchWalk:
    """A walk along a queue in batches. A batch takes jobs, oldest first, and skips those that exceed what is left free.

    A job that cannot be placed is not tried again in this walk, and nor are jobs with the same request. But if jobs of
    its batch disturbed each other, it is first tried once more in a batch of its own.
    """

    def __init__(self, entries: Sequence[QueuedJob], rule: BatchRule) -> None:
        self._rule = rule
        self._outcomes = Outcomes()
        self._waiting: list[QueuedJob] = []
        self._asks: dict[str, Ask] = {}
        self._failed: set[Hashable] = set()
        """The groups of jobs that do not fit or were deferred; their jobs are not tried again."""
        self._alone: list[QueuedJob] = []
        """Jobs that found no place together with others of their batch, and are retried in a batch of their own."""
        for entry in entries:
            ask = rule.ask(entry)
            if isinstance(ask, Refusal):
                self._outcomes.note(entry, ask)
            else:
                self._waiting.append(entry)
                self._asks[entry.job_id] = ask

    def plan(self) -> Plan:
        """Return the plan that results from deciding batch after batch until no job is left to try."""
        while batch := self._next_batch():
            self._decide(batch)
        return self._outcomes.plan()

    def _next_batch(self) -> list[QueuedJob]:
        gpus, left = self._rule.free()
        batch: list[QueuedJob] = []
        alone = self._alone.pop() if self._alone else None
        for entry in self._waiting:
            if alone is not None and entry is not alone:
                continue
            ask = self._asks[entry.job_id]
            if gpus <= 0 and ask.gpus:
                continue
            asks_too_much = ask.gpus > gpus or (ask.needs > left).any()
            if not asks_too_much and ask.group not in self._failed:
                gpus, left = gpus - ask.gpus, left - ask.needs
                batch.append(entry)
        return batch if batch or alone is None else self._next_batch()

    def _decide(self, batch: Sequence[QueuedJob]) -> None:
        results, disturbed = self._rule.decide(batch)
        for entry, outcome in results:
            if self._outcomes.note(entry, outcome) and outcome is not None:
                self._failed.add(self._asks[entry.job_id].group)
        found = {entry.job_id for entry, _ in results}
        lost = {
            self._asks[entry.job_id].group: entry for entry in reversed(batch) if entry.job_id not in found
        }
        if disturbed and len(batch) > 1:
            self._alone += lost.values()
        else:
            self._failed.update(lost)
        decided = {entry.job_id for entry, outcome in results if outcome is not None}
        self._waiting = [entry for entry in self._waiting if entry.job_id not in decided]
