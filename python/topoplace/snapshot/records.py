"""The contents of a snapshot: the cluster with its running jobs, and the waiting jobs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.engine.policy import Policy
from topoplace.errors import SnapshotError
from topoplace.jobs.job_graph import JobGraph
from topoplace.topology.topology import Topology


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
