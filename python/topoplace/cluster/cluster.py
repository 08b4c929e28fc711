"""Cluster: which job holds which GPU of a topology, the only thing in the library that changes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import MappingProxyType
from typing import Any, Protocol, Self, TypeVar

from topoplace import _checks
from topoplace._core import ClusterState
from topoplace.cluster import snapshots
from topoplace.cluster.hosts import GivenHosts, HostAllocation, Hosts, resources_of
from topoplace.errors import AllocationError, warn_deprecated
from topoplace.jobs.job_graph import JobGraph
from topoplace.placement import Placement
from topoplace.topology.topology import Topology

Undo = Callable[[], None]


class View(Protocol):
    """Tables read off a cluster, which have to know when the cluster changes."""

    def changed(self, gpus: Sequence[int]) -> None:
        """Called after the owner or drain state of `gpus` may have changed."""
        ...


AnyView = TypeVar("AnyView", bound=View)


class Cluster:
    """The state of a topology's GPUs: each is held by at most one job, and healthy or drained.

    Where `hosts` are given, also what is left of the CPUs, memory and drives of its machines. Every change is all or
    nothing: an AllocationError leaves the state untouched. Changes cost O(1) per GPU they name, at any size of the
    cluster. A cluster is for one thread at a time.
    """

    __slots__ = ("_hosts", "_jobs", "_log", "_open", "_state", "_topology", "_views")

    def __init__(self, topology: Topology, hosts: GivenHosts | None = None) -> None:
        """All GPUs of `topology` free; those that it calls unhealthy are drained.

        hosts: what the machines have besides GPUs: one `HostResources` for all of them, one per machine in their
        order, or by name. Without them nothing but GPUs is counted.
        """
        _checks.instance(topology, Topology, "topology", AllocationError)
        names = topology.machine_names
        ledger = Hosts(names, resources_of(hosts, names))
        self._start(topology, ClusterState(topology.num_gpus), {}, ledger)
        for gpu in topology.unhealthy_gpus:
            self._state.drain(gpu)

    @property
    def topology(self) -> Topology:
        """The topology this is the state of."""
        return self._topology

    # ---- what it says --------------------------------------------------------------------------------------

    def free_gpus(self) -> tuple[int, ...]:
        """The GPUs that are healthy and held by no job, ascending."""
        return self._state.free_gpus()

    @property
    def num_free(self) -> int:
        """How many GPUs are healthy and held by no job."""
        return self._state.num_free

    def drained_gpus(self) -> tuple[int, ...]:
        """The GPUs that are drained, ascending, whether a job holds them or not."""
        return self._state.drained_gpus()

    def owner(self, gpu: int) -> str | None:
        """The job that holds `gpu`, or None; AllocationError for a GPU that is not there."""
        return self._state.owner(self._checked_gpu(gpu, "gpu"))

    @property
    def allocations(self) -> Mapping[str, tuple[int, ...]]:
        """The GPUs of each job in task order, jobs in the order of their allocation: a read-only copy."""
        return MappingProxyType(self._state.allocations())

    @property
    def jobs(self) -> Mapping[str, JobGraph]:
        """The job graphs of the running jobs, of those that were told: a read-only view."""
        return MappingProxyType(self._jobs)

    def gpus_of(self, job_id: str) -> tuple[int, ...]:
        """The GPUs of a job in task order; () where it holds none."""
        return self._state.gpus_of(_checked_job(job_id))

    def occupants(self, gpus: Sequence[int]) -> tuple[tuple[int, ...], Mapping[str, tuple[int, ...]]]:
        """Of these GPUs, the free ones, and those that jobs hold by job id, jobs in the order of their ids."""
        if set(map(type, gpus)) != {int} or min(gpus) < 0 or max(gpus) >= self._topology.num_gpus:
            gpus = [self._checked_gpu(gpu, f"gpus[{i}]") for i, gpu in enumerate(gpus)]
        return self._state.occupants(gpus)

    @property
    def hosts(self) -> Hosts:
        """The host resources of the machines: what is left, and which job holds what; to be read only."""
        return self._hosts

    def view(self, build: Callable[[Cluster], AnyView]) -> AnyView:
        """Return the view made by `build`, creating it once; it gets `changed()` afterwards.

        A copy of the cluster starts without it.
        """
        known: dict[Callable[[Cluster], Any], Any] = self._views
        if build not in known:
            known[build] = build(self)
        found: AnyView = known[build]
        return found

    # ---- changes -------------------------------------------------------------------------------------------

    def allocate(
        self, job_id: str, placement: Placement | Sequence[int], job: JobGraph | None = None
    ) -> None:
        """Give the GPUs of `placement`, or those listed in task order, to the job.

        job: what runs there, so that policies can tell how it gets on with others; by default that of `placement`.

        The job also takes the shares of machines that `placement.hosts` and `placement.drives` name; with these, it
        may do without GPUs.

        Raises AllocationError, and changes nothing, for a job that holds GPUs already, for no GPU at all, and for
        a GPU that is unknown, named twice, drained, or held by another job, and for GPUs that are no partition of a
        topology that has partitions, and for more of a machine's CPUs, memory or drives than it has left.
        """
        job_id = _checked_job(job_id)
        gpus = self._checked_gpus(placement)
        held = self._checked_held(job_id, placement)
        graph = job or (placement.job if isinstance(placement, Placement) else None)
        if graph is not None:
            _checks.instance(graph, JobGraph, "job", AllocationError)
            if graph.num_tasks != len(gpus) and (gpus or held):
                raise AllocationError(f"gpus = {gpus!r}: {len(gpus)} for a job of {graph.num_tasks} tasks")
        if gpus or not held:
            status, position = self._state.allocate(job_id, gpus)
            if status != "ok":
                raise AllocationError(self._reason(job_id, gpus, status, position))
        self._tell(gpus, job_id, graph, self._hosts.put(job_id, held) if held else None)

    def release(self, job_id: str) -> None:
        """Take the job's GPUs and shares of machines back; AllocationError for a job that holds nothing."""
        gpus = self._state.gpus_of(_checked_job(job_id))
        holds_hosts = job_id in self._hosts.held
        if self._state.release(job_id) != "ok" and not holds_hosts:
            raise AllocationError(f"job {_checks.shown(job_id)} holds no GPUs")
        self._tell(gpus, job_id, None, self._hosts.put(job_id, None) if holds_hosts else None)

    def drain(self, gpu_or_machine: int | str) -> None:
        """Withdraw a GPU, or all of the machine of that name, from what is free; jobs on them keep them.

        A machine then takes no processes either. Draining what is drained changes nothing. AllocationError for a GPU
        or machine that is not there.
        """
        self._for_each(gpu_or_machine, self._state.drain, on=True)

    def undrain(self, gpu_or_machine: int | str) -> None:
        """Take back a `drain`; of what is not drained, it changes nothing."""
        self._for_each(gpu_or_machine, self._state.undrain, on=False)

    @contextmanager
    def transaction(self) -> Generator[Self]:
        """A block whose changes to this cluster are all undone if it ends by an exception of any kind.

        Transactions nest; the cost is that of the changes. A copy or snapshot made inside holds the state of its
        moment.
        """
        mark, known = self._begin()
        try:
            yield self
        except BaseException:
            self._roll_back(mark, known)
            raise
        self._state.commit()
        self._open -= 1
        if not self._open:
            self._log.clear()

    @contextmanager
    def what_if(self) -> Generator[Self]:
        """Undo all changes to this cluster when the block ends, however it ends."""
        mark, known = self._begin()
        try:
            yield self
        finally:
            self._roll_back(mark, known)

    def trial(self) -> AbstractContextManager[Self]:
        """Deprecated name of `what_if`."""
        warn_deprecated("Cluster.trial()", "Cluster.what_if()")
        return self.what_if()

    # ---- copies --------------------------------------------------------------------------------------------

    def copy(self) -> Self:
        """An independent cluster in the same state, on the same topology."""
        return self._with_state(self._topology, self._state.copy(), dict(self._jobs), self._hosts.copy())

    def snapshot(self) -> bytes:
        """The state, its topology and its jobs as bytes for `restore`; equal states give equal bytes."""
        return snapshots.written(self._topology, self._state, self._jobs, self._hosts)

    @classmethod
    def restore(cls, snapshot: bytes) -> Self:
        """The cluster that `snapshot` was made of; SnapshotError says what is wrong with any other bytes."""
        return cls._with_state(*snapshots.parsed(snapshot))

    def __reduce__(self) -> tuple[Callable[[bytes], Cluster], tuple[bytes]]:
        return type(self).restore, (self.snapshot(),)

    def __repr__(self) -> str:
        return f"Cluster({self._topology.name!r}, {self.num_free} of {self._topology.num_gpus} GPUs free)"

    @classmethod
    def _with_state(
        cls, topology: Topology, state: ClusterState, jobs: dict[str, JobGraph], hosts: Hosts
    ) -> Self:
        cluster = cls.__new__(cls)
        cluster._start(topology, state, jobs, hosts)
        return cluster

    # ---- inside --------------------------------------------------------------------------------------------

    def _start(
        self, topology: Topology, state: ClusterState, jobs: dict[str, JobGraph], hosts: Hosts
    ) -> None:
        self._topology, self._state, self._jobs, self._hosts = topology, state, jobs, hosts
        self._views: dict[Callable[[Cluster], View], View] = {}
        self._log: list[tuple[Sequence[int], str | None, JobGraph | None, Undo | None]] = []
        self._open = 0

    def _tell(
        self,
        gpus: Sequence[int],
        job_id: str | None = None,
        job: JobGraph | None = None,
        undo: Undo | None = None,
    ) -> None:
        """Note that `job_id`, where given, is now `job`, and tell the views that `gpus` have changed.

        undo: takes back what has changed in `hosts`.
        """
        before = None
        if job_id is not None:
            before = self._jobs.pop(job_id, None)
            if job is not None:
                self._jobs[job_id] = job
        if self._open:
            self._log.append((gpus, job_id, before, undo))
        for view in self._views.values():
            view.changed(gpus)

    def _begin(self) -> tuple[int, int]:
        self._open += 1
        return self._state.begin(), len(self._log)

    def _roll_back(self, mark: int, known: int) -> None:
        self._state.rollback(mark)
        self._open -= 1
        undone, self._log[known:] = self._log[known:], []
        for gpus, job_id, before, undo in reversed(undone):
            if undo is not None:
                undo()
            if job_id is not None:
                self._jobs.pop(job_id, None)
                if before is not None:
                    self._jobs[job_id] = before
            for view in self._views.values():
                view.changed(gpus)

    def _checked_gpu(self, gpu: object, what: str) -> int:
        return _checks.integer(gpu, what, AllocationError, low=0, high=self._topology.num_gpus - 1)

    def _checked_gpus(self, placement: Placement | Sequence[int]) -> tuple[int, ...]:
        if isinstance(placement, Placement) and placement.topology is self._topology:
            gpus = placement.gpus  # checked when it was made
        else:
            given = placement.gpus if isinstance(placement, Placement) else placement
            listed = _checks.sequence(given, "gpus", AllocationError)
            gpus = tuple(self._checked_gpu(gpu, f"gpus[{i}]") for i, gpu in enumerate(listed))
        if gpus and not self._topology.is_legal(gpus):
            raise AllocationError(f"gpus = {gpus!r} is no partition of {self._topology.name}")
        return gpus

    def _for_each(self, target: int | str, change: Callable[[int], bool], *, on: bool) -> None:
        undo = None
        if isinstance(target, str):
            gpus = self._topology.gpus_of.get(target)
            if gpus is None:
                raise AllocationError(f"machine {_checks.shown(target)} is not in the topology")
            undo = self._hosts.drain(int(self._topology.machine_of[gpus[0]]), on=on)
        else:
            gpus = (self._checked_gpu(target, "gpu"),)
        for gpu in gpus:
            change(gpu)
        self._tell(gpus, undo=undo)

    def _checked_held(self, job_id: str, placement: Placement | Sequence[int]) -> HostAllocation | None:
        """What the job will hold of machines; None where the placement says nothing of them."""
        if job_id in self._hosts.held:
            raise AllocationError(f"job {_checks.shown(job_id)} holds a share of machines already")
        if not (isinstance(placement, Placement) and (placement.hosts or placement.drives)):
            return None
        if not placement.gpus and self._state.gpus_of(job_id):
            raise AllocationError(self._reason(job_id, (), "job_exists", 0))
        held = HostAllocation(placement.hosts, placement.drives, placement.remote)
        self._hosts.check(held)
        return held

    def _reason(self, job_id: str, gpus: Sequence[int], status: str, position: int) -> str:
        if status == "no_gpus":
            return f"gpus = {gpus!r} is empty"
        if status == "job_exists":
            return f"job {_checks.shown(job_id)} holds GPUs {self.allocations[job_id]} already"
        where = f"gpus[{position}] = {gpus[position]}"
        if status == "taken_gpu":
            return f"{where} is held by job {self.owner(gpus[position])!r}"
        return f"{where} is drained" if status == "drained_gpu" else f"{where} is there twice"


def _checked_job(job_id: object) -> str:
    return _checks.text(job_id, "job_id", AllocationError)
