"""Who runs where, machine by machine, kept up to date at the price of what changed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from topoplace.policies.board import Board
from topoplace.policies.bounded import Bounded
from topoplace.policies.kinds import Kind, kind_key
from topoplace.policies.shapes import Mask, Shape, Shapes, mask_of

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.jobs.job_graph import JobGraph

Built = TypeVar("Built")
_MAX_KEPT = 4096
"""So many things are kept, about three for a kind of job and a policy; then the older half is forgotten."""


class Neighbour(NamedTuple):
    """A running job as those on its machine see it."""

    profile: str
    """The name of its performance profile; "" where nobody knows."""
    num_tasks: int
    sockets: Mask
    """The sockets it has GPUs on, by their number."""


class MachineState(NamedTuple):
    """One machine at one moment; equal states of equal shapes get equal answers."""

    free: Mask
    neighbours: tuple[Neighbour, ...]
    memory_bandwidth: float
    """GB/s of host memory bandwidth that its jobs have asked for."""


class Occupancy:
    """A view (`Cluster.view`) of each machine's `MachineState`."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.shapes: Shapes = cluster.topology.derived(Shapes)
        self._states: list[MachineState | None] = [None] * self.shapes.num_machines
        self._watchers: list[set[int]] = []
        self._kept: dict[Hashable, object] = {}
        self._kinds: Bounded[int, tuple[JobGraph, Kind]] = Bounded()

    def changed(self, gpus: Sequence[int]) -> None:
        """Forget what is known of the machines of `gpus`."""
        machine_of = self.shapes.machine_of
        for machine in {machine_of[gpu] for gpu in gpus}:
            self._states[machine] = None
            for stale in self._watchers:
                stale.add(machine)

    def watch(self) -> set[int]:
        """A set to which every machine is added that changes from now on."""
        stale: set[int] = set()
        self._watchers.append(stale)
        return stale

    def kind(self, job: JobGraph) -> Kind:
        """The kind of a job; jobs that differ in nothing a machine can tell share one."""
        known = self._kinds.get(id(job))  # holds the job, so that no other gets its id
        if known is None:
            known = self._kinds[id(job)] = (job, self.kept(kind_key(job), lambda: Kind(job, self.shapes)))
        return known[1]

    def kept(self, key: Hashable, build: Callable[[], Built]) -> Built:
        """What `build` made for this key when it was first asked for."""
        if key not in self._kept:
            if len(self._kept) >= _MAX_KEPT:
                self._forget_oldest()
            self._kept[key] = build()
        found: Built = self._kept[key]  # type: ignore[assignment]
        return found

    def _forget_oldest(self) -> None:
        for key in list(islice(self._kept, _MAX_KEPT // 2)):
            del self._kept[key]
        self._kinds.clear()
        self._watchers = [board.stale for board in self._kept.values() if isinstance(board, Board)]

    def shape(self, machine: int) -> Shape:
        """The shape of a machine."""
        return self.shapes.shapes[self.shapes.shape_of[machine]]

    def state(self, machine: int) -> MachineState:
        """How a machine is now."""
        known = self._states[machine]
        if known is None:
            known = self._states[machine] = self._read(machine)
        return known

    def _read(self, machine: int) -> MachineState:
        shape, local = self.shape(machine), self.shapes.local_of
        free, held = self.cluster.occupants(self.shapes.gpus_of[machine])
        graphs = self.cluster.jobs
        neighbours: list[Neighbour] = []
        bandwidth = 0.0
        for job_id, its in held.items():
            where = mask_of(local[gpu] for gpu in its)
            job = graphs.get(job_id)
            size = job.num_tasks if job else len(its)
            neighbours.append(Neighbour((job and job.profile) or "", size, shape.touched(where)))
            if job and job.memory_bandwidth:
                bandwidth += job.memory_bandwidth * len(its) / size
        return MachineState(mask_of(local[gpu] for gpu in free), tuple(sorted(neighbours)), bandwidth)
