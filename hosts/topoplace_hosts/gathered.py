"""What readers of snapshots share: the cluster that a text describes, its GPUs in use, and its jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.errors import AllocationError, SnapshotError
from topoplace.jobs.job_graph import JobGraph
from topoplace.snapshot.records import RunningJob, Scheduler, Snapshot, WaitingJob
from topoplace.topology.topology import Topology

MOST_JOBS: Final = 100_000
"""Limit on the jobs of a snapshot; more are refused as a mistake."""
MOST_GPUS: Final = 1 << 16
"""Limit on the GPUs of a job; more are refused as a mistake."""


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


def idle(described: Callable[[Topology | None], Topology], topology: Topology | None) -> Gathered:
    """Return the cluster without jobs; GPUs that get no jobs are unhealthy or drained.

    described: returns the nodes of the text; its argument is a template for each node, or None. topology: the cluster,
    or one machine as the template; None for neither. Raise SnapshotError if the topology and the text are about
    different machines.
    """
    nodes = described(None)
    if topology is None:
        return Gathered(Cluster(nodes))
    if not set(topology.machine_names).isdisjoint(nodes.machine_names):
        found = Gathered(Cluster(topology))
        _drain(found, nodes)
        return found
    if topology.num_machines > 1:
        listed, have = _checks.some(nodes.machine_names), _checks.some(topology.machine_names)
        raise SnapshotError(f"the text is about other machines ({listed}) than the topology ({have})")
    return Gathered(Cluster(described(topology)))


def _drain(found: Gathered, nodes: Topology) -> None:
    """Drain the GPUs that are unhealthy on their node, and machines that the text does not describe."""
    topology = found.cluster.topology
    for name, gpus in topology.gpus_of.items():
        theirs = nodes.gpus_of.get(name)
        if theirs is None:
            found.cluster.drain(name)
            continue
        if len(theirs) != len(gpus):
            raise SnapshotError(f"node {name} has {len(theirs)} GPUs, but {len(gpus)} in the topology")
        for mine, gpu in zip(gpus, theirs, strict=True):
            if not nodes.gpus[gpu].healthy:
                found.cluster.drain(mine)
    if missing := [name for name in topology.machine_names if name not in nodes.gpus_of]:
        found.notes.append(
            f"Machines that are no nodes of the text, and are drained: {_checks.some(missing)}."
        )
    if others := [name for name in nodes.machine_names if name not in topology.gpus_of]:
        found.notes.append(f"Nodes that the topology does not have, and left out: {_checks.some(others)}.")
    found.notes += [note for note in nodes.notes if note.startswith(("Nodes", "GPUs that Slurm"))]


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
