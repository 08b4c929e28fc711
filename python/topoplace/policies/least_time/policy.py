"""The default policy: the least communication time."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from topoplace import _checks
from topoplace.engine.gangs.splits import nearest
from topoplace.engine.machine_policy import Evaluation, MachinePolicy
from topoplace.engine.requirements import SPREADS_SHARES
from topoplace.errors import SearchTimeoutError
from topoplace.jobs.job_graph import JobGraph
from topoplace.objectives.communication import measured
from topoplace.policies.least_time import machine_sets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.gangs.offers import MachineOffer
    from topoplace.engine.gangs.splits import MachineSplit
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.machines.machine_class import MachineClass, Mask
    from topoplace.engine.machines.machine_conditions import MachineState
    from topoplace.engine.machines.machine_options import Option
    from topoplace.engine.request import JobRequest
    from topoplace.placement import Placement


class LeastTime(MachinePolicy):
    """The least communication time (`communication_time`), by ports, rings and all levels of the fabric.

    Placements whose times differ by no more than `slack` count as equal. Of these, the policy takes, in this order, the
    one with the nearest links, in the domains with the fewest free GPUs, from the outermost level on, on the machine
    with the fewest, that breaks the fewest whole parts of a machine, avoids slow links, leaves the free GPUs of the
    machine the most ring bandwidth, and has the smallest GPU list. A gang on several machines is mapped to the tree of
    their domains (`kernels.map_to_tree`): of mappings that are as fast, one that takes the least of the uplinks.

    Args:
        slack: The share by which times may differ and count as equal.
        timeout: Limit in seconds on the search for the machines of a gang, which ends after a number of moves anyway.
            If it comes before the first mapping, the gang is split over the fewest machines.
    """

    name = "least-time"
    honours = frozenset((SPREADS_SHARES,))
    asks_for_regions = True
    sees_jobs = False
    before_domains = machine_sets.BEFORE_DOMAINS

    def __init__(self, slack: float = 0.01, *, timeout: float | None = None) -> None:
        self.slack = _checks.real(slack, "slack", ValueError, high=1.0) or 1e-9
        self.timeout = None if timeout is None else _checks.positive(timeout, "timeout", ValueError)

    def options(
        self, request: JobRequest, machine_class: MachineClass, state: MachineState, free: Mask
    ) -> Iterable[Option]:
        """Return the best sets of GPUs of a machine."""
        return machine_sets.ranked(request, machine_class, state, free, self.slack)

    def ranked_as(self, request: JobRequest, view: ClusterView) -> JobRequest:
        """Return the request of a chain with the same requirements, if all GPUs of each machine are alike."""
        if not request.job.edges or request.takes_parts or not machine_sets.are_alike(view.cluster.topology):
            return request
        key = LeastTime, "chain", request.resource_key
        return view.table(key, lambda: view.request(_chain_like(request.job)))

    def scores_as(
        self, request: JobRequest, machine_class: MachineClass, option: Option
    ) -> Mapping[str, float]:
        """Return the communication time of a job on GPUs that are all alike."""
        return self.scores(machine_sets.of_any(machine_class, request, self.slack)[0])

    def splits(
        self, request: JobRequest, offers: Sequence[MachineOffer], view: ClusterView
    ) -> Iterable[MachineSplit]:
        """Return splits over the fewest machines, the nearest first, for gangs that are not mapped to the tree."""
        return nearest(
            offers, request.size, view.cluster.topology.fabric, anti_affine=request.job.anti_affinity
        )

    def task_order(self, request: JobRequest, gpus: Sequence[int], view: ClusterView) -> Sequence[int]:
        """Return the GPU of each task, on one machine by the rule for one machine, on several in order."""
        masks = view.classes.by_machine(gpus)
        if len(masks) > 1 or request.anti_affine:
            return super().task_order(request, gpus, view)
        from topoplace.engine.gangs.division import Part
        from topoplace.policies.least_time.gangs import local_gpus

        machine, usable = next(iter(masks.items()))
        numbers = view.classes.gpus_of[machine]
        part = Part(machine, usable, list(range(request.size)))
        return [numbers[local] for local in local_gpus(part, request.job, view, self.slack)]

    def evaluate(self, request: JobRequest, gpus: Sequence[int], view: ClusterView) -> Evaluation | None:
        """Return the time of an assignment; None if tasks that communicate have no path."""
        found = measured(request.job, np.array(gpus, np.int64), view.cluster.topology)
        if found.seconds == np.inf:
            return None
        return Evaluation(-found.seconds, machine_sets.Chosen(found.seconds))

    def scores(self, details: Any) -> Mapping[str, float]:
        """Return the communication time."""
        return {"communication_time": details.seconds}

    def is_proven(self, details: Any) -> bool:
        """Return True if all sets of GPUs, and all orders that matter, were compared."""
        chosen: machine_sets.Chosen = details
        return chosen.is_proven

    def _evaluated(
        self, request: JobRequest, view: ClusterView, most_memory_gb: float
    ) -> Iterator[tuple[Sequence[int], Evaluation]]:
        from topoplace.policies.least_time import gangs

        offers, gpus = self._offers(request, view, most_memory_gb), None
        with suppress(SearchTimeoutError):
            gpus = gangs.mapped(request, view, offers, slack=self.slack, timeout=self.timeout)
        if gpus is not None and (found := self.evaluate(request, gpus, view)):
            yield gpus, found
            return
        yield from super()._evaluated(request, view, most_memory_gb)


def _chain_like(job: JobGraph) -> JobGraph:
    """Return a chain of as many tasks with the same requirements."""
    return JobGraph.chain(job.num_tasks).with_(**{name: getattr(job, name) for name in job.requirements})


_DEFAULT = LeastTime()


def place(job: JobGraph, cluster: Cluster) -> Placement | None:
    """Return the placement of a job that communicates the fastest, by the policy least-time; None if it has to wait.

    The cluster does not change. For options, and for the reason why there is no placement, take the policy:
    `topoplace.policies.get("least-time", slack=0.05).explain(job, cluster)`.

    Raises:
        ValueError: Names a wrong argument, or a requirement that cannot be honoured.
    """
    return _DEFAULT.place(job, cluster)
