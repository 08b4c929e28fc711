"""Cluster: the state of a topology, namely which job holds which GPUs; topologies, jobs and placements never change."""

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
    """Protocol of tables that are derived from a cluster and notified of its changes."""

    def changed(self, gpus: Sequence[int]) -> None:
        """Update the tables after the owner or drain state of `gpus` may have changed."""
        ...


AnyView = TypeVar("AnyView", bound=View)


class Cluster:
    """The state of a topology's GPUs. Each GPU is held by at most one job, and is either healthy or drained.

    With `hosts`, the cluster also tracks the free CPUs, memory and drives of the machines. Every change is atomic: an
    AllocationError leaves the state as it was. A change takes constant time per GPU it names, at any cluster size.
    Use a cluster from one thread at a time.
    """

    __slots__ = ("_hosts", "_jobs", "_log", "_open", "_state", "_topology", "_views")

    def __init__(self, topology: Topology, hosts: GivenHosts | None = None) -> None:
        """Start with no job, all GPUs of `topology` free, and its unhealthy GPUs drained.

        hosts: CPUs, memory and drives of the machines. Give one `HostResources` for all machines, a sequence with
        one per machine, or a mapping by machine name. Without it, only GPUs are counted.
        """
        _checks.instance(topology, Topology, "topology", AllocationError)
        names = topology.machine_names
        ledger = Hosts(names, resources_of(hosts, names))
        self._start(topology, ClusterState(topology.num_gpus), {}, ledger)
        for gpu in topology.unhealthy_gpus:
            self._state.drain(gpu)

    @property
    def topology(self) -> Topology:
        """Return the topology of the cluster."""
        return self._topology

    # ---- queries -------------------------------------------------------------------------------------------

    def free_gpus(self) -> tuple[int, ...]:
        """Return the GPUs that are healthy and held by no job, ascending."""
        return self._state.free_gpus()

    @property
    def num_free(self) -> int:
        """Return the number of GPUs that are healthy and held by no job."""
        return self._state.num_free

    def drained_gpus(self) -> tuple[int, ...]:
        """Return the drained GPUs, ascending, whether a job holds them or not."""
        return self._state.drained_gpus()

    def owner(self, gpu: int) -> str | None:
        """Return the id of the job that holds `gpu`, or None; AllocationError if there is no such GPU."""
        return self._state.owner(self._checked_gpu(gpu, "gpu"))

    @property
    def allocations(self) -> Mapping[str, tuple[int, ...]]:
        """Return a read-only copy of each job's GPUs in task order; jobs are in order of allocation."""
        return MappingProxyType(self._state.allocations())

    @property
    def jobs(self) -> Mapping[str, JobGraph]:
        """Return a read-only view of the job graphs by job id, for the running jobs whose graph is known."""
        return MappingProxyType(self._jobs)

    def gpus_of(self, job_id: str) -> tuple[int, ...]:
        """Return the GPUs of a job in task order; () if it holds none."""
        return self._state.gpus_of(_checked_job(job_id))

    def occupants(self, gpus: Sequence[int]) -> tuple[tuple[int, ...], Mapping[str, tuple[int, ...]]]:
        """Return which of `gpus` are free, and a mapping from job id (sorted) to those of `gpus` that the job holds."""
        if set(map(type, gpus)) != {int} or min(gpus) < 0 or max(gpus) >= self._topology.num_gpus:
            gpus = [self._checked_gpu(gpu, f"gpus[{i}]") for i, gpu in enumerate(gpus)]
        return self._state.occupants(gpus)

    @property
    def hosts(self) -> Hosts:
        """Return the free and held host resources of the machines; read-only."""
        return self._hosts

    def view(self, build: Callable[[Cluster], AnyView]) -> AnyView:
        """Return the view that `build(cluster)` made on first use.

        A view is an object with tables derived from the cluster; every change of the cluster calls its `changed`. A
        copy of the cluster starts without views.
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
        """Allocate to the job the GPUs of `placement`, which is a `Placement` or a sequence of GPUs in task order.

        The job also gets the host resources in `placement.hosts` and `placement.drives`. With these, it may have no
        GPU.
        job: the job graph, by default that of `placement`; policies use it to predict interference.

        Raises AllocationError, and changes nothing, in these cases:
        - The job already holds GPUs, or gets nothing.
        - A GPU is unknown, listed twice, drained, or held by another job.
        - The topology allows only certain GPU sets (its partitions), and the GPUs are not one of them.
        - A machine does not have enough free CPUs, memory or drives.
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
        self._record(
            self._touched(gpus, held), job_id, graph, self._hosts.put(job_id, held) if held else None
        )

    def release(self, job_id: str) -> None:
        """Free the job's GPUs and host resources; AllocationError if it holds nothing."""
        gpus = self._state.gpus_of(_checked_job(job_id))
        held = self._hosts.held.get(job_id)
        if self._state.release(job_id) != "ok" and held is None:
            raise AllocationError(f"job {_checks.shown(job_id)} holds no GPUs")
        self._record(self._touched(gpus, held), job_id, None, self._hosts.put(job_id, None) if held else None)

    def drain(self, gpu_or_machine: int | str) -> None:
        """Exclude a GPU, or all GPUs of a machine given by name, from new allocations; running jobs keep their GPUs.

        A drained machine also accepts no new processes. Draining twice changes nothing. AllocationError if there is no
        such GPU or machine.
        """
        self._for_each(gpu_or_machine, self._state.drain, on=True)

    def undrain(self, gpu_or_machine: int | str) -> None:
        """Undo `drain` for a GPU, or for a machine given by name; no effect on GPUs that are not drained."""
        self._for_each(gpu_or_machine, self._state.undrain, on=False)

    @contextmanager
    def transaction(self) -> Generator[Self]:
        """Open a `with` block at whose end all changes to this cluster are undone if an exception left the block.

        Transactions can be nested; undoing takes time proportional to the number of changes. A copy or snapshot made in
        the block has the state at that time.
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
        """Open a `with` block at whose end all changes to this cluster are undone, with or without an exception."""
        mark, known = self._begin()
        try:
            yield self
        finally:
            self._roll_back(mark, known)

    def trial(self) -> AbstractContextManager[Self]:
        """Call `what_if`, whose deprecated name this is."""
        warn_deprecated("Cluster.trial()", "Cluster.what_if()")
        return self.what_if()

    # ---- copies --------------------------------------------------------------------------------------------

    def copy(self) -> Self:
        """Return an independent cluster in the same state on the same topology."""
        return self._with_state(self._topology, self._state.copy(), dict(self._jobs), self._hosts.copy())

    def snapshot(self) -> bytes:
        """Return the state, topology and jobs as bytes for `restore`; equal states give equal bytes."""
        return snapshots.written(self._topology, self._state, self._jobs, self._hosts)

    @classmethod
    def restore(cls, snapshot: bytes) -> Self:
        """Build a cluster from bytes that `snapshot` returned; SnapshotError states what is wrong with other bytes."""
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

    # ---- helpers -------------------------------------------------------------------------------------------

    def _start(
        self, topology: Topology, state: ClusterState, jobs: dict[str, JobGraph], hosts: Hosts
    ) -> None:
        self._topology, self._state, self._jobs, self._hosts = topology, state, jobs, hosts
        self._views: dict[Callable[[Cluster], View], View] = {}
        self._log: list[tuple[Sequence[int], str | None, JobGraph | None, Undo | None]] = []
        self._open = 0

    def _record(
        self,
        gpus: Sequence[int],
        job_id: str | None = None,
        job: JobGraph | None = None,
        undo: Undo | None = None,
    ) -> None:
        """Set the job graph of `job_id` (None removes it), and notify the views that `gpus` may have changed.

        undo: a function that reverses the change of `hosts`; it is logged for open transactions.
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

    def _touched(self, gpus: Sequence[int], held: HostAllocation | None) -> Sequence[int]:
        """Return `gpus`, and one GPU of each other machine on which a job holds host resources."""
        if held is None:
            return gpus
        topology = self._topology
        known = {int(topology.machine_of[gpu]) for gpu in gpus}
        others = {machine for _, machine, _, _ in held.needs()} - known
        names = (topology.machine_names[machine] for machine in sorted(others))
        return (*gpus, *(topology.gpus_of[name][0] for name in names))

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
            raise AllocationError(f"gpus = {gpus!r} is not a partition of {self._topology.name}")
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
        self._record(gpus, undo=undo)

    def _checked_held(self, job_id: str, placement: Placement | Sequence[int]) -> HostAllocation | None:
        """Check and return the host resources that `placement` gives to the job; None if it gives none."""
        if job_id in self._hosts.held:
            raise AllocationError(f"job {_checks.shown(job_id)} already holds host resources")
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
            return f"job {_checks.shown(job_id)} already holds GPUs {self.allocations[job_id]}"
        where = f"gpus[{position}] = {gpus[position]}"
        if status == "taken_gpu":
            return f"{where} is held by job {self.owner(gpus[position])!r}"
        return f"{where} is drained" if status == "drained_gpu" else f"{where} is there twice"


def _checked_job(job_id: object) -> str:
    return _checks.text(job_id, "job_id", AllocationError)
