"""Record a running job in a cluster: as the scheduler says, else as the journal says, else by an assumption."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from topoplace.errors import AllocationError
from topoplace.mig import MigSlice, present, profiles_of_gpu, start_for
from topoplace.placement import HostShare, Placement
from topoplace_hosts.journal.entry import Device, Entry, Holding, named

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.jobs.job_graph import JobGraph


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a job should hold in a cluster."""

    gpus: tuple[int, ...]
    slices: tuple[MigSlice, ...]
    """One of each GPU, or none."""
    graph: JobGraph | None
    gpu_fraction: float
    hosts: tuple[HostShare, ...] = ()
    remote: tuple[int, ...] = ()
    drives: tuple[int, ...] = ()

    def on(self, positions: list[int]) -> _Wanted:
        """Return what the job should hold of those of its GPUs."""
        gpus = tuple(self.gpus[i] for i in positions)
        slices = tuple(self.slices[i] for i in positions) if self.slices else ()
        return _Wanted(gpus, slices, None, self.gpu_fraction)

    def recorded(self, cluster: Cluster, job_id: str) -> bool:
        """Record the job, and return True; if that is impossible, return False."""
        graph = self.graph if self.graph and self.graph.num_tasks == len(self.gpus) else None
        try:
            placement = Placement(
                self.gpus,
                topology=cluster.topology,
                hosts=self.hosts,
                remote=self.remote,
                drives=self.drives,
                slices=self.slices,
            )
            cluster.record(job_id, placement, graph, gpu_fraction=self.gpu_fraction)
        except AllocationError:
            return False
        return True


def record(
    cluster: Cluster,
    job_id: str,
    where: Placement | tuple[int, ...],
    graph: JobGraph | None,
    entry: Entry | None,
) -> frozenset[str]:
    """Record a job that the cluster does not have, and return the kinds of differences: see `Difference`.

    where: the job's GPUs as the scheduler says, each once; a `Placement` gives more. graph: the job graph; None takes
    the journal's. entry: the job's last entry in the journal, or None. Parts of GPUs that other jobs hold are left out.
    """
    gpus, said = _said(where)
    known = entry.holding if entry else Holding()
    graph = graph or said.graph or known.graph
    slices, guessed = _slices(cluster, gpus, said, known, entry, graph)
    wanted = _Wanted(gpus, slices, graph, _fraction(said, known, graph))
    stays = entry is not None and set(entry.gpus) == set(named(cluster.topology, gpus))
    hosts = known if stays and not (said.hosts or said.drives) else said
    wanted, is_lost = _with_hosts(wanted, hosts, cluster)
    if not (gpus or wanted.hosts or is_lost):
        return frozenset()
    kinds = {
        "hosts": is_lost,
        "slices": guessed or _cuts_through(wanted, cluster),
        "partition": bool(gpus) and not cluster.topology.is_legal(gpus),
    }
    return frozenset(kind for kind, is_so in kinds.items() if is_so) | _recorded(cluster, job_id, wanted)


def _said(where: Placement | tuple[int, ...]) -> tuple[tuple[int, ...], Holding]:
    return (where.gpus, Holding.of_placement(where)) if isinstance(where, Placement) else (where, Holding())


def _cuts_through(wanted: _Wanted, cluster: Cluster) -> bool:
    """Return True if a job without slices is on GPUs that are cut into slices."""
    return not wanted.slices and any(map(cluster.native.slices, wanted.gpus))


def _recorded(cluster: Cluster, job_id: str, wanted: _Wanted) -> set[str]:
    """Record as much of `wanted` as is possible, and return the kinds of differences."""
    if (wanted.gpus or wanted.hosts) and wanted.recorded(cluster, job_id):
        return set()
    bare = replace(wanted, hosts=(), remote=(), drives=())
    if wanted.gpus and bare.recorded(cluster, job_id):
        return {"hosts"}
    if not wanted.gpus:
        return {"hosts"}
    left = [i for i in range(len(wanted.gpus)) if _fits(cluster, job_id, bare.on([i]))]
    if left:
        bare.on(left).recorded(cluster, job_id)
    return {"overlap", "hosts"} if wanted.hosts or wanted.drives else {"overlap"}


def _fits(cluster: Cluster, job_id: str, wanted: _Wanted) -> bool:
    with cluster.what_if():
        return wanted.recorded(cluster, job_id)


def _fraction(said: Holding, known: Holding, graph: JobGraph | None) -> float:
    """Return the share of each GPU: as is said, else as is known, else as the graph asks for."""
    for holding in (said, known):
        if holding.slices:
            return 1.0
        if holding.gpu_fraction != 1:
            return holding.gpu_fraction
    is_known = said.graph is not None or known.graph is not None
    return 1.0 if graph is None or graph.mig or is_known else graph.gpu_fraction


def _slices(
    cluster: Cluster,
    gpus: tuple[int, ...],
    said: Holding,
    known: Holding,
    entry: Entry | None,
    graph: JobGraph | None,
) -> tuple[tuple[MigSlice, ...], bool]:
    """Return the slice of each GPU, or () if the job has none, and True if one of them is a guess.

    The guess is an idle slice of the job's profile, or else where one can be cut.
    """
    if said.slices:
        return said.slices, False
    places: Mapping[Device, MigSlice] = dict(zip(entry.gpus, known.slices, strict=False)) if entry else {}
    profile = known.slices[0].profile if known.slices else graph.mig if graph else None
    if profile is None:
        return (), False
    found: list[MigSlice] = []
    guessed = False
    for gpu, device in zip(gpus, named(cluster.topology, gpus), strict=True):
        profiles = profiles_of_gpu(cluster.topology.gpus[gpu])
        place = places.get(device)
        if (
            place is None
            or place.profile not in profiles
            or place.start not in profiles[place.profile].starts
        ):
            guessed = True
            place = _possible_slice(cluster, gpu, profile)
        if place is None:
            return (), True
        found.append(place)
    return tuple(found), guessed


def _possible_slice(cluster: Cluster, gpu: int, profile: str) -> MigSlice | None:
    """Return where a job of this profile may run on a GPU; None if the GPU does not have it."""
    profiles = profiles_of_gpu(cluster.topology.gpus[gpu])
    if profile not in profiles:
        return None
    own = present(cluster.native.slices(gpu))
    start = start_for(profiles[profile], profiles, own, may_reslice=True)
    return MigSlice(profile, profiles[profile].starts[0] if start is None else start.start)


def _with_hosts(wanted: _Wanted, holding: Holding, cluster: Cluster) -> tuple[_Wanted, bool]:
    """Add what a job holds of hosts, given by name; True if the topology lacks one of these machines."""
    topology = cluster.topology
    machines = {name: number for number, name in enumerate(topology.machine_names)}
    names = [name for name, _, _ in holding.hosts]
    if any(name not in machines for name in (*names, *holding.drives)):
        return wanted, True
    shares = tuple(HostShare(machines[name], cpus, memory_gb) for name, cpus, memory_gb in holding.hosts)
    remote = tuple(_numbers_of(_numbers(cluster, wanted.gpus), holding.remote))
    drives = tuple(machines[name] for name in holding.drives)
    return replace(wanted, hosts=shares, remote=remote, drives=drives), False


def _numbers(cluster: Cluster, gpus: tuple[int, ...]) -> Mapping[Device, int]:
    """Return the number of each of these GPUs by its name."""
    return dict(zip(named(cluster.topology, gpus), gpus, strict=True))


def _numbers_of(numbers: Mapping[Device, int], devices: tuple[Device, ...]) -> Iterator[int]:
    return (numbers[device] for device in devices if device in numbers)
