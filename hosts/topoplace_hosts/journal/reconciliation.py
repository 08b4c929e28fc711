"""Bring a cluster and a journal in step with the scheduler, which is always right; differences are returned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.errors import JournalError
from topoplace.placement import Placement
from topoplace_hosts.journal.entry import Device, Entry, Holding, Stage, named
from topoplace_hosts.journal.recording import record

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph
    from topoplace_hosts.journal.journal import Journal

KINDS = ("unknown", "moved", "withdrawn", "overlap", "partition", "slices", "hosts")
"""The kinds of differences; see `Difference`."""
_NO_GRAPHS: Mapping[str, JobGraph] = MappingProxyType({})
_Given = Mapping[str, Sequence[int] | Placement]


@dataclass(frozen=True, slots=True)
class Difference:
    """A job about which journal and scheduler differ.

    The same GPUs in another order are no difference. The last three kinds are only of jobs that are new to the cluster.

    Args:
        kind: "unknown": the job runs, and the journal does not have it. "moved": it has other GPUs than in the journal.
            "withdrawn": it was decided, but the scheduler does not have it, or has it where it was before a repair.
            "overlap": it holds GPUs, or shares or
            slices of them, that a job earlier in the list holds. "partition": its GPUs are no partition. "slices": its
            slices are unknown, or it runs on a whole GPU that was cut into idle slices. "hosts": its machines lack its
            CPUs, memory or drives.
    """

    job_id: str
    kind: str
    journal: tuple[Device, ...]
    """GPUs by name; () if the journal has none. "overlap" has those that the cluster gives the job."""
    scheduler: tuple[Device, ...]
    """GPUs by name; () if the scheduler has none."""


def reconcile(
    cluster: Cluster,
    running: _Given,
    journal: Journal,
    *,
    pending: _Given = MappingProxyType({}),
    graphs: Mapping[str, JobGraph] = _NO_GRAPHS,
) -> tuple[Difference, ...]:
    """Make `cluster` and the last entries of `journal` agree with the jobs that the scheduler has.

    The journal supplies what the arguments leave out: a job's graph and its share of GPUs. If the job is still on the
    same GPUs, it also supplies slices, CPUs, memory and drives.

    To rebuild the cluster of a restarted program, pass an empty one; see also `recall`. Every running job is recorded,
    even on GPUs that are out of service or are no partition. Among overlapping jobs, those on the GPUs that the journal
    has come first; a later job gets the rest. All new entries of the journal are one transaction.

    Args:
        running: The GPUs of each running job, by job id. A `Placement` also gives slices and what is held on hosts.
        pending: The same for jobs that have their orders and have not started; `running` counts for a job in both.
        graphs: The job graphs of some of these jobs, by job id; `cluster` keeps them.

    Returns:
        The differences, by job in the order of the scheduler's list. Normal progress is no difference: a decision that
        started, and a confirmed job that finished, only add entries.

    Raises:
        JournalError: Names a wrong job id or GPU, before anything changes.
    """
    _checks.instance(cluster, Cluster, "cluster", JournalError)
    runs, waits = _checked(running, "running", cluster), _checked(pending, "pending", cluster)
    given = runs | {job_id: where for job_id, where in waits.items() if job_id not in runs}
    latest = journal.latest()
    undone = _before_repairs(cluster, given, latest, journal)
    found = [
        *_match_cluster(cluster, given, graphs, {**latest, **undone}),
        *_changes(cluster, given, running, latest, undone),
    ]
    journal.append(*[entry for _, entry in found if entry is not None])
    return tuple(difference for difference, _ in found if difference is not None)


_Found = tuple[Difference | None, Entry | None]


def _checked(given: _Given, what: str, cluster: Cluster) -> dict[str, Placement | tuple[int, ...]]:
    """Return the jobs with their GPUs, each GPU once; JournalError names what cannot be one."""
    last = cluster.topology.num_gpus - 1
    checked: dict[str, Placement | tuple[int, ...]] = {}
    for job_id, where in given.items():
        _checks.text(job_id, f"a job id in {what}", JournalError)
        if isinstance(where, Placement):
            if where.topology is not cluster.topology and where.topology != cluster.topology:
                raise JournalError(f"{what}[{job_id!r}]: the placement is on another topology")
            checked[job_id] = where
            continue
        listed = enumerate(_checks.ordered(where, f"{what}[{job_id!r}]", JournalError))
        gpus = [
            _checks.integer(g, f"{what}[{job_id!r}][{i}]", JournalError, low=0, high=last) for i, g in listed
        ]
        checked[job_id] = tuple(dict.fromkeys(gpus))
    return checked


def _gpus(where: Placement | tuple[int, ...]) -> tuple[int, ...]:
    return where.gpus if isinstance(where, Placement) else where


def _before_repairs(
    cluster: Cluster,
    given: Mapping[str, Placement | tuple[int, ...]],
    latest: Mapping[str, Entry],
    journal: Journal,
) -> dict[str, Entry]:
    """Return the entry before its repairs of each job that the scheduler has where it was then, not where it is now."""
    found: dict[str, Entry] = {}
    for job_id, where in given.items():
        known, gpus = latest.get(job_id), set(named(cluster.topology, _gpus(where)))
        if known is None or known.stage is not Stage.REPAIR or set(known.gpus) == gpus:
            continue
        if (before := _before_repair(journal.history(job_id), gpus)) is not None:
            found[job_id] = before
    return found


def _before_repair(history: Iterable[Entry], gpus: set[Device]) -> Entry | None:
    """Return a job's last entry with these GPUs, if only repairs came after it."""
    for entry in reversed(tuple(history)):
        if set(entry.gpus) == gpus:
            return entry
        if entry.stage is not Stage.REPAIR:
            break
    return None


def _match_cluster(
    cluster: Cluster,
    given: Mapping[str, Placement | tuple[int, ...]],
    graphs: Mapping[str, JobGraph],
    latest: Mapping[str, Entry],
) -> Iterator[_Found]:
    """Release and record until the cluster has the given jobs; yield what differs in what they hold."""
    known: dict[str, JobGraph] = dict(cluster.jobs)
    for job_id in cluster.native.job_ids():
        if job_id not in given or not _is_kept(cluster, job_id, given[job_id]):
            cluster.release(job_id)
    recordings: dict[str, _Recording] = {}
    kinds: dict[str, frozenset[str]] = {}
    for job_id in _journalled_first(cluster, given, latest):
        where = given[job_id]
        entry = latest.get(job_id)
        if entry is not None and entry.stage.final:
            entry = None
        graph = graphs.get(job_id) or known.get(job_id)
        recordings[job_id] = partial(record, cluster, job_id, where, graph, entry)
        kinds[job_id] = frozenset() if cluster.runs(job_id) else recordings[job_id]()

    def lacking() -> list[str]:
        return [job_id for job_id in given if len(cluster.gpus_of(job_id)) < len(_gpus(given[job_id]))]

    while any(_gets_more(cluster, job_id, recordings[job_id], kinds) for job_id in lacking()):
        pass  # what one has left may be what another lacks
    for job_id, where in given.items():
        for kind in (kind for kind in KINDS if kind in kinds[job_id]):
            has = named(cluster.topology, cluster.gpus_of(job_id))
            yield Difference(job_id, kind, has, named(cluster.topology, _gpus(where))), None


def _journalled_first(
    cluster: Cluster, given: Mapping[str, Placement | tuple[int, ...]], latest: Mapping[str, Entry]
) -> list[str]:
    """Return the given jobs, those first that are where the journal has them; else in the scheduler's order."""

    def is_elsewhere(job_id: str) -> bool:
        entry = latest.get(job_id)
        there = named(cluster.topology, _gpus(given[job_id]))
        return entry is None or entry.stage.final or set(entry.gpus) != set(there)

    return sorted(given, key=is_elsewhere)


_Recording = Callable[[], frozenset[str]]
"""Records a job, and returns the kinds of differences."""


class _NoMoreError(Exception):
    """A job does not get more GPUs than it has."""


def _gets_more(
    cluster: Cluster, job_id: str, recording: _Recording, kinds: dict[str, frozenset[str]]
) -> bool:
    """Record a job again that has only a part of its GPUs; return False, and change nothing, if it gets no more now.

    kinds: the kinds of differences by job, which are kept up to date.
    """
    before = len(cluster.gpus_of(job_id))
    with suppress(_NoMoreError), cluster.transaction():
        if cluster.runs(job_id):
            cluster.release(job_id)
        found = recording()
        if len(cluster.gpus_of(job_id)) <= before:
            raise _NoMoreError
        kinds[job_id] = found
        return True
    kinds[job_id] |= {"overlap"}
    return False


def _is_kept(cluster: Cluster, job_id: str, where: Placement | tuple[int, ...]) -> bool:
    """Return True if the cluster has the job on these GPUs, or on a part of them, as the scheduler says."""
    gpus = cluster.gpus_of(job_id)
    if not set(gpus) <= set(_gpus(where)) or (len(gpus) < len(_gpus(where)) and not gpus):
        return False
    if not isinstance(where, Placement):
        return True
    said, has = Holding.of_placement(where), Holding.in_cluster(cluster, job_id)
    slices = dict(zip(where.gpus, said.slices, strict=False))
    same_slices = [slices[gpu] for gpu in gpus] == list(has.slices) if slices else not has.slices
    return same_slices and (said.hosts, said.drives) in (((), ()), (has.hosts, has.drives))


def _changes(
    cluster: Cluster,
    given: Mapping[str, Placement | tuple[int, ...]],
    running: Iterable[str],
    latest: Mapping[str, Entry],
    undone: Mapping[str, Entry],
) -> Iterator[_Found]:
    """Yield what differs between the journal's last entries and the scheduler's jobs, and the entry that settles it."""
    runs = set(running)
    for job_id, where in given.items():
        gpus = named(cluster.topology, _gpus(where))
        stage = Stage.CONFIRMED if job_id in runs else Stage.TOLD
        known = latest.get(job_id)
        if known is None or known.stage.final:
            why = "the scheduler started it by its own choice" if job_id in runs else "found at the scheduler"
            yield (
                Difference(job_id, "unknown", (), gpus),
                Entry(job_id, stage, gpus, why, holding=_holding(cluster, job_id, where)),
            )
        elif job_id in undone:
            entry = replace(undone[job_id], stage=stage, why="its repair was not carried out", time=0.0)
            yield Difference(job_id, "withdrawn", known.gpus, gpus), entry
        elif set(known.gpus) != set(gpus):
            holding = _holding(cluster, job_id, where)
            entry = Entry(job_id, stage, gpus, "the scheduler has other GPUs", holding=holding)
            yield Difference(job_id, "moved", known.gpus, gpus), entry
        elif known.stage is not stage:
            yield None, replace(known, stage=stage, time=0.0)
    for job_id, known in latest.items():
        if job_id not in given and not known.stage.final:
            if known.stage.in_flight:
                entry = Entry(job_id, Stage.WITHDRAWN, (), "the scheduler knows nothing of the decision")
                yield Difference(job_id, "withdrawn", known.gpus, ()), entry
            else:
                yield None, Entry(job_id, Stage.ENDED, (), "the scheduler has ended it")


def _holding(cluster: Cluster, job_id: str, where: Placement | tuple[int, ...]) -> Holding:
    """Return what the cluster has recorded of a job; if it has not all GPUs, what the scheduler says, and its share."""
    holding = Holding.in_cluster(cluster, job_id)
    if cluster.gpus_of(job_id) == _gpus(where):
        return holding
    if isinstance(where, Placement):
        return Holding.of_placement(where)
    return Holding(holding.graph, holding.gpu_fraction)
