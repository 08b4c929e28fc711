"""Requests: equal for interchangeable jobs, so that a decision is made once and answers all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from topoplace import kernels
from topoplace.engine.admission import suits_of
from topoplace.engine.machine_class import MachineClass, MachineClasses, Mask, mask_of, members
from topoplace.engine.memo import Memo
from topoplace.objectives.links import scores_from
from topoplace.objectives.utility import communication_cost_from

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.topology import Topology

Built = TypeVar("Built")
_MAX_COMPARED_EDGES = 256
_EXACT_GPUS = 8
"""Up to this many GPUs the best mapping is proven; it takes microseconds."""


def resource_key(job: JobGraph) -> Hashable:
    """Return a key that is equal for jobs that need the same of a cluster, however their tasks communicate."""
    return (
        *(job.num_tasks, job.processes, job.cpus, job.memory_gb, job.drives),
        *(job.gpu_model, job.gpu_memory_gb, job.single_machine, job.anti_affinity),
    )


def request_key(job: JobGraph) -> Hashable:
    """Return a key that is equal for jobs that no policy can tell apart.

    Large graphs count as equal only if they are the same object, which the user of the key must keep alive.
    """
    graph = job.edges if len(job.edges) <= _MAX_COMPARED_EDGES else id(job.graph)
    return (resource_key(job), graph, job.profile, job.memory_bandwidth)


class JobRequest:
    """The request of all jobs of one `request_key`, with the tables that answer it; the view has one object for each.

    Every table is built for the first of these jobs and is valid for all of them.
    """

    def __init__(self, job: JobGraph, topology: Topology) -> None:
        self.job = job
        """The first job with this request."""
        self.size = job.num_tasks
        """Number of GPUs it needs."""
        self.profile = job.profile or ""
        """The name of its performance profile, "" for none."""
        self.anti_affine = job.anti_affinity and job.num_tasks > 1
        """Whether no two of its tasks may share a machine."""
        self.resource_key = resource_key(job)
        """Equal for requests that need the same of a cluster."""
        self._tables: Memo[Hashable, Any] = Memo()
        self._topology = topology
        self._suitable: dict[MachineClass, Mask] = {}
        self._link_scores: Memo[tuple[MachineClass, tuple[int, ...]], dict[str, float]] = Memo()
        self._mapped: Memo[tuple[MachineClass, Mask], tuple[int, ...]] = Memo()

    def table(self, key: Hashable, build: Callable[[], Built]) -> Built:
        """Return the table that a policy derives from this request by `build`, built on first use."""
        found: Built = self._tables.get_or_build(key, build)
        return found

    @cached_property
    def weight(self) -> float:
        """The sum of its edges' weights."""
        return sum(weight for _, _, weight in self.job.edges)

    @cached_property
    def classes_that_fit(self) -> list[MachineClass]:
        """The classes with enough suitable GPUs for all of it; none for a job whose tasks must not share a machine."""
        classes = [] if self.anti_affine else self._topology.derived(MachineClasses).classes
        return [one for one in classes if self._idle_regions(one)]

    @cached_property
    def communication_range(self) -> tuple[float, float]:
        """The least and the largest cost of its communication on one machine that it fits.

        On machines of more than 8 GPUs both are what the search finds; on smaller ones they are proven.
        """
        places = [(one, region) for one in self.classes_that_fit for region in self._idle_regions(one)]
        least = (self.communication(one, self.mapped(one, region)) for one, region in places)
        most = (self._dearest(one, region) for one, region in places)
        lowest, highest = min(filter(math.isfinite, least), default=0.0), max(most, default=0.0)
        return lowest, max(lowest, highest)

    def _idle_regions(self, machine_class: MachineClass) -> list[Mask]:
        return self.regions(machine_class, self.suitable(machine_class) & machine_class.healthy)

    def _dearest(self, machine_class: MachineClass, region: Mask) -> float:
        gpus = self._map(machine_class.nearness, region)
        cost = self.communication(machine_class, gpus)
        return cost if math.isfinite(cost) else self.weight * machine_class.farthest

    def suitable(self, machine_class: MachineClass) -> Mask:
        """Return the GPUs of a machine that have the model and the memory it needs."""
        if machine_class not in self._suitable:
            suits = suits_of(self.job)
            wanted = (local for local, gpu in enumerate(machine_class.gpus) if suits(gpu))
            self._suitable[machine_class] = mask_of(wanted)
        return self._suitable[machine_class]

    def regions(self, machine_class: MachineClass, free: Mask) -> list[Mask]:
        """Return the sets of free GPUs it may be placed in: partitions of its size, or `free` without partitions."""
        if machine_class.partitions:
            legal = (part for part in machine_class.partitions if part & free == part)
            return [part for part in legal if part.bit_count() == self.size]
        return [free] if free.bit_count() >= self.size else []

    def communication(self, machine_class: MachineClass, gpus: Sequence[int]) -> float:
        """Return the communication cost on GPUs of a machine; infinite if two tasks that communicate have no path."""
        return communication_cost_from(self.job.edges, gpus, machine_class.rows)

    def link_scores(self, machine_class: MachineClass, gpus: tuple[int, ...]) -> dict[str, float]:
        """Return the scores of the links between GPUs of a machine."""
        key = (machine_class, gpus)
        if key not in self._link_scores:
            tables = machine_class.bandwidth, machine_class.classes
            self._link_scores[key] = scores_from(self.job.edges, gpus, *tables)
        return self._link_scores[key]

    def mapped(self, machine_class: MachineClass, region: Mask) -> tuple[int, ...]:
        """Return the GPUs with the least communication cost in a large enough region, in task order."""
        key = (machine_class, region)
        if key not in self._mapped:
            self._mapped[key] = self._map(machine_class.target, region)
        return self._mapped[key]

    def _map(self, target: kernels.TargetDistance, region: Mask) -> tuple[int, ...]:
        free = list(members(region))
        if self.size == 1:
            return (free[0],)
        method: Literal["exact", "drb"] = "exact" if len(free) <= _EXACT_GPUS else "drb"
        found = kernels.map_graph(self.job.graph, target, method=method, free=free)
        assert found is not None  # the region is large enough
        return tuple(found.target_of.tolist())
