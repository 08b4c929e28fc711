"""The present state of each machine of a cluster, updated incrementally: only machines that changed are read again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from topoplace.engine.free_resources import PLENTY, FreeColumns
from topoplace.engine.machine_class import MachineClass, MachineClasses, Mask, mask_of
from topoplace.engine.memo import Memo
from topoplace.engine.request import JobRequest, request_key

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.jobs.job_graph import JobGraph

Built = TypeVar("Built")
_MAX_REQUESTS = 1 << 14
_MAX_TABLES = 1 << 11
"""Maximum number of cached tables, about one per request and policy; beyond it the oldest are dropped."""


class Neighbour(NamedTuple):
    """The properties of a running job that determine its interference with other jobs on the same machine."""

    profile: str
    """The name of the job's performance profile; "" if it is unknown."""
    num_tasks: int
    sockets: Mask
    """The sockets of this machine on which the job holds GPUs, as a bit mask of socket numbers."""


class MachineState(NamedTuple):
    """The running jobs of one machine, and its free GPUs, CPUs and memory.

    Policies treat machines of equal class and state alike.
    """

    free: Mask
    neighbours: tuple[Neighbour, ...]
    memory_bandwidth: float
    """GB/s of host memory bandwidth that the jobs on the machine use."""
    cpus: int = PLENTY
    """Free CPUs; `PLENTY` if unknown, below 0 if the machine accepts no processes."""
    megabytes: int = PLENTY
    """Free host memory, MB; `PLENTY` if unknown."""


class MachineKind:
    """A machine class and a state. A view has one object for each, so that it is compared by identity."""

    __slots__ = ("machine_class", "state", "without_hosts")

    def __init__(
        self, machine_class: MachineClass, state: MachineState, without_hosts: MachineKind | None = None
    ) -> None:
        self.machine_class = machine_class
        self.state = state
        self.without_hosts = without_hosts or self
        """The kind of the same class and state, but with unknown CPUs and memory."""


class MachineWatcher:
    """Base of tables with an entry per machine; the cluster view adds changed machines to `stale`."""

    def __init__(self) -> None:
        self.stale: set[int] = set()
        """The machines that changed since the table was last updated."""


class ChangeListener(Protocol):
    """A table derived from a cluster that is notified of every change of the cluster."""

    def changed(self, gpus: Sequence[int]) -> None:
        """Update the table after a change of the cluster.

        gpus: the GPUs whose owner or drain state may have changed, and one GPU of each machine whose free CPUs, memory
        or drives may have changed.
        """
        ...


Listener = TypeVar("Listener", bound=ChangeListener)


class ClusterView:
    """Tables derived from a cluster and kept up to date (`Cluster.view`); one object serves all policies."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._kinds: list[MachineKind | None] = []
        """The kind of each machine, None for outdated ones; empty until a policy asks for a machine's kind."""
        self._known_kinds: Memo[tuple[MachineClass, MachineState], MachineKind] = Memo()
        self._watchers: list[set[int]] = []
        self._listeners: dict[Hashable, ChangeListener] = {}
        self._columns: FreeColumns | None = None
        self._tables: Memo[Hashable, Any] = Memo(_MAX_TABLES, self._forgot_tables)
        self._requests: Memo[Hashable, JobRequest] = Memo(_MAX_REQUESTS, self._forgot_requests)
        self._request_of: Memo[int, tuple[JobGraph, JobRequest]] = Memo()

    def changed(self, gpus: Sequence[int]) -> None:
        """Mark the machines of `gpus` as changed in every table, and notify the listeners."""
        if self._columns is not None:
            self._columns.stale.update(gpus)
        if self._kinds:
            machine_of = self.classes.machine_of
            for machine in {machine_of[gpu] for gpu in gpus}:
                self._kinds[machine] = None
                for stale in self._watchers:
                    stale.add(machine)
        for listener in self._listeners.values():
            listener.changed(gpus)

    # ---- jobs ----------------------------------------------------------------------------------------------

    def request(self, job: JobGraph) -> JobRequest:
        """Return the `JobRequest` of a job; jobs with equal `request_key` share one object."""
        known = self._request_of.get(id(job))  # holds the job, so that no other gets its id
        if known is None:
            request = self._requests.get_or_build(
                request_key(job), lambda: JobRequest(job, self.cluster.topology)
            )
            known = self._request_of[id(job)] = (job, request)
        return known[1]

    # ---- machines ------------------------------------------------------------------------------------------

    @cached_property
    def classes(self) -> MachineClasses:
        """The topology's machines grouped into classes of interchangeable hardware."""
        classes = self.cluster.topology.derived(MachineClasses)
        self._kinds = [None] * classes.num_machines
        return classes

    def kind(self, machine: int) -> MachineKind:
        """Return the class and the present state of machine number `machine`."""
        known = self._kinds[machine] if self._kinds else None
        if known is None:
            machine_class = self.classes.of(machine)
            known = self._kinds[machine] = self._kind_of(machine_class, self._read(machine, machine_class))
        return known

    def state(self, machine: int) -> MachineState:
        """Return the present state of machine number `machine`."""
        return self.kind(machine).state

    def _kind_of(self, machine_class: MachineClass, state: MachineState) -> MachineKind:
        known = self._known_kinds.get((machine_class, state))
        if known is None:
            other = state._replace(cpus=PLENTY, megabytes=PLENTY)
            without_hosts = None if other == state else self._kind_of(machine_class, other)
            known = MachineKind(machine_class, state, without_hosts)
            self._known_kinds[machine_class, state] = known
        return known

    def _read(self, machine: int, machine_class: MachineClass) -> MachineState:
        local = self.classes.local_of
        free, held = self.cluster.occupants(self.classes.gpus_of[machine])
        graphs = self.cluster.jobs
        neighbours: list[Neighbour] = []
        bandwidth = 0.0
        for job_id, its in held.items():
            where = mask_of([local[gpu] for gpu in its])
            job = graphs.get(job_id)
            size = job.num_tasks if job else len(its)
            neighbours.append(Neighbour((job and job.profile) or "", size, machine_class.touched(where)))
            if job and job.memory_bandwidth:
                bandwidth += job.memory_bandwidth * len(its) / size
        cpus, megabytes = self._free_hosts(machine)
        free_gpus = mask_of([local[gpu] for gpu in free])
        return MachineState(free_gpus, tuple(sorted(neighbours)), bandwidth, cpus, megabytes)

    def _free_hosts(self, machine: int) -> tuple[int, int]:
        """Return the free CPUs and MB of a machine."""
        hosts = self.cluster.hosts
        if hosts.is_drained(machine):
            return -1, -1
        if not hosts.resources:
            return PLENTY, PLENTY
        cpus, megabytes, _ = hosts.free[machine].tolist()
        return cpus, megabytes

    # ---- tables --------------------------------------------------------------------------------------------

    @property
    def columns(self) -> FreeColumns:
        """The free resources of the cluster as numpy columns, kept up to date."""
        if self._columns is None:
            self._columns = FreeColumns(self.cluster)
        return self._columns

    def table(self, key: Hashable, build: Callable[[], Built]) -> Built:
        """Return the object that `build` made on first use; it is cached under `key`.

        The oldest objects are dropped if there are too many. If the object is a `MachineWatcher`, machines that change
        are added to its `stale` from then on.
        """
        if key not in self._tables:
            try:
                table = self._tables[key] = build()
                if isinstance(table, MachineWatcher):
                    table.stale.update(range(self.classes.num_machines))
                    self._watchers.append(table.stale)
            except BaseException:  # an interrupt: changes would not reach the table
                self._tables.pop(key, None)
                raise
        found: Built = self._tables[key]
        return found

    def listener(self, key: Hashable, build: Callable[[], Listener]) -> Listener:
        """Return the object that `build` made on first use; it is kept under `key`.

        Every change of the cluster calls the object's `changed`.
        """
        if key not in self._listeners:
            self._listeners[key] = build()
        found: Listener = self._listeners[key]  # type: ignore[assignment]
        return found

    def _forgot_tables(self) -> None:
        tables = self._tables.values()
        self._watchers = [table.stale for table in tables if isinstance(table, MachineWatcher)]

    def _forgot_requests(self) -> None:
        self._request_of.clear()
