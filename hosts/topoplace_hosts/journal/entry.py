"""One entry of a journal: a job, the stage of its decision, its GPUs and what else it holds, and why."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self, cast

from topoplace import _checks
from topoplace.cluster.hosts import HostAllocation
from topoplace.errors import JournalError
from topoplace.jobs.job_graph import JobGraph
from topoplace.jobs.requirements import WHOLE_GPU
from topoplace.mig import MigSlice
from topoplace.placement import Placement
from topoplace.topology.topology import Topology

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.placement import HostShare

Device = tuple[str, str]
"""A GPU by names that survive a renumbering: (machine, GPU)."""


class Stage(StrEnum):
    """The stage of a decision."""

    INTENT = "intent"
    """Decided, and about to be passed to the scheduler."""
    TOLD = "told"
    """The scheduler has accepted it."""
    CONFIRMED = "confirmed"
    """The scheduler shows the job on these GPUs."""
    REPAIR = "repair"
    """A running job is about to move to these GPUs from those of its entry before."""
    WITHDRAWN = "withdrawn"
    """The decision was given up before the job started."""
    ENDED = "ended"
    """The job has left its GPUs."""

    @property
    def in_flight(self) -> bool:
        """Return True if the decision's outcome is not known yet."""
        return self in (Stage.INTENT, Stage.TOLD, Stage.REPAIR)

    @property
    def final(self) -> bool:
        """Return True if the job holds nothing any more."""
        return self in (Stage.WITHDRAWN, Stage.ENDED)


@dataclass(frozen=True, slots=True)
class Holding:
    """What a job holds on its GPUs and machines, with its job graph. JournalError names a wrong field."""

    graph: JobGraph | None = None
    """The job graph, None if it is unknown."""
    gpu_fraction: float = 1.0
    """The share of each GPU, for a job without slices."""
    slices: tuple[MigSlice, ...] = ()
    """The MIG slice of each GPU; () for whole GPUs and shares of them."""
    hosts: tuple[tuple[str, float, float], ...] = ()
    """The machine's name, CPUs and GB of memory of each process."""
    drives: tuple[str, ...] = ()
    """The name of the machine of each drive."""
    remote: tuple[Device, ...] = ()
    """The GPUs, by name, that processes reach over the network."""

    def __post_init__(self) -> None:
        if self.graph is not None:
            _checks.instance(self.graph, JobGraph, "graph", JournalError)
        _checks.thousandths(self.gpu_fraction, "gpu_fraction", JournalError, low=0.001, high=1.0)
        slices = [_slice(one, f"slices[{i}]") for i, one in enumerate(_listed(self.slices, "slices"))]
        object.__setattr__(self, "slices", tuple(slices))
        hosts = [_share(one, f"hosts[{i}]") for i, one in enumerate(_listed(self.hosts, "hosts"))]
        object.__setattr__(self, "hosts", tuple(hosts))
        drives = _listed(self.drives, "drives")
        names = [_checks.text(one, f"drives[{i}]", JournalError) for i, one in enumerate(drives)]
        object.__setattr__(self, "drives", tuple(names))
        object.__setattr__(self, "remote", _devices(self.remote, "remote"))

    @classmethod
    def of_placement(cls, placement: Placement) -> Self:
        """Return what a job that starts at `placement` will hold."""
        job = placement.job
        fraction = 1.0 if job is None or placement.slices else job.gpu_fraction
        return cls._of(placement.topology, job, fraction, placement.slices, placement)

    @classmethod
    def in_cluster(cls, cluster: Cluster, job_id: str) -> Self:
        """Return what a job holds in `cluster` now."""
        state, gpus = cluster.native, cluster.gpus_of(job_id)
        slices: tuple[MigSlice, ...] = ()
        if state.slices_of(job_id):
            slices = tuple(
                next(one for one, holder in cluster.slices(gpu).items() if holder == job_id) for gpu in gpus
            )
        fraction = 1.0 if slices else cluster.gpu_thousandths_of(job_id) / WHOLE_GPU
        held = cluster.hosts.held.get(job_id)
        return cls._of(cluster.topology, cluster.jobs.get(job_id), fraction, slices, held)

    @classmethod
    def _of(
        cls,
        topology: Topology,
        graph: JobGraph | None,
        gpu_fraction: float,
        slices: tuple[MigSlice, ...],
        held: Placement | HostAllocation | None,
    ) -> Self:
        if held is None:
            return cls(graph, gpu_fraction, slices)
        names = topology.machine_names
        shares: tuple[HostShare, ...] = held.hosts if isinstance(held, Placement) else held.shares
        return cls(
            graph,
            gpu_fraction,
            slices,
            tuple((names[one.machine], one.cpus, one.memory_gb) for one in shares),
            tuple(names[machine] for machine in held.drives),
            named(topology, held.remote),
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """One step of a decision. JournalError names a wrong field."""

    job_id: str
    stage: Stage
    gpus: tuple[Device, ...] = ()
    """The GPUs as (machine, GPU) names, in task order."""
    why: str = ""
    """The reason in plain English."""
    time: float = 0.0
    """Seconds since 1970; 0 becomes the time of the append."""
    holding: Holding = field(default_factory=Holding)
    """Everything else that the job holds; the default means whole GPUs alone."""

    def __post_init__(self) -> None:
        _checks.text(self.job_id, "job_id", JournalError)
        _checks.instance(self.stage, Stage, "stage", JournalError)
        _checks.real(self.time, "time", JournalError)
        if self.why:
            _checks.text(self.why, "why", JournalError)
        object.__setattr__(self, "gpus", _devices(self.gpus, "gpus"))
        _checks.instance(self.holding, Holding, "holding", JournalError)
        if self.holding.slices and len(self.holding.slices) != len(self.gpus):
            raise JournalError(f"slices: {len(self.holding.slices)} for {len(self.gpus)} GPUs")


def named(topology: Topology, gpus: Iterable[int]) -> tuple[Device, ...]:
    """Return the names of the GPUs with these numbers."""
    every = topology.derived(_all_names)
    return tuple([every[gpu] for gpu in gpus])


def _all_names(topology: Topology) -> tuple[Device, ...]:
    return tuple((gpu.machine, gpu.name) for gpu in topology.gpus)


def written(gpus: Iterable[Device]) -> str:
    """Return GPUs as the text in which a journal keeps them."""
    return json.dumps([list(gpu) for gpu in gpus])


def parsed(text: str) -> tuple[Device, ...]:
    """Return the GPUs in a text that `written` returned; JournalError for any other text."""
    try:
        listed: Any = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise JournalError(f"gpus = {_checks.shown(text)} is not JSON") from None
    return _devices(listed, "gpus")


def written_holding(holding: Holding, graph: str | None) -> str:
    """Return a holding as the text in which a journal keeps it. graph: the name of its job graph there."""
    known = {
        "graph": graph,
        "gpu_fraction": holding.gpu_fraction if holding.gpu_fraction != 1 else None,
        "slices": holding.slices,
        "hosts": holding.hosts,
        "drives": holding.drives,
        "remote": holding.remote,
    }
    found = {name: value for name, value in known.items() if value}
    return json.dumps(found) if found else ""


def parsed_holding(text: str, graphs: Mapping[str, JobGraph]) -> Holding:
    """Return the holding in a text that `written_holding` returned; JournalError for any other text."""
    if not text:
        return Holding()
    try:
        known: Any = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise JournalError(f"holding = {_checks.shown(text)} is not JSON") from None
    if not isinstance(known, dict):
        raise JournalError(f"holding = {_checks.shown(text)} is not an object")
    fields = {**cast("dict[str, Any]", known)}
    if "graph" in fields:
        graph = fields["graph"]
        if graph not in graphs:
            raise JournalError(f"holding: the job graph {_checks.shown(graph)} is missing")
        fields["graph"] = graphs[graph]
    try:
        return Holding(**fields)
    except TypeError:
        raise JournalError(f"holding = {_checks.shown(text)} has unknown fields") from None


def _listed(given: Any, what: str) -> tuple[Any, ...]:
    return tuple(_checks.ordered(given, what, JournalError))


def _slice(given: Any, what: str) -> MigSlice:
    pair = _listed(given, what)
    if len(pair) != 2:
        raise JournalError(f"{what} = {_checks.shown(given)} is not a profile and a start")
    start = _checks.integer(pair[1], what, JournalError, low=0, high=7)
    return MigSlice(_checks.text(pair[0], what, JournalError), start)


def _share(given: Any, what: str) -> tuple[str, float, float]:
    parts = _listed(given, what)
    if len(parts) != 3:
        raise JournalError(f"{what} = {_checks.shown(given)} is not a machine, CPUs and memory")
    machine, cpus, memory_gb = parts
    return (
        _checks.text(machine, what, JournalError),
        _checks.real(cpus, what, JournalError),
        _checks.real(memory_gb, what, JournalError),
    )


def _devices(given: Any, what: str) -> tuple[Device, ...]:
    listed = _checks.ordered(given, what, JournalError)
    found: list[Device] = []
    for i, one in enumerate(listed):
        pair = _checks.ordered(one, f"{what}[{i}]", JournalError)
        if len(pair) != 2:
            raise JournalError(f"{what}[{i}] = {_checks.shown(one)} is not a machine and a GPU")
        machine, gpu = (_checks.text(name, f"{what}[{i}]", JournalError) for name in pair)
        found.append((machine, gpu))
    return tuple(found)
