"""Cluster: the state of a topology, that is, the GPUs of each job; topologies, jobs and placements never change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from topoplace import _checks
from topoplace._core import ClusterState, Transaction
from topoplace._lazy import above
from topoplace.cluster.hosts import (
    GivenHosts,
    HostAllocation,
    HostResources,
    Hosts,
    amounts,
    first_gpus,
    resources_of,
)
from topoplace.cluster.job_data import GRAPH, JobNotes, number_of
from topoplace.errors import AllocationError
from topoplace.jobs.job_graph import JobGraph
from topoplace.jobs.requirements import WHOLE_GPU
from topoplace.mig import MigProfile, MigSlice, named, packed, present, profiles_of_gpu, start_for
from topoplace.placement import Placement
from topoplace.topology.topology import Topology

if TYPE_CHECKING:
    from topoplace.cluster.new_topology import NewNumbers
    from topoplace.cluster.spares import Spares

AnyView = TypeVar("AnyView")
_svg: Callable[..., str] = above("svg")

_Parts = tuple[int, list[tuple[int, int]]]
"""The thousandths of each GPU that a job takes, and (parts, compute slices) of its slice on each GPU; [] for no slices.
"""

_Views = dict[Callable[["Cluster"], Any], Any]
"""The views of a cluster by the function that built them."""


class Cluster:
    """The state of a topology's GPUs: each is in service or not, and free, held by a job, shared by jobs, or sliced.

    A GPU is out of service while it is drained (`drain`), held (`hold`), or unhealthy in the topology. These states are
    independent: ending one does not end the others.

    Jobs whose `gpu_fraction` is below 1 share GPUs; their shares of a GPU add up to 1 at most. Jobs with a `mig`
    profile run in slices of GPUs, one job in each. Slices stay when their jobs end, until the GPU is resliced by
    `slice_gpu` or for a placement that names it in `resliced`.

    With `hosts`, the cluster also tracks the free CPUs, memory and drives of the machines. Every change is atomic: an
    AllocationError leaves the state as it was, and an interrupt leaves the state before or after the change. A change
    takes constant time per GPU, at any cluster size. Use a cluster from one thread at a time.
    """

    __slots__ = ("_classes", "_hosts", "_jobs", "_state", "_topology", "_views")
    _views: _Views

    def __init__(self, topology: Topology, hosts: GivenHosts | None = None, *, classes: bool = True) -> None:
        """Start with no job, and all healthy GPUs of `topology` free.

        Args:
            hosts: CPUs, memory and drives of the machines. Give one `HostResources` for all machines, a sequence with
                one per machine, or a mapping by machine name. Without it, these resources are unknown and not limited,
                and policies refuse jobs that require them.
            classes: False makes policies evaluate each machine separately, instead of once for all machines in equal
                condition. The decisions are the same, but slower; use it in tests.

        Raises:
            AllocationError: `hosts` does not match the machines.
        """
        _checks.instance(topology, Topology, "topology", AllocationError)
        resources = resources_of(hosts, topology.machine_names)
        state = ClusterState(topology.num_gpus, first_gpus(topology), amounts(resources))
        state.set_unhealthy(topology.unhealthy_gpus, unhealthy=True)
        self._start(topology, state, resources)
        self._classes = _checks.flag(classes, "classes", AllocationError)

    @property
    def classes(self) -> bool:
        """Return True if policies decide once for all machines in equal condition."""
        return self._classes

    @property
    def native(self) -> ClusterState:
        """Return the native state of the GPUs, from which tables of the engine read what has changed."""
        return self._state

    @property
    def topology(self) -> Topology:
        """Return the topology of the cluster."""
        return self._topology

    # ---- queries -------------------------------------------------------------------------------------------

    def free_gpus(self) -> tuple[int, ...]:
        """Return the GPUs in service of which no job holds any part, ascending."""
        return self._state.free_gpus()

    @property
    def num_free(self) -> int:
        """Return the number of GPUs in service of which no job holds any part."""
        return self._state.num_free

    def drained_gpus(self) -> tuple[int, ...]:
        """Return the drained GPUs, ascending, whether a job holds them or not."""
        return self._state.drained_gpus()

    def held_gpus(self) -> Mapping[int, str]:
        """Return a mapping from the held GPUs, ascending, to the reasons; it does not follow later changes."""
        return MappingProxyType(dict(sorted(self._state.held()[0].items())))

    def out_of_service(self) -> tuple[int, ...]:
        """Return the GPUs that no new job can get, ascending: the drained, held and unhealthy ones."""
        return self._state.out_of_service()

    def owner(self, gpu: int) -> str | None:
        """Return the id of the job that holds the whole of `gpu`, or None; AllocationError if there is no such GPU."""
        return self._state.owner(self._checked_gpu(gpu, "gpu"))

    def shares_of(self, gpu: int) -> Mapping[str, float]:
        """Return a mapping from job id to the share of `gpu` that the job holds, 1.0 for all of it.

        A slice counts as its share of the GPU's memory slots. Jobs are in order of allocation; the mapping does not
        follow later changes.

        Raises:
            AllocationError: There is no such GPU.
        """
        held = self._state.shares_of(self._checked_gpu(gpu, "gpu"))
        return MappingProxyType({job_id: share / WHOLE_GPU for job_id, share in held.items()})

    def share_left(self, gpu: int) -> float:
        """Return the share of `gpu` that a new job can get, 0.0 if it is out of service or sliced.

        Raises:
            AllocationError: There is no such GPU.
        """
        return self._state.share_left(self._checked_gpu(gpu, "gpu")) / WHOLE_GPU

    def gpus_with(self, gpu_fraction: float) -> tuple[int, ...]:
        """Return the GPUs on which a new job can get this share, ascending; for 1.0, `free_gpus()`.

        Raises:
            AllocationError: `gpu_fraction` is not 0.001 to 1 in steps of 0.001.
        """
        share = _checks.thousandths(gpu_fraction, "gpu_fraction", AllocationError, low=0.001, high=1.0)
        return self.free_gpus() if share == 1 else self._state.gpus_with(round(share * WHOLE_GPU))

    def slices(self, gpu: int) -> Mapping[MigSlice, str | None]:
        """Return the slices of `gpu`, each with the id of its job, None for an idle slice; {} without slices.

        Slices are in order of their memory slots; the mapping does not follow later changes.

        Raises:
            AllocationError: There is no such GPU.
        """
        gpu = self._checked_gpu(gpu, "gpu")
        profiles = profiles_of_gpu(self._topology.gpus[gpu])
        found: dict[MigSlice, str | None] = {}
        for parts, compute, job_id in self._state.slices(gpu):
            one = named(parts, compute, profiles)
            assert one is not None  # only such slices are set
            found[one] = job_id
        return MappingProxyType(dict(sorted(found.items(), key=lambda one: one[0].start)))

    @property
    def sliced_gpus(self) -> tuple[int, ...]:
        """Return the GPUs that are cut into slices, ascending."""
        return self._state.sliced_gpus()

    @property
    def allocations(self) -> Mapping[str, tuple[int, ...]]:
        """Return a read-only mapping from job id to the job's GPUs in task order; it does not follow later changes.

        Jobs are in order of allocation; jobs without GPUs are left out.
        """
        return MappingProxyType(self._state.allocations())

    @property
    def jobs(self) -> Mapping[str, JobGraph]:
        """Return a read-only view of the job graphs by job id, for the running jobs whose graph is known."""
        return self._jobs

    def runs(self, job_id: str) -> bool:
        """Return True if a job of this id holds GPUs, or host resources alone."""
        return bool(self.gpus_of(job_id)) or job_id in self._hosts.held

    def gpus_of(self, job_id: str) -> tuple[int, ...]:
        """Return the GPUs of a job in task order; () if it holds none."""
        return self._state.gpus_of(_checked_job(job_id))

    def gpu_thousandths_of(self, job_id: str) -> int:
        """Return the thousandths of each GPU that a job holds (of its memory, for a slice); 1000 if the job holds no
        GPU.
        """
        gpus = self.gpus_of(job_id)
        return self._state.shares_of(gpus[0])[job_id] if gpus else WHOLE_GPU

    def occupants(self, gpus: Sequence[int]) -> tuple[tuple[int, ...], Mapping[str, tuple[int, ...]]]:
        """Return the free ones of `gpus`, and a mapping from job id (sorted) to the ones that the job holds.

        Each job of a shared GPU is listed with it. A GPU out of service that no job holds is in neither result.

        Raises:
            AllocationError: There is no such GPU.
        """
        gpus = _checks.sequence(gpus, "gpus", AllocationError)
        if set(map(type, gpus)) != {int} or min(gpus) < 0 or max(gpus) >= self._topology.num_gpus:
            gpus = [self._checked_gpu(gpu, f"gpus[{i}]") for i, gpu in enumerate(gpus)]
        return self._state.occupants(gpus)

    @property
    def hosts(self) -> Hosts:
        """Return the free and held host resources of the machines; read-only."""
        return self._hosts

    def view(self, build: Callable[[Cluster], AnyView]) -> AnyView:
        """Return the result of `build(cluster)`, built on first use and cached.

        A view is an object with tables derived from the cluster. It follows changes by
        `native.changed_since(position)`. A copy of the cluster starts without views.
        """
        if not callable(build):
            raise AllocationError(f"build = {_checks.shown(build)} is not a function")
        known: dict[Callable[[Cluster], Any], Any] = self._views
        if build not in known:
            known[build] = build(self)
        found: AnyView = known[build]
        return found

    # ---- changes -------------------------------------------------------------------------------------------

    def allocate(
        self, job_id: str, placement: Placement | Sequence[int], job: JobGraph | None = None
    ) -> None:
        """Allocate the GPUs of `placement`, a `Placement` or a sequence of GPUs in task order, to a job.

        The job also gets the host resources in `placement.hosts` and `placement.drives`. With these, it may have no
        GPU.

        Raises AllocationError, and changes nothing, in these cases:
        - The placement is on a topology that does not equal the cluster's. A placement on the same object
          `cluster.topology` takes no time to check. The first one on any other object, such as after pickling, takes
          time proportional to the topology.
        - The job already holds GPUs or host resources, or the placement is empty.
        - The job graph has another number of tasks than there are GPUs.
        - A GPU is unknown, listed twice, out of service, or held by another job, or its free share is too small.
        - A GPU would have to be resliced, or made whole again, and is not in `placement.resliced`; or jobs hold
        slices in the way.
        - The topology allows only certain GPU sets (its partitions), and the GPUs are not one of them.
        - A machine is drained or held, or does not have enough free CPUs, memory or drives.

        Args:
            job: The job graph, by default that of a `Placement`, else none; policies use it to predict interference. If
                its `gpu_fraction` is below 1, the job gets this share of each GPU. If it has a `mig` profile, the job
                gets the slices in `placement.slices`, or else an idle slice of each GPU.
        """
        self._allocate(job_id, placement, job, None)

    def record(
        self,
        job_id: str,
        placement: Placement | Sequence[int],
        job: JobGraph | None = None,
        *,
        gpu_fraction: float | None = None,
    ) -> None:
        """Add a job that already runs, for example after a restart, with the GPUs and host resources that it holds.

        Unlike `allocate`, this accepts GPUs and machines that are out of service and GPUs that are no partition, and
        cuts slices where the placement states them.

        Args:
            job: As for `allocate`. The slices of a `Placement` may be of any profile.
            gpu_fraction: The share of each GPU; by default that of the job graph.

        Raises:
            AllocationError: Another job holds one of these resources, or a machine does not have the CPUs, memory or
                drives; nothing changes then.
        """
        slices = placement.slices if isinstance(placement, Placement) else ()
        share = WHOLE_GPU
        if gpu_fraction is not None and not slices:
            fraction = _checks.thousandths(gpu_fraction, "gpu_fraction", AllocationError, low=0.001, high=1.0)
            share = round(fraction * WHOLE_GPU)
        elif job is not None and not slices:
            share = job.gpu_thousandths
        cut = [
            self._native_slice(gpu, one) for gpu, one in zip(self._listed(placement), slices, strict=False)
        ]
        self._allocate(job_id, placement, job, (share, cut), runs=True)

    def _allocate(
        self,
        job_id: str,
        placement: Placement | Sequence[int],
        job: JobGraph | None,
        parts: _Parts | None,
        *,
        runs: bool = False,
    ) -> None:
        """Allocate as `allocate` does, or with `runs` as `record` does.

        parts: what the job takes of each GPU; None for what the job graph asks for.
        """
        job_id = _checked_job(job_id)
        gpus = self._listed(placement) if runs else self._checked_gpus(placement)
        held, graph = None, job
        resliced: tuple[int, ...] = ()
        if isinstance(placement, Placement):
            graph, resliced = placement.job if job is None else job, placement.resliced
            if placement.hosts or placement.drives:
                held = HostAllocation(placement.hosts, placement.drives, placement.remote)
        if graph is not None:
            _check_tasks(graph, gpus, is_held=bool(gpus or held))
        share, slices = parts or self._parts_for(graph, gpus, placement)
        if 0 < len(resliced) < len(gpus):
            self._refuse_reslicing(gpus, slices, resliced)
        processes, drives = held.amounts() if held else _NOTHING
        allocate = partial(
            self._state.allocate,
            job_id,
            gpus,
            processes,
            drives,
            (graph, held),
            number_of(graph),
            share,
            slices,
            runs or bool(resliced),
            runs,
        )
        status, position = self._with_lent(graph, gpus, held, allocate)
        if status != "ok":
            raise AllocationError(self._reason(job_id, gpus, held, share, status, position))

    def release(self, job_id: str) -> None:
        """Free the job's GPUs and host resources; AllocationError if it holds nothing."""
        job_id = _checked_job(job_id)
        if self._state.release(job_id) != "ok":
            raise AllocationError(f"job {_checks.shown(job_id)} holds no GPUs")

    def slice_gpu(self, gpu: int, slices: Sequence[str | MigSlice]) -> None:
        """Cut a GPU into MIG slices, or with () make it whole again; slices that jobs hold must be among `slices`.

        Args:
            slices: Names of profiles, such as "3g.40gb", or `MigSlice`s, which also state the memory slot in which the
                slice starts. Slices given by name get the lowest slots with which all fit.

        Raises:
            AllocationError: The GPU is unknown or has no such profile, slices do not fit, or a job holds the GPU or a
                share of it; nothing changes then.
        """
        gpu = self._checked_gpu(gpu, "gpu")
        profiles = profiles_of_gpu(self._topology.gpus[gpu])
        wanted = packed(_checks.ordered(slices, "slices", AllocationError), profiles, "slices")
        status = self._state.set_slices(gpu, [(one.parts(start), one.compute) for one, start in wanted])
        if status != "ok":
            holders = ", ".join(map(repr, self._state.shares_of(gpu)))
            raise AllocationError(f"gpu = {gpu} is in use by {holders}: their slices must stay")

    def drain(self, gpu_or_machine: int | str) -> None:
        """Exclude a GPU, or all GPUs of a machine given by name, from new allocations; running jobs keep their GPUs.

        A drained machine also gives no CPUs, memory or drives to new jobs. Draining twice changes nothing.

        Raises:
            AllocationError: There is no such GPU or machine.
        """
        self._change_service([gpu_or_machine], self._state.drain)

    def undrain(self, gpu_or_machine: int | str) -> None:
        """Undo `drain` for a GPU, or for a machine given by name and all its GPUs, even those drained one by one.

        GPUs and machines that are not drained do not change; held or unhealthy ones stay so.

        Raises:
            AllocationError: There is no such GPU or machine.
        """
        self._change_service([gpu_or_machine], self._state.undrain)

    def hold(self, targets: Sequence[int | str], *, reason: str = "spare") -> None:
        """Hold GPUs, and all GPUs of machines given by name, back from new allocations; running jobs keep their GPUs.

        A held machine also gives no CPUs, memory or drives to new jobs.

        Args:
            reason: The reason that refusals and `held_gpus` state; another `hold` changes it.

        Raises:
            AllocationError: One of `targets` is no GPU or machine; nothing changes then.
        """
        reason = _checks.text(reason, "reason", AllocationError)
        self._change_service(targets, partial(self._state.hold, reason))

    def unhold(self, targets: Sequence[int | str]) -> None:
        """Undo `hold` for GPUs, and for machines given by name and all their GPUs; drained ones stay drained.

        GPUs and machines that are not held do not change.

        Raises:
            AllocationError: One of `targets` is no GPU or machine; nothing changes then.
        """
        self._change_service(targets, self._state.unhold)

    def hold_spares(self, *, level: str, machines: int = 1, lent: bool = False) -> Spares:
        """Hold idle machines as spares, so that each domain of a level has at least so many; running jobs stay.

        Spares are healthy machines with nothing on them, held by `hold` for the reason "spare" and given to repairs
        (`topoplace.repair`); those held before count. Of the idle machines of a domain, those like most of its machines
        come first, then those with the highest numbers. Call it again after changes; `unhold` gives spares back.

        Args:
            level: A level of the fabric, such as "rack".
            machines: The number of spares of each domain.
            lent: Pre-emptible jobs, whose `JobGraph.priority` is below 0, may run on the spares that this call holds,
                for the reason "lent spare". Policies give these to them last; a repair that needs one stops them.

        Returns:
            The machines that are now held, the domains that have too few idle ones, and spares beyond the number.

        Raises:
            AllocationError: Names a wrong argument; nothing changes then.
        """
        from topoplace.cluster import spares

        _checks.flag(lent, "lent", AllocationError)
        found = spares.chosen(self._topology, self._state, self._hosts, level, machines)
        self.hold(found.held, reason=spares.LENT if lent else spares.SPARE)
        return found

    def lending(self, job: JobGraph | None) -> AbstractContextManager[bool]:
        """Open a `what_if` block in which lent spares are in service if `job` is pre-emptible.

        The value of the block is True if there are such spares. Policies place the job in it if they find no other
        place; `allocate` then accepts the placement outside, too.
        """
        from topoplace.cluster import spares

        return spares.lending(job, self._state)

    @property
    def num_lent(self) -> int:
        """Return the number of GPUs of lent spares that no job holds, those that are drained or unhealthy included."""
        from topoplace.cluster import spares

        return spares.num_lent(self._state)

    def transaction(self) -> AbstractContextManager[Self]:
        """Open a `with` block at whose end all changes to this cluster are undone if an exception left the block.

        Transactions can be nested; undoing takes time proportional to the number of changes. A copy or snapshot made in
        the block has the state at that time.
        """
        return Transaction(self, self._state, always_undo=False)

    def what_if(self) -> AbstractContextManager[Self]:
        """Open a `with` block at whose end all changes to this cluster are undone, with or without an exception."""
        return Transaction(self, self._state, always_undo=True)

    # ---- copies --------------------------------------------------------------------------------------------

    def copy(self) -> Self:
        """Return an independent cluster in the same state on the same topology."""
        other = self._with_state(self._topology, self._state.copy(), self._hosts.resources)
        other._classes = self._classes
        return other

    def with_topology(self, topology: Topology, hosts: GivenHosts | None = None) -> Cluster:
        """Return a cluster with the same jobs on a topology whose machines were added, removed or repaired.

        A GPU is recognised by its UUID; if the old or the new one is unknown, by its name and that of its machine.
        Drained and held GPUs and machines stay so; the new topology decides which are unhealthy.

        If machines and GPUs keep their numbers, as after a repair, the state is copied as a whole. Otherwise every job
        is allocated again, because numbers change with the machines; GPUs are compared one by one only on machines that
        changed. With 100,000 GPUs and 10,000 jobs, this takes 0.07 CPU-seconds after a repair, and 0.3 if a machine is
        added or removed.

        This cluster does not change.

        Args:
            hosts: As for `Cluster`; by default, machines keep their resources.

        Raises:
            AllocationError: Names up to five jobs that hold GPUs or machines that `topology` lacks. Also raised if a
                job's resources do not fit the new hosts, or if `hosts` is missing and a new machine's resources are
                unknown.
        """
        from topoplace.cluster.new_topology import NewNumbers, keeps_numbers, kept_hosts, refuse_lost

        _checks.instance(topology, Topology, "topology", AllocationError)
        if hosts is None and keeps_numbers(self._topology, topology):
            return self._repaired(topology)
        new = NewNumbers(self._topology, topology)
        held = self._hosts.held
        moved = {
            job_id: new.placement(self._state.gpus_of(job_id), held.get(job_id))
            for job_id in self._state.job_ids()
        }
        refuse_lost([job_id for job_id, placement in moved.items() if placement is None], topology)
        known = kept_hosts(self._hosts, topology) if hosts is None else hosts
        cluster = Cluster(topology, known, classes=self._classes)
        self._copy_slices(cluster, new)
        for job_id, placement in moved.items():
            assert placement is not None
            slices = self._state.slices_of(job_id)
            parts = WHOLE_GPU if slices else self.gpu_thousandths_of(job_id), slices
            cluster._allocate(job_id, placement, self._jobs.get(job_id), parts, runs=True)
        self._copy_service(cluster, new)
        return cluster

    def _copy_service(self, cluster: Cluster, new: NewNumbers) -> None:
        """Drain and hold in `cluster` what is drained and held in this one."""
        cluster._state.drain(
            new.gpus(self._state.drained_gpus()), new.machines(self._state.drained_machines())
        )
        for number, held in enumerate(self._state.held()):
            for reason in dict.fromkeys(held.values()):
                targets = [target for target, its in held.items() if its == reason]
                if number == 0:
                    cluster._state.hold(reason, new.gpus(targets))
                else:
                    cluster._state.hold(reason, (), new.machines(targets))

    def _copy_slices(self, cluster: Cluster, new: NewNumbers) -> None:
        """Cut the GPUs of `cluster` like those of this one, with no job in a slice."""
        for gpu in self._state.sliced_gpus():
            slices = [(parts, compute) for parts, compute, _ in self._state.slices(gpu)]
            for number in new.gpus([gpu]):
                cluster._state.set_slices(number, slices)

    def _repaired(self, topology: Topology) -> Cluster:
        """Return a copy on a topology with the same machines and GPUs, of which others may be healthy."""
        cluster = self.copy()
        cluster._take_health(topology)
        return cluster

    def take_health(self, topology: Topology) -> None:
        """Replace the topology by one that differs only in the unhealthy GPUs; `with_topology` returns a copy instead.

        Jobs stay, and so do drained and held GPUs. A transaction does not undo this change.

        Raises:
            AllocationError: `topology` has other machines or GPUs.
        """
        from topoplace.cluster.new_topology import keeps_numbers

        _checks.instance(topology, Topology, "topology", AllocationError)
        if not keeps_numbers(self._topology, topology):
            raise AllocationError(f"topology = {topology.name!r} has other machines or GPUs than the cluster")
        self._take_health(topology)

    def snapshot(self) -> bytes:
        """Return the state, topology and jobs as bytes that `restore` reads; equal states give equal bytes."""
        from topoplace.cluster import snapshots

        return snapshots.written(self._topology, self._state, self._jobs, self._hosts)

    @classmethod
    def restore(cls, snapshot: bytes) -> Self:
        """Build a cluster from bytes that `snapshot` returned; SnapshotError states what is wrong with other bytes."""
        from topoplace.cluster import snapshots

        return cls._with_state(*snapshots.parsed(snapshot))

    def __reduce__(self) -> tuple[Callable[[bytes], Cluster], tuple[bytes]]:
        return type(self).restore, (self.snapshot(),)

    def __repr__(self) -> str:
        return f"Cluster({self._topology.name!r}, {self.num_free} of {self._topology.num_gpus} GPUs free)"

    def _repr_svg_(self) -> str:
        """Return a drawing of who holds which GPUs, which notebooks show; see `topoplace.drawing.svg`."""
        closed = [gpu for gpu in self.out_of_service() if self.owner(gpu) is None]
        return _svg(self._topology.with_unhealthy(closed), busy=self.allocations)

    @classmethod
    def _with_state(
        cls, topology: Topology, state: ClusterState, resources: tuple[HostResources, ...]
    ) -> Self:
        cluster = cls.__new__(cls)
        cluster._start(topology, state, resources)
        return cluster

    # ---- helpers -------------------------------------------------------------------------------------------

    def _with_lent(
        self,
        job: JobGraph | None,
        gpus: Sequence[int],
        held: HostAllocation | None,
        allocate: Callable[[], tuple[str, int]],
    ) -> tuple[str, int]:
        """Return the result of `allocate`; if something is held, try again with what is lent to the job."""
        found = allocate()
        if found[0] not in ("held_gpu", "hosts_short") or job is None or not job.is_preemptible:
            return found
        from topoplace.cluster import spares

        return spares.on_lent(self._state, gpus, held, allocate)

    def _start(self, topology: Topology, state: ClusterState, resources: tuple[HostResources, ...]) -> None:
        self._topology, self._state, self._classes = topology, state, True
        self._hosts = Hosts(topology.machine_names, resources, state)
        self._jobs: Mapping[str, JobGraph] = JobNotes[JobGraph](state, GRAPH)
        self._views = {}

    def _take_health(self, topology: Topology) -> None:
        self._state.set_unhealthy(self._topology.unhealthy_gpus, unhealthy=False)
        self._state.set_unhealthy(topology.unhealthy_gpus, unhealthy=True)
        self._topology, self._views = topology, {}

    def _parts_for(
        self, job: JobGraph | None, gpus: tuple[int, ...], placement: Placement | Sequence[int]
    ) -> _Parts:
        """Return what a job takes of each GPU; the slices are those of the placement, or else idle ones."""
        chosen = placement.slices if isinstance(placement, Placement) else ()
        if job is None or job.mig is None:
            if chosen:
                raise AllocationError(f"slices = {chosen}: the job has no mig profile")
            return (WHOLE_GPU if job is None else job.gpu_thousandths), _NO_SLICES
        found: list[tuple[int, int]] = []
        for i, gpu in enumerate(gpus):
            profile = profiles_of_gpu(self._topology.gpus[gpu]).get(job.mig)
            if profile is None:
                raise AllocationError(f"gpus[{i}] = {gpu} has no MIG profile {job.mig!r}")
            if chosen and chosen[i].profile != job.mig:
                raise AllocationError(f"slices[{i}] = {chosen[i]}: the job asks for {job.mig!r}")
            start = chosen[i].start if chosen else self._idle_slice(gpu, profile)
            found.append((profile.parts(start), profile.compute))
        return WHOLE_GPU, found

    def _refuse_reslicing(
        self, gpus: tuple[int, ...], slices: Sequence[tuple[int, int]], resliced: Sequence[int]
    ) -> None:
        """Raise AllocationError for a GPU that would have to be resliced and is not in `resliced`."""
        for i, gpu in enumerate(gpus):
            now = self._state.slices(gpu)
            is_there = (*slices[i], None) in now if slices else not now
            if gpu not in resliced and not is_there:
                why = _SLICE_REASONS["no_slice" if slices else "sliced_gpu"]
                raise AllocationError(f"gpus[{i}] = {gpu} {why}")

    def _idle_slice(self, gpu: int, profile: MigProfile) -> int:
        """Return the start of the lowest idle slice of this profile; if there is none, its lowest start."""
        found = start_for(profile, {}, present(self._state.slices(gpu)), may_reslice=False)
        return profile.starts[0] if found is None else found.start

    def _change_service(
        self, targets: Sequence[int | str], change: Callable[[Sequence[int], Sequence[int]], bool]
    ) -> None:
        """Call `change` with the GPUs and the machines that `targets` means; AllocationError for an unknown one."""
        if isinstance(targets, str):
            raise AllocationError(f"targets = {targets!r}: must be several GPUs or machines, not one text")
        gpus: list[int] = []
        machines: list[int] = []
        for target in _checks.ordered(targets, "targets", AllocationError):
            if not isinstance(target, str):
                gpus.append(self._checked_gpu(target, "gpu"))
                continue
            own = self._topology.gpus_of.get(target)
            if own is None:
                raise AllocationError(f"machine {_checks.shown(target)} is not in the topology")
            gpus += own
            machines.append(int(self._topology.machine_of[own[0]]))
        change(gpus, machines)

    def _native_slice(self, gpu: int, slice_: MigSlice) -> tuple[int, int]:
        profile = profiles_of_gpu(self._topology.gpus[gpu])[slice_.profile]  # `Placement` has checked it
        return profile.parts(slice_.start), profile.compute

    def _checked_gpu(self, gpu: object, what: str) -> int:
        return _checks.integer(gpu, what, AllocationError, low=0, high=self._topology.num_gpus - 1)

    def _checked_gpus(self, placement: Placement | Sequence[int]) -> tuple[int, ...]:
        gpus = self._listed(placement)
        if gpus and not self._topology.is_legal(gpus):
            raise AllocationError(f"gpus = {gpus!r} is not a partition of {self._topology.name}")
        return gpus

    def _listed(self, placement: Placement | Sequence[int]) -> tuple[int, ...]:
        if isinstance(placement, Placement):
            gpus = placement.gpus  # checked when it was made
            if placement.topology is not self._topology and placement.topology != self._topology:
                where = f"{placement.topology.name!r}, not on the cluster's {self._topology.name!r}"
                raise AllocationError(f"placement.topology: the placement is on {where}")
        else:
            listed = _checks.ordered(placement, "gpus", AllocationError)
            gpus = tuple(self._checked_gpu(gpu, f"gpus[{i}]") for i, gpu in enumerate(listed))
        return gpus

    def _reason(
        self,
        job_id: str,
        gpus: Sequence[int],
        held: HostAllocation | None,
        share: int,
        status: str,
        position: int,
    ) -> str:
        """Return why an allocation was refused with this status; AllocationError if host resources are short."""
        if status == "no_gpus":
            return f"gpus = {gpus!r} is empty"
        if status == "job_exists":
            what = f"GPUs {known}" if (known := self._state.gpus_of(job_id)) else "host resources"
            return f"job {_checks.shown(job_id)} already holds {what}"
        if status == "hosts_short" and held is not None:
            self._hosts.check(held)
        where = f"gpus[{position}] = {gpus[position]}"
        if status == "taken_gpu":
            holders = tuple(self._state.shares_of(gpus[position]))
            jobs = f"job {holders[0]!r}" if len(holders) == 1 else f"jobs {', '.join(map(repr, holders))}"
            return f"{where} is held by {jobs}"
        if status in _SLICE_REASONS:
            return f"{where} {_SLICE_REASONS[status]}"
        if status == "share_short":
            left = self.share_left(gpus[position])
            return f"{where}: {left:g} of it is left, gpu_fraction = {share / WHOLE_GPU:g} is asked for"
        if status == "held_gpu":
            return f"{where} is held: {self._state.held()[0][gpus[position]]}"
        return f"{where} {_SERVICE_REASONS.get(status, 'is there twice')}"


_NOTHING: tuple[tuple[()], tuple[()]] = (), ()
_NO_SLICES: list[tuple[int, int]] = []
_SERVICE_REASONS: Mapping[str, str] = MappingProxyType(
    {"drained_gpu": "is drained", "unhealthy_gpu": "is unhealthy"}
)
_SLICE_REASONS: Mapping[str, str] = MappingProxyType(
    {
        "sliced_gpu": "is cut into idle MIG slices, and is not in placement.resliced",
        "no_slice": "has no such idle MIG slice, and is not in placement.resliced",
        "slots_taken": "has no room for the slice next to those that jobs hold",
    }
)


def _check_tasks(graph: JobGraph, gpus: Sequence[int], *, is_held: bool) -> None:
    """Raise AllocationError unless the job graph has a task for each GPU. is_held: False if the job gets nothing."""
    if type(graph) is not JobGraph:
        _checks.instance(graph, JobGraph, "job", AllocationError)
    if graph.num_tasks != len(gpus) and is_held:
        raise AllocationError(f"gpus = {gpus!r}: {len(gpus)} for a job of {graph.num_tasks} tasks")


def _checked_job(job_id: object) -> str:
    if type(job_id) is str and job_id and job_id.isascii():
        return job_id
    return _checks.text(job_id, "job_id", AllocationError)
