"""A plan that gives tasks of a running job other GPUs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.cluster.spares import SPARE, SPARES
from topoplace.errors import AllocationError
from topoplace.placement import Placement

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.moving.held_shares import HeldShares
    from topoplace.topology.topology import Topology


class Moved(NamedTuple):
    """How much a plan moves, in the order of what it costs a job."""

    machines: int
    """Machines with tasks of the job that had none before."""
    tasks: int
    """Tasks that change machine: what they stored there is lost."""
    gpus: int
    """Tasks that change GPU inside their machine."""

    @property
    def all(self) -> int:
        """Return the number of tasks that move."""
        return self.tasks + self.gpus


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A plan that moves tasks of a running job; all other tasks keep their GPUs and what they have of their hosts."""

    job_id: str
    gpus: tuple[int, ...]
    """The GPUs that the job holds before."""
    replaced: Mapping[int, tuple[int, int]] = field(hash=False)
    """The GPU before and after of each task that moves."""
    moved: Moved
    time: float
    """Seconds a step that the job communicates afterwards; infinite while a task has no GPU."""
    placement: Placement | None
    """The job afterwards; None if tasks remain without a GPU."""
    added: Mapping[int, int] = field(default_factory=dict[int, int], hash=False)
    """The GPU of each new task of a job that grows."""
    given_back: tuple[int, ...] = ()
    """The GPUs that a job gives back as it shrinks, ascending."""
    wait: float = 0.0
    """Seconds until other jobs have left the GPUs of the plan, which cannot be carried out before."""
    others: Mapping[str, tuple[tuple[int, ...], Placement | None]] = field(
        default_factory=dict[str, tuple[tuple[int, ...], Placement | None]], hash=False
    )
    """The GPUs of other jobs that make way, and where they go; None for those that stop."""
    spares: tuple[str, ...] = ()
    """The machines held as spares that the plan uses; `carry_out` releases them, but for what is lent to the job."""

    def carry_out(self, cluster: Cluster) -> None:
        """Give the job its new GPUs, and others theirs, all at once: nobody can get one of them in between.

        Raises:
            AllocationError: The job does not hold the GPUs that the plan expects, another job has one of the new ones,
                or tasks remain without a GPU; nothing changes then.
        """
        _checks.instance(cluster, Cluster, "cluster", ValueError)
        self._refuse_outdated(cluster)
        with cluster.transaction():
            held = cluster.held_gpus()
            cluster.unhold(self.spares)
            for gpu in (gpu for machine in self.spares for gpu in cluster.topology.gpus_of[machine]):
                if held.get(gpu, SPARE) not in SPARES:
                    cluster.hold([gpu], reason=held[gpu])
            self._carry_out(cluster)

    def _refuse_outdated(self, cluster: Cluster) -> None:
        if self.placement is None:
            raise AllocationError(f"job {self.job_id!r}: tasks remain without a GPU, so that it cannot go on")
        for job_id, before in (
            (self.job_id, self.gpus),
            *((one, was) for one, (was, _) in self.others.items()),
        ):
            if cluster.gpus_of(job_id) != before:
                raise AllocationError(f"job {job_id!r} does not hold the GPUs of this plan any more")

    def _carry_out(self, cluster: Cluster) -> None:
        own = set(self.gpus).difference(cluster.topology.unhealthy_gpus)  # its tasks may swap places
        assert self.placement is not None
        with cluster.lending(self.placement.job):
            closed = set(cluster.out_of_service()) - own
        for new in (*(new for _, new in self.replaced.values()), *self.added.values()):
            if new in closed:
                raise AllocationError(f"GPU {new} is out of service")
        jobs = {job_id: cluster.jobs.get(job_id) for job_id in self.others}
        for job_id in (self.job_id, *self.others):
            cluster.release(job_id)
        cluster.record(self.job_id, self.placement, self.placement.job)  # it may stay on GPUs out of service
        for job_id, (_, placement) in self.others.items():
            if placement is not None:
                cluster.allocate(job_id, placement, jobs[job_id])


def plan_of(
    job_id: str,
    held: Sequence[int],
    job: JobGraph,
    old: Sequence[int],
    gpus: tuple[int, ...],
    seconds: float,
    shares: HeldShares,
    topology: Topology,
    lost: Iterable[int] = (),
) -> Reassignment:
    """Return the plan that gives each task of a job one of `gpus`, or none for -1.

    held: all GPUs that it holds. job: the job afterwards. old: the former GPU of each of its tasks, -1 for new ones.
    seconds: how long it then communicates in a step.
    lost: GPUs that it can use no longer.
    """
    changed = np.flatnonzero(np.array(old) != np.array(gpus)).tolist()
    pairs = [(task, old[task], gpus[task]) for task in changed]
    replaced = {task: (was, new) for task, was, new in pairs if was >= 0 and new >= 0}
    added = {task: new for task, was, new in pairs if was < 0}
    moves = moves_of(old, gpus, held, topology)
    if min(gpus) < 0:
        return Reassignment(job_id, tuple(held), replaced, moves, math.inf, None, added)
    placement = Placement(gpus, topology=topology, job=job, hosts=shares.of(job, gpus), scores={})
    given_back = set(held) - set(gpus) - {was for was, _ in replaced.values()} - set(lost)
    return Reassignment(
        job_id, tuple(held), replaced, moves, seconds, placement, added, tuple(sorted(given_back))
    )


def moves_of(old: Sequence[int], new: Sequence[int], held: Sequence[int], topology: Topology) -> Moved:
    """Return how much moves if tasks have new GPUs; -1 for a task without a GPU. held: all GPUs of the job before."""
    machine_of = topology.machine_of
    changed = [(was, now) for was, now in zip(old, new, strict=True) if was != now and now >= 0]
    opened = {int(machine_of[now]) for _, now in changed}.difference(machine_of[list(held)].tolist())
    tasks = sum(was >= 0 and machine_of[was] != machine_of[now] for was, now in changed)
    inside = sum(was >= 0 for was, _ in changed) - tasks
    return Moved(len(opened), int(tasks), int(inside))
