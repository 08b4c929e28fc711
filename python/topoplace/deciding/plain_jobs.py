"""Jobs of whole GPUs that name no groups, decided in one call, or two for a gang (`least_time.hpp`)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from topoplace import _core
from topoplace.deciding import ranked_sets
from topoplace.deciding.gang_topology import GangLevels, topology_of_gangs, usual_tflop_per_s
from topoplace.deciding.machine_tree import chain_of
from topoplace.engine.machine_policy import placed_on
from topoplace.objectives.job_bandwidth import bandwidth_scores
from topoplace.objectives.links import job_link_scores
from topoplace.topology.makers import gpus_by_maker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from topoplace import kernels
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.machines.machine_options import MachineOptions
    from topoplace.engine.request import JobRequest
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement
    from topoplace.topology.links.nccl_rates import Rates
    from topoplace.topology.topology import Topology

_ALLOWED: Final = frozenset(("gpu_model", "single_machine", "cpus", "memory_gb"))
"""The requirements that plain jobs may have."""
_UNKNOWN: Final = np.empty(0)


def are_plain(topology: Topology) -> bool:
    """Return True if jobs on this topology can be plain: GPUs of several makers need more than one decision."""
    return not topology.derived(gpus_by_maker)


def is_plain(job: JobGraph) -> bool:
    """Return True if a job takes whole GPUs, has no roles, and requires nothing but what its machine has."""
    return job.num_tasks > 0 and not job.roles and _ALLOWED.issuperset(job.requirements)


class PlainJobs:
    """Plain jobs of equal needs and as many tasks each, for which machines have the same options in the same order."""

    def __init__(
        self,
        request: JobRequest,
        view: ClusterView,
        options: MachineOptions,
        timing: ranked_sets.Timing,
        others: Callable[[], kernels.FlowCounts | None],
        *,
        split: float | None,
        compact: float,
    ) -> None:
        """Store the arguments.

        request: that of one of the jobs. options: those of the jobs. others: returns the flows of running gangs; None
        if they do not count. split, compact: as for `LeastTime`.
        """
        topology, table = view.cluster.topology, options.table
        assert isinstance(table, ranked_sets.SetTable)  # a job of whole GPUs without a limit on their memory
        self._view, self._others, self._rates = view, others, timing.rates
        self._split = split or 0.0
        self._is_alone = request.job.single_machine or request.needs_hosts
        fill, before = options.domains or (None, 0)
        self._native = _core.LeastTime(
            table.native,
            options.by_order,
            fill,
            before,
            topology_of_gangs(topology, timing.rates),
            topology.derived(GangLevels).of(chain_of(request, view), timing.rates),
            request.whole_job,
            request.job.single_machine,
            self._split,
            compact,
        )

    def place(self, job: JobGraph) -> Placement | None:
        """Return the placement of one of these jobs; None if there is none, or more has to be compared."""
        alone = self._native.on_one_machine(job.traffic_arrays.native)
        if alone is not None and not alone[-1]:
            return self._on_machine(job, *alone)
        if self._is_alone or not job.edges:
            return None
        topology, others, tflop = self._view.cluster.topology, self._others(), job.tflop or 0.0
        split = self._native.on_several(
            job.traffic_arrays.native,
            job.edge_array,
            bool(job.stated_collectives),
            tflop,
            topology.derived(usual_tflop_per_s) if tflop else _UNKNOWN,
            None if others is None else others.native,
        )
        if split is None:
            return None
        _, gpus, seconds, *proof, _ = split
        if alone is not None and seconds * self._split > alone[2]:
            return self._on_machine(job, *alone)
        return self._placed(job, gpus, gpus, topology, seconds, *proof)

    def _on_machine(
        self, job: JobGraph, machine: int, local: tuple[int, ...], seconds: float, *proof: Any
    ) -> Placement:
        classes = self._view.classes
        numbers, alone = classes.gpus_of[machine], classes.of(machine).alone
        gpus = tuple([numbers[gpu] for gpu in local])
        return self._placed(job, gpus, local, alone, seconds, *proof[:2])

    def _placed(
        self,
        job: JobGraph,
        gpus: tuple[int, ...],
        local: tuple[int, ...],
        topology: Topology,
        seconds: float,
        optimal: bool,
        bound: float | None,
    ) -> Placement:
        scores = partial(_scores, job, local, topology, seconds, self._rates)
        return placed_on(
            job, gpus, self._view.cluster, scores, optimal=optimal, bound=bound, rates=self._rates
        )


def _scores(
    job: JobGraph, gpus: Sequence[int], topology: Topology, seconds: float, rates: Rates | str
) -> Mapping[str, float]:
    """Return the scores of a plain job that communicates for so many seconds on these GPUs of a topology."""
    carried = bandwidth_scores(job, seconds, gpus, topology, rates)
    return {**job_link_scores(job, gpus, topology), "communication_time": seconds, **carried}
