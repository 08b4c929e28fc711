"""Jobs that a policy cannot tell apart: decided once, answered for all of them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from topoplace import kernels
from topoplace.objectives import scores_from
from topoplace.policies.base import suits_of
from topoplace.policies.bounded import Bounded
from topoplace.policies.shapes import Mask, Shape, Shapes, mask_of, members

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph

_MAX_COMPARED_EDGES = 256
_EXACT_GPUS = 8
"""Up to so many GPUs the best mapping is proven; it takes microseconds."""


def kind_key(job: JobGraph) -> Hashable:
    """Equal for jobs of one kind. Large graphs count as equal only where they are the same object, which the key's
    user has to keep alive.
    """
    graph = job.edges if len(job.edges) <= _MAX_COMPARED_EDGES else id(job.graph)
    return (
        *(job.num_tasks, graph, job.profile, job.gpu_model, job.gpu_memory_gb),
        *(job.single_machine, job.anti_affinity, job.memory_bandwidth),
    )


class Kind:
    """A kind of job on the machines of one topology."""

    def __init__(self, job: JobGraph, shapes: Shapes) -> None:
        self.job = job
        self.shapes = shapes
        self._suitable: dict[Shape, Mask] = {}
        self._link_scores: Bounded[tuple[Shape, tuple[int, ...]], dict[str, float]] = Bounded()
        self._mapped: Bounded[tuple[Shape, Mask], tuple[int, ...]] = Bounded()

    @property
    def size(self) -> int:
        """How many GPUs it needs."""
        return self.job.num_tasks

    @property
    def profile(self) -> str:
        """The name of its performance profile, "" for none."""
        return self.job.profile or ""

    @cached_property
    def weight(self) -> float:
        """The sum of its edges' weights."""
        return sum(weight for _, _, weight in self.job.edges)

    @cached_property
    def fitting(self) -> list[Shape]:
        """The shapes with enough suitable GPUs for all of it; none for a job whose tasks must be apart."""
        apart = self.job.anti_affinity and self.size > 1
        shapes = [] if apart else self.shapes.shapes
        return [shape for shape in shapes if self._idle_regions(shape)]

    @cached_property
    def extremes(self) -> tuple[float, float]:
        """The least and the most its communication can cost (eq. 3) on one machine that it fits, where that works.

        On machines of more than 8 GPUs both are what the search finds; on smaller ones they are proven.
        """
        places = [(shape, region) for shape in self.fitting for region in self._idle_regions(shape)]
        least = (self.communication(shape, self.mapped(shape, region)) for shape, region in places)
        most = (self._dearest(shape, region) for shape, region in places)
        lowest, highest = min(filter(math.isfinite, least), default=0.0), max(most, default=0.0)
        return lowest, max(lowest, highest)

    def _idle_regions(self, shape: Shape) -> list[Mask]:
        return self.regions(shape, self.suitable(shape) & shape.healthy)

    def _dearest(self, shape: Shape, region: Mask) -> float:
        gpus = self._map(shape.nearness, region)
        cost = self.communication(shape, gpus)
        return cost if math.isfinite(cost) else self.weight * shape.farthest

    def suitable(self, shape: Shape) -> Mask:
        """The GPUs of the model, and with the memory, that it asks for."""
        if shape not in self._suitable:
            suits = suits_of(self.job)
            wanted = (local for local, gpu in enumerate(shape.gpus) if suits(gpu))
            self._suitable[shape] = mask_of(wanted)
        return self._suitable[shape]

    def regions(self, shape: Shape, free: Mask) -> list[Mask]:
        """Sets of free GPUs to place it in: the legal partitions of its size, or else all that are free."""
        if shape.partitions:
            legal = (part for part in shape.partitions if part & free == part)
            return [part for part in legal if part.bit_count() == self.size]
        return [free] if free.bit_count() >= self.size else []

    def communication(self, shape: Shape, gpus: Sequence[int]) -> float:
        """Eq. 3 on GPUs of a machine; infinite where a pair that talks has no path."""
        rows = shape.rows
        return sum(weight * rows[gpus[a]][gpus[b]] for a, b, weight in self.job.edges)

    def link_scores(self, shape: Shape, gpus: tuple[int, ...]) -> dict[str, float]:
        """MAPA's scores of GPUs of a machine."""
        key = (shape, gpus)
        if key not in self._link_scores:
            self._link_scores[key] = scores_from(self.job.edges, gpus, shape.bandwidth, shape.classes)
        return self._link_scores[key]

    def mapped(self, shape: Shape, region: Mask) -> tuple[int, ...]:
        """The GPUs of a region of at least its size, in task order, that cost least communication."""
        key = (shape, region)
        if key not in self._mapped:
            self._mapped[key] = self._map(shape.target, region)
        return self._mapped[key]

    def _map(self, target: kernels.TargetDistance, region: Mask) -> tuple[int, ...]:
        free = list(members(region))
        if self.size == 1:
            return (free[0],)
        method: Literal["exact", "drb"] = "exact" if len(free) <= _EXACT_GPUS else "drb"
        found = kernels.map_graph(self.job.graph, target, method=method, free=free)
        assert found is not None  # the region is large enough
        return tuple(found.target_of.tolist())
