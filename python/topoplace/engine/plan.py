"""The queue a policy is shown, and its answers: a plan, or an explanation of one decision."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from topoplace import _checks
from topoplace.errors import warn_deprecated
from topoplace.jobs.job_graph import JobGraph

if TYPE_CHECKING:
    from topoplace.placement import Placement, Refusal


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A waiting job: its id, its needs, and when it was submitted (seconds)."""

    job_id: str
    job: JobGraph
    submit_time: float = 0.0
    postponed: int = 0
    """Number of plans that have deferred it."""

    def __post_init__(self) -> None:
        _checks.instance(self.job, JobGraph, "job", ValueError)
        _checks.integer(self.postponed, "postponed", ValueError, low=0, high=1 << 62)


@dataclass(frozen=True, slots=True)
class Plan:
    """A policy's decisions for a queue. Jobs in none of the fields simply wait.

    `start` is in the order to allocate in; `defer` says why a job has to wait; `reject` names jobs that can never
    run on this topology, with the reason; `move` gives running jobs a new placement.
    """

    start: tuple[tuple[str, Placement], ...] = ()
    defer: tuple[tuple[str, Refusal], ...] = ()
    reject: tuple[tuple[str, Refusal], ...] = ()
    move: tuple[tuple[str, Placement], ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """A decision with its reasons: the candidates, best first, each a different GPU set, or why there is none.

    `refusal` is None where `place` returns the first candidate; there may be candidates beside a refusal when the
    policy prefers waiting to taking them.
    """

    policy: str
    candidates: tuple[Placement, ...]
    refusal: Refusal | None = None

    @property
    def deferred(self) -> Refusal | None:
        """Deprecated name of `refusal`."""
        warn_deprecated("Explanation.deferred", "Explanation.refusal")
        return self.refusal


def different_gpu_sets(placements: Iterable[Placement], count: int) -> tuple[Placement, ...]:
    """Return the first placement of each GPU set among the first `2 * count`, at most `count`."""
    found: dict[frozenset[int], Placement] = {}
    for placement in islice(placements, 2 * count):
        found.setdefault(frozenset(placement.gpus), placement)
        if len(found) == count:
            break
    return tuple(found.values())
