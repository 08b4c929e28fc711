"""The walk along a queue: each job starts, is deferred, is rejected, or waits.

Disciplines: with `head_blocks`, no job may start before an older one that waits; without, jobs that fit overtake. A
batch discipline (`BatchWalk`) decides several jobs at once.
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
"""The placement with which a job starts, its refusal, or None for a job that waits without a reason worth noting."""


def checked_queue(queue: object) -> tuple[QueuedJob, ...]:
    """Return the entries of a queue; ValueError names the first that is no `QueuedJob`."""
    entries = _checks.sequence(queue, "queue", ValueError)
    if not set(map(type, entries)) <= {QueuedJob}:
        for i, entry in enumerate(entries):
            _checks.instance(entry, QueuedJob, f"queue[{i}]", ValueError)
    return entries


def refuse_duplicates(entries: Sequence[QueuedJob]) -> None:
    """Raise ValueError for an id that is no text, or is in the queue twice."""
    known: set[str] = set()
    for i, entry in enumerate(entries):
        job_id = _checks.text(entry.job_id, f"queue[{i}].job_id", ValueError)
        if job_id in known:
            raise ValueError(f"queue[{i}].job_id = {_checks.shown(job_id)} is in the queue twice")
        known.add(job_id)


class Outcomes:
    """The outcomes of a walk so far."""

    def __init__(self) -> None:
        self._start: list[tuple[str, Placement]] = []
        self._defer: list[tuple[str, Refusal]] = []
        self._reject: list[tuple[str, Refusal]] = []

    def note(self, entry: QueuedJob, outcome: Outcome) -> bool:
        """Note the outcome of a job; return whether it still waits."""
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
        """Return the outcomes as a plan."""
        return Plan(tuple(self._start), tuple(self._defer), tuple(self._reject))


def walk(
    entries: Iterable[QueuedJob],
    decide: Callable[[QueuedJob], Outcome],
    *,
    head_blocks: bool,
    exhausted: Callable[[], bool] | None = None,
) -> Plan:
    """Decide jobs one by one, oldest first.

    exhausted: asked after each start and wait; the walk ends where it returns True.
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
    """The resources of a job, as a batch counts them."""

    group: Hashable
    """Equal for jobs that fit in the same situations."""
    gpus: int
    needs: NDArray[np.int64]
    """The amount of each column of `Hosts.free`."""


class BatchRule(Protocol):
    """A rule that decides several jobs at once and uses up its own copy of the free resources."""

    def ask(self, entry: QueuedJob) -> Ask | Refusal:
        """Return the resources a job needs, or why it can never run."""
        ...

    def free(self) -> tuple[int, NDArray[np.int64]]:
        """Return the number of free GPUs, and the sum of each column of `Hosts.free`."""
        ...

    def decide(self, batch: Sequence[QueuedJob]) -> tuple[list[tuple[QueuedJob, Outcome]], bool]:
        """Return the decided jobs in order, and whether jobs of the batch competed for the same places.

        A job with the outcome None may be tried again; jobs that are not returned do not fit.
        """
        ...


class BatchWalk:
    """A walk in batches of the oldest jobs whose requests together do not exceed the free resources.

    If some jobs of a batch cannot be placed, the next batch contains jobs with other requests.
    """

    def __init__(self, entries: Sequence[QueuedJob], rule: BatchRule) -> None:
        self._rule = rule
        self._outcomes = Outcomes()
        self._waiting: list[QueuedJob] = []
        self._asks: dict[str, Ask] = {}
        self._failed: set[Hashable] = set()
        """Groups that found no place."""
        self._alone: list[QueuedJob] = []
        """Jobs that found no place beside others of their batch, and get a batch of their own."""
        for entry in entries:
            ask = rule.ask(entry)
            if isinstance(ask, Refusal):
                self._outcomes.note(entry, ask)
            else:
                self._waiting.append(entry)
                self._asks[entry.job_id] = ask

    def plan(self) -> Plan:
        """Decide batch after batch until none is left to try."""
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
