"""A log of the GPUs that a policy would choose on a cluster that another scheduler runs, and of that scheduler's
choice.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Self

from topoplace import _checks, policies
from topoplace.engine.policy import Policy
from topoplace.errors import SnapshotError
from topoplace.jobs.job_graph import JobGraph
from topoplace.objectives.communication import communication_time
from topoplace.snapshot.records import Snapshot, local_numbers
from topoplace.snapshot.start_times import start_times
from topoplace.topology.topology import Topology


@dataclass(frozen=True, slots=True)
class Logged:
    """The GPUs that a job would have got and, once it runs, those that it has."""

    job_id: str
    would_get: dict[str, list[int]]
    """The GPUs that the policy chose when the job first fit: local numbers, by machine name."""
    would_take: float | None
    """Seconds of communication in a step on `would_get`, or per unit of edge weight; None if unknown."""
    got: dict[str, list[int]] | None = None
    """The GPUs that the scheduler gave to the job; None while it waits."""
    takes: float | None = None
    """Seconds of communication in a step on `got`; None if unknown."""

    def to_json(self) -> str:
        """Return the record as a line of the log."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Self:
        """Read a line of the log; SnapshotError for any other text."""
        try:
            found = cls(**json.loads(line))
        except (ValueError, TypeError, RecursionError):
            raise SnapshotError(f"{_checks.shown(line)} is no line of a log") from None
        _checks.text(found.job_id, "job_id", SnapshotError)
        return found


def log_only(
    snapshot: Snapshot, log: Iterable[Logged] = (), *, policy: Policy | str = policies.DEFAULT
) -> tuple[Logged, ...]:
    """Return the new lines of a log: jobs that could start now, and jobs of the log that run now.

    The snapshot is not changed. A job is logged when it first fits next to running jobs, in queue order, and again when
    the scheduler has started it.

    Args:
        log: The results of earlier calls, oldest first.
        policy: The policy that would decide.

    Raises:
        ValueError: Names a wrong argument.
    """
    known = {one.job_id: one for one in log}
    return (*_started(snapshot, known), *_would_start(snapshot, known, policy))


def _would_start(snapshot: Snapshot, known: dict[str, Logged], policy: Policy | str) -> Iterator[Logged]:
    topology = snapshot.cluster.topology
    jobs = {one.job_id: one.job for one in snapshot.waiting}
    for start in start_times(snapshot, policy=policy):
        if start.is_now and not start.reason and start.job_id not in known:
            gpus = local_numbers(start.gpus, topology)
            yield Logged(start.job_id, gpus, _seconds(jobs[start.job_id], start.gpus, topology))


def _started(snapshot: Snapshot, known: dict[str, Logged]) -> Iterator[Logged]:
    topology = snapshot.cluster.topology
    for one in known.values():
        running = snapshot.running.get(one.job_id)
        if running is not None and one.got is None:
            got = local_numbers(running.gpus, topology)
            yield replace(one, got=got, takes=_seconds(running.job, running.gpus, topology))


def _seconds(job: JobGraph | None, gpus: Sequence[int], topology: Topology) -> float | None:
    if job is None:
        return None
    seconds = communication_time(job, gpus, topology).seconds
    return seconds if math.isfinite(seconds) else None
