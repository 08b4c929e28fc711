"""Bring a cluster and a journal in step with the scheduler, which is always right; differences are returned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.errors import JournalError
from topoplace.state.entry import Device, Entry, Stage, named

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.state.journal import Journal

KINDS = ("unknown", "moved", "withdrawn", "overlap")
"""The kinds of differences; see `Difference`."""
_NO_GRAPHS: Mapping[str, JobGraph] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Difference:
    """What the journal said of a job, and what the scheduler says.

    kind: "unknown" if the job runs and the journal does not know it, "moved" if it has other GPUs, "withdrawn"
    if it was decided but the scheduler knows nothing of that, "overlap" if it shares GPUs with a job that the scheduler
    listed before. A job of which only the order of GPUs differs is no difference.
    """

    job_id: str
    kind: str
    journal: tuple[Device, ...]
    """GPUs by name, () if the journal knows none."""
    scheduler: tuple[Device, ...]
    """GPUs by name, () if the scheduler knows none."""


def reconcile(
    cluster: Cluster,
    running: Mapping[str, Sequence[int]],
    journal: Journal,
    *,
    pending: Mapping[str, Sequence[int]] = MappingProxyType({}),
    graphs: Mapping[str, JobGraph] = _NO_GRAPHS,
) -> tuple[Difference, ...]:
    """Make the jobs of `cluster`, and the last entries of `journal`, those that the scheduler has.

    running: the GPUs of each job that runs, by job id, as the scheduler says. pending: the GPUs of jobs that have been
    told where to start and have not started. graphs: the job graphs of some of them, which `cluster` keeps.
    A cluster of a restarted program is rebuilt by calling this function with an empty one. Jobs hold drained GPUs, too.
    All new entries of the journal are one transaction. Returns the differences, by job in the order of the scheduler's
    list; normal progress is none: a decision that started (confirmed), and a confirmed job that has ended, appear as
    entries only.
    """
    _checks.instance(cluster, Cluster, "cluster", JournalError)
    held = {**running, **pending}
    _match_cluster(cluster, held, graphs)
    names = {job_id: named(cluster.topology, gpus) for job_id, gpus in held.items()}
    found = [*_overlaps(cluster, held, names), *_changes(names, running, journal.latest())]
    journal.append(*[entry for _, entry in found if entry is not None])
    return tuple(difference for difference, _ in found if difference is not None)


_Found = tuple[Difference | None, Entry | None]


def _match_cluster(
    cluster: Cluster, held: Mapping[str, Sequence[int]], graphs: Mapping[str, JobGraph]
) -> None:
    """Release and allocate until the cluster has the jobs of `held`; an overlapping job gets what is left."""
    for job_id, own in cluster.allocations.items():
        if set(own) != set(held.get(job_id, ())):
            cluster.release(job_id)
    drained = frozenset(cluster.drained_gpus())
    for job_id, gpus in held.items():
        if cluster.gpus_of(job_id):
            continue
        free = [gpu for gpu in gpus if cluster.owner(gpu) is None]
        if free:
            graph = graphs.get(job_id)
            _allocate(cluster, job_id, free, graph if len(free) == len(gpus) else None, drained)


def _allocate(
    cluster: Cluster, job_id: str, gpus: Sequence[int], graph: JobGraph | None, drained: frozenset[int]
) -> None:
    """Allocate GPUs, drained ones included: a job that runs on a GPU does so until it ends."""
    opened = sorted(drained.intersection(gpus))
    for gpu in opened:
        cluster.undrain(gpu)
    try:
        if graph is not None and graph.num_tasks != len(gpus):
            graph = None
        cluster.allocate(job_id, gpus, graph)
    finally:
        for gpu in opened:
            cluster.drain(gpu)


def _overlaps(
    cluster: Cluster, held: Mapping[str, Sequence[int]], names: Mapping[str, tuple[Device, ...]]
) -> Iterator[_Found]:
    for job_id, gpus in held.items():
        if len(cluster.gpus_of(job_id)) != len(gpus):
            yield (
                Difference(
                    job_id, "overlap", named(cluster.topology, cluster.gpus_of(job_id)), names[job_id]
                ),
                None,
            )


def _changes(
    names: Mapping[str, tuple[Device, ...]], running: Iterable[str], latest: Mapping[str, Entry]
) -> Iterator[_Found]:
    """Yield what differs between the journal's last entries and the scheduler's jobs, and the entry that settles it."""
    runs = set(running)
    for job_id, gpus in names.items():
        known = latest.get(job_id)
        if known is None or known.stage.final:
            if job_id in runs:
                entry = Entry(job_id, Stage.CONFIRMED, gpus, "the scheduler started it by its own choice")
                yield Difference(job_id, "unknown", (), gpus), entry
            else:
                yield (
                    Difference(job_id, "unknown", (), gpus),
                    Entry(job_id, Stage.TOLD, gpus, "found at the scheduler"),
                )
        elif set(known.gpus) != set(gpus):
            stage = Stage.CONFIRMED if job_id in runs else Stage.TOLD
            entry = Entry(job_id, stage, gpus, "the scheduler has other GPUs")
            yield Difference(job_id, "moved", known.gpus, gpus), entry
        elif job_id in runs and known.stage is not Stage.CONFIRMED:
            yield None, Entry(job_id, Stage.CONFIRMED, known.gpus, known.why)
        elif job_id not in runs and known.stage is not Stage.TOLD:
            yield None, Entry(job_id, Stage.TOLD, known.gpus, known.why)
    for job_id, known in latest.items():
        if job_id not in names and not known.stage.final:
            if known.stage.in_flight:
                entry = Entry(job_id, Stage.WITHDRAWN, (), "the scheduler knows nothing of the decision")
                yield Difference(job_id, "withdrawn", known.gpus, ()), entry
            else:
                yield None, Entry(job_id, Stage.ENDED, (), "the scheduler has ended it")
