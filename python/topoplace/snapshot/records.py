"""The contents of a snapshot: the cluster with its running jobs, and the waiting jobs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.engine.policy import Policy
from topoplace.errors import AllocationError, SnapshotError
from topoplace.jobs.job_graph import JobGraph
from topoplace.topology.topology import Topology

MOST_JOBS: Final = 100_000
"""Limit on the jobs of a snapshot; more are refused as a mistake."""
MOST_GPUS: Final = 1 << 16
"""Limit on the GPUs of a job; more are refused as a mistake."""


@dataclass(frozen=True, slots=True)
class Scheduler:
    """The scheduler that started the jobs of a snapshot."""

    name: str
    moving: str
    """The commands that move a job, as no scheduler does so itself."""
    divided: Callable[[Policy], Policy] | None = None
    """Function that returns a policy that divides jobs over nodes as this scheduler does; None if nothing limits the
    division.
    """


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that holds GPUs."""

    job_id: str
    gpus: tuple[int, ...]
    seconds_left: float = math.inf
    """Seconds after the snapshot at which the job must end; infinite if unknown."""
    job: JobGraph | None = None
    """The job's needs wherever it runs, such as GPUs on each node; None if unknown."""
    machines: frozenset[str] | None = None
    """Names of the machines that the job may use; None for all."""
    stays: str = ""
    """The reason why the job cannot be moved; "" if it can."""


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A job that waits."""

    job_id: str
    job: JobGraph
    submitted: float = 0.0
    """Submission time in seconds, from an origin that is the same for all jobs."""
    priority: float = 0.0
    """The scheduler's priority; the highest comes first."""
    seconds: float = math.inf
    """Limit on the run time, in seconds; infinite if there is none."""
    machines: frozenset[str] | None = None
    """Names of the machines that the job may use; None for all."""
    held: str = ""
    """The reason why the job may not start even on free GPUs, such as a dependency; "" if it may."""

    def excluded(self, names: Sequence[str]) -> list[str]:
        """Return those of the machine names that the job may not use."""
        return excluded(self.machines, names)


def excluded(machines: frozenset[str] | None, names: Sequence[str]) -> list[str]:
    """Return those of the names that are not in `machines`; [] if `machines` is None, for a job that may use all."""
    return [] if machines is None else [name for name in names if name not in machines]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cluster at one moment."""

    cluster: Cluster
    """The cluster with the running jobs; GPUs and machines that cannot get jobs are drained or held."""
    running: Mapping[str, RunningJob]
    """The running jobs by id, the first to end first."""
    waiting: tuple[WaitingJob, ...]
    """The waiting jobs, the highest priority first, then the oldest."""
    notes: tuple[str, ...] = ()
    """Facts that the text does not state, or that the snapshot leaves out."""
    numbers: Mapping[str, str] = field(default_factory=dict[str, str])
    """The ids of jobs, such as 102_3, by the scheduler's own number, such as 103, if it differs."""
    scheduler: Scheduler | None = None
    """The scheduler of the snapshot; None if nothing limits how jobs are divided and moved."""

    def policy(self, policy: Policy) -> Policy:
        """Return `policy` with the scheduler's division of jobs; Slurm, for example, gives each group within a machine
        one node.
        """
        divided = self.scheduler and self.scheduler.divided
        return divided(policy) if divided else policy

    def movable(self) -> list[str]:
        """Return the ids of the running jobs that the scheduler can stop and start elsewhere."""
        return [one.job_id for one in self.running.values() if not one.stays]

    def excluded(self) -> dict[str, list[str]]:
        """Return, by job id, the names of the machines that a running or waiting job may not use; other jobs are left
        out.
        """
        allowed = {one.job_id: one.machines for one in self.running.values()}
        allowed |= {one.job_id: one.machines for one in self.waiting}
        names = self.cluster.topology.machine_names
        others = {machines: excluded(machines, names) for machines in set(allowed.values())}
        return {job_id: others[machines] for job_id, machines in allowed.items() if machines is not None}

    def seconds_left(self, duration: float | None = None) -> dict[str, float]:
        """Return the ends of running jobs, in seconds from now, for `tp.simulate`.

        duration: the seconds left of jobs whose ends are unknown; None leaves them out, so that they never end.
        """
        ends = {
            one.job_id: duration
            if duration is not None and one.seconds_left == math.inf
            else one.seconds_left
            for one in self.running.values()
        }
        return {job_id: left for job_id, left in ends.items() if left < math.inf}

    def waiting_job(self, job_id: str) -> WaitingJob:
        """Return a waiting job by its id, by its number, or by part of its id: after a slash, or before an underscore.

        Raises:
            SnapshotError: No job of this id waits, or several match.
        """
        job_id = self.numbers.get(job_id, job_id)
        if found := [one for one in self.waiting if one.job_id == job_id]:
            return found[0]
        if job_id in self.running:
            raise SnapshotError(f"job {_checks.shown(job_id)} runs already")
        found = [one for one in self.waiting if job_id in _short_names(one.job_id)]
        if len({one.job_id.rpartition("/")[0] for one in found}) > 1:
            listed = ", ".join(one.job_id for one in found[:5])
            raise SnapshotError(f"job {_checks.shown(job_id)} may be any of {listed}")
        if not found:
            raise SnapshotError(f"job {_checks.shown(job_id)} does not wait{self._why_not(job_id)}")
        return found[0]

    def _why_not(self, job_id: str) -> str:
        """Return the note on a job that does not wait, or which jobs wait."""
        for note in self.notes:
            if re.search(rf"\b{re.escape(job_id)}\b", note):
                return f": {note}"
        known = ", ".join(one.job_id for one in self.waiting[:5]) or "none"
        more = f" and {len(self.waiting) - 5} more" if len(self.waiting) > 5 else ""
        return f"; these do: {known}{more}"


def _short_names(job_id: str) -> Iterator[str]:
    name = job_id.rpartition("/")[2]
    yield name
    yield name.partition("_")[0] if name.replace("_", "").isdigit() else name


@dataclass(slots=True)
class Gathered:
    """The jobs by id and the notes that a reader has found so far."""

    cluster: Cluster
    scheduler: Scheduler | None = None
    running: dict[str, RunningJob] = field(default_factory=dict[str, RunningJob])
    waiting: dict[str, WaitingJob] = field(default_factory=dict[str, WaitingJob])
    notes: list[str] = field(default_factory=list[str])
    numbers: dict[str, str] = field(default_factory=dict[str, str])
    assumed: list[str] = field(default_factory=list[str])
    """The running jobs, or pods, whose GPUs the text does not state."""

    def runs(self, job: RunningJob, where: str) -> None:
        """Add a job that holds GPUs; SnapshotError names the job if it cannot hold them."""
        self._refuse_known(job.job_id, where)
        try:
            self.cluster.record(job.job_id, job.gpus, job.job)
        except AllocationError as error:
            raise SnapshotError(f"{where}: {error}") from None
        self.running[job.job_id] = job

    def waits(self, job: WaitingJob, where: str) -> None:
        """Add a job that waits."""
        self._refuse_known(job.job_id, where)
        self.waiting[job.job_id] = job

    def name(self, number: str, job_id: str) -> None:
        """Store the scheduler's own number of a job; if several jobs have a number, the first keeps it.

        Left out are "", the job's id, and the id of a whole array or of a whole job of several components.
        """
        if number not in ("", job_id, job_id.partition("_")[0], job_id.partition("+")[0]):
            self.numbers.setdefault(number, job_id)

    def _refuse_known(self, job_id: str, where: str) -> None:
        if job_id in self.running or job_id in self.waiting:
            raise SnapshotError(f"{where} appears twice")
        if len(self.running) + len(self.waiting) == MOST_JOBS:
            raise SnapshotError(f"{where}: more than {MOST_JOBS} jobs")

    def finished(self) -> Snapshot:
        """Return the snapshot, with the jobs in order."""
        running = sorted(self.running.values(), key=lambda one: one.seconds_left)
        waiting = sorted(self.waiting.values(), key=lambda one: (-one.priority, one.submitted))
        if self.assumed:
            self.notes.append(
                f"Which GPUs these have is not given, and taken to be the lowest: {_checks.some(self.assumed)}."
            )
        notes = tuple(dict.fromkeys((*self.cluster.topology.notes, *self.notes)))
        return Snapshot(
            self.cluster,
            {one.job_id: one for one in running},
            tuple(waiting),
            notes,
            self.numbers,
            self.scheduler,
        )


def on_each_machine(gpus: Sequence[int], topology: Topology) -> dict[int, list[int]]:
    """Return GPUs by the number of their machine, in the given order."""
    found: dict[int, list[int]] = {}
    for gpu in gpus:
        found.setdefault(int(topology.machine_of[gpu]), []).append(gpu)
    return found


def local_numbers(gpus: Sequence[int], topology: Topology) -> dict[str, list[int]]:
    """Return the local numbers of GPUs, by the name of their machine."""
    return {
        topology.machine_names[machine]: [int(topology.local_index[gpu]) for gpu in own]
        for machine, own in on_each_machine(gpus, topology).items()
    }


def with_models_of(job: JobGraph, gpus: Sequence[int], topology: Topology) -> JobGraph:
    """Return a running job that requires the GPU models that it has now, if they are known."""
    models = {topology.gpus[gpu].model for gpu in gpus}
    known = tuple(sorted(model for model in models if model))
    return job if job.gpu_model is not None or None in models else job.with_(gpu_model=known)


def lowest_free(cluster: Cluster, machine: str, count: int, where: str) -> tuple[int, ...]:
    """Return the lowest free GPUs of a machine; SnapshotError names the job if there are too few."""
    gpus = cluster.topology.gpus_of.get(machine)
    if gpus is None:
        raise SnapshotError(f"{where} runs on {_checks.shown(machine)}, which the topology does not have")
    free = [gpu for gpu in gpus if not cluster.shares_of(gpu)]
    if len(free) < count:
        raise SnapshotError(
            f"{where} fits nowhere: it runs on {count} GPUs of {_checks.shown(machine)}, "
            f"which has {len(gpus)}, and other jobs hold {len(gpus) - len(free)}"
        )
    return tuple(free[:count])


def moment(text: str) -> float:
    """Return a time, given as text or as seconds since 1970, in seconds since 1970; 0 for any other text."""
    if text.isascii() and text.isdigit() and len(text) < 16:
        return float(text)
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return 0.0
