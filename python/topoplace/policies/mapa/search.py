"""The base class of MAPA's policies: exact search over embeddings."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from topoplace import _checks, kernels
from topoplace.engine.admission import every_gpu_set_counts
from topoplace.engine.policy import SearchPolicy
from topoplace.errors import SearchTimeoutError
from topoplace.kernels import WorkBudget
from topoplace.objectives.effective_bandwidth import EffectiveBandwidth
from topoplace.objectives.links import LinkTables, remaining_bandwidth, scores_of
from topoplace.placement import Placement
from topoplace.policies.mapa import gangs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.admission import GpuSet
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.kernels.matching import Objective

_SEARCHES_PER_DECISION = 8
_MAX_NODES = (2**63 - 1) // _SEARCHES_PER_DECISION
# A node of a search costs by the size of the graph: few GPUs of many are searched in a graph of their own.
_FEW_GPUS = 128
_MANY_GPUS = 512
_NO_SCORES: Mapping[str, float] = MappingProxyType({})


class MapaPolicy(SearchPolicy):
    """Base of the four policies that MAPA compares.

    max_nodes: limit on the nodes of one search tree; the default takes about a second. One decision may take several
    searches, and visits at most eight times as many nodes.
    On a cluster, each machine gets an equal part of them, but at least 32,768. With None, only `timeout` ends a search
    before the best placement is proven. At a limit, the best placement found is returned with `optimal` False;
    SearchTimeoutError is raised if none was found. timeout: limit on the time of one search, in seconds. Unlike with
    `max_nodes`, results then depend on the speed of the computer.
    """

    def __init__(self, *, timeout: float | None = None, max_nodes: int | None = 2_000_000) -> None:
        if timeout is not None:
            _checks.positive(timeout, "timeout", ValueError)
        if max_nodes is not None:
            max_nodes = _checks.integer(max_nodes, "max_nodes", ValueError, low=1, high=_MAX_NODES)
        self.timeout = timeout
        self.max_nodes = max_nodes
        self.model = EffectiveBandwidth()

    @abstractmethod
    def best_within(
        self, job: JobGraph, cluster: Cluster, free: GpuSet, required: GpuSet, budget: WorkBudget
    ) -> Placement | None:
        """Return the best placement inside `free` that uses all of `required`, None if there is none.

        Ties go to the lexicographically smallest ascending GPU list. budget: limit on the nodes of all searches.
        """

    def best(
        self, job: JobGraph, cluster: Cluster, free: GpuSet, required: GpuSet = frozenset()
    ) -> Placement | None:
        """Return the best placement inside `free` that uses all of `required`, None if there is none."""
        return self.best_within(job, cluster, free, required, self.decision_budget())

    def decision_budget(self) -> WorkBudget:
        """Return the limit on the nodes of all searches for one decision."""
        return WorkBudget(None if self.max_nodes is None else _SEARCHES_PER_DECISION * self.max_nodes)

    def first_fit(
        self, job: JobGraph, cluster: Cluster, free: GpuSet, required: GpuSet, budget: WorkBudget
    ) -> Placement | None:
        """Return the placement on the lexicographically smallest GPU set with a link for every edge of the job.

        The set lies inside `free` and contains `required`. Tasks are assigned for the largest aggregated bandwidth.
        Return None if there is no such set.
        """
        spare = job.num_tasks - len(required)
        if not 0 <= spare <= len(free) - len(required):
            return None
        lowest = required | frozenset(sorted(free - required)[:spare])
        if placement := self.embed(job, cluster, lowest, frozenset(), budget):
            return placement
        indifferent = cluster.topology.derived(LinkTables).indifferent
        any_fit = self.embed(job, cluster, free, required, budget, indifferent)
        return self.embed(job, cluster, frozenset(any_fit.gpus), frozenset(), budget) if any_fit else None

    def embed(
        self,
        job: JobGraph,
        cluster: Cluster,
        free: GpuSet,
        required: GpuSet,
        budget: WorkBudget,
        objective: Objective | kernels.LinkCountScore = "sum",
    ) -> Placement | None:
        """Return the placement with the best value of `objective`, and all its scores; None if there is none.

        Every edge of the job must have a link. The placement lies inside `free` and uses all of `required`. A gang on
        several machines is divided among them (`gangs.on_machines`). It is also searched if the slowest link counts and
        the division is not proven to be best.
        """
        gang = None
        any_set = not required or len(free) == job.num_tasks
        if any_set and not isinstance(objective, kernels.LinkCountScore) and objective != "bottleneck":
            gang = gangs.on_machines(job, cluster.topology, free, objective)
        if gang is None:
            return self._searched(job, cluster, free, required, budget, objective)
        divided = self.scored(job, cluster, gang.gpus, gang.proven)
        if gang.proven or objective == "sum":
            return divided
        with suppress(SearchTimeoutError):
            searched = self._searched(job, cluster, free, required, budget, objective)
            if searched and _speeds(searched) >= _speeds(divided):
                return searched
        return divided

    def _searched(
        self,
        job: JobGraph,
        cluster: Cluster,
        free: GpuSet,
        required: GpuSet,
        budget: WorkBudget,
        objective: Objective | kernels.LinkCountScore,
    ) -> Placement | None:
        topology = cluster.topology
        chosen: Sequence[int] = range(topology.num_gpus)
        graph = topology.graph
        by_weight = not isinstance(objective, kernels.LinkCountScore)
        if by_weight and len(free) <= _FEW_GPUS and topology.num_gpus > _MANY_GPUS:
            chosen = sorted(free)
            graph = kernels.Graph(topology.bandwidth_matrix()[np.ix_(chosen, chosen)])
            local = {gpu: i for i, gpu in enumerate(chosen)}
            free, required = frozenset(local.values()), frozenset(local[gpu] for gpu in required)
        found = kernels.best_subgraph(
            job.graph,
            graph,
            objective=objective,
            free=free,
            required=required,
            timeout=self.timeout,
            max_nodes=self.max_nodes,
            budget=budget,
        )
        if found is None:
            return None
        images: list[int] = found.vertices.tolist()
        return self.scored(job, cluster, [chosen[i] for i in images], found.optimal)

    def scored(
        self,
        job: JobGraph,
        cluster: Cluster,
        gpus: Sequence[int],
        optimal: bool,
    ) -> Placement:
        """Return the placement of task i on `gpus[i]`, with its scores.

        optimal: True if the search proved it best. The placement of an anti-affine job, or of one that may take
        partitions of several machines, has `optimal` False even then, because not all GPU sets were searched.
        """
        topology, free = cluster.topology, cluster.free_gpus()
        scores = scores_of(job, gpus, topology, free, self.model)
        if topology.num_machines > 1 and topology.fabric is not None:
            # Among gangs, links of the job's own machines decide; the engine then states those of all machines.
            machines = set(topology.machine_of[list(gpus)].tolist())
            nearby = [gpu for gpu in free if topology.machine_of[gpu] in machines]
            scores["preserved_bandwidth"] = remaining_bandwidth(gpus, topology, nearby)
        proven = optimal and every_gpu_set_counts(job, topology)
        return Placement(gpus=tuple(gpus), scores=scores, optimal=proven, topology=topology, job=job)


def _speeds(placement: Placement) -> tuple[float, float]:
    return placement.scores["bottleneck_bandwidth"], placement.scores["aggregated_bandwidth"]
