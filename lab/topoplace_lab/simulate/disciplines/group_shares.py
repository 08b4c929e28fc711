"""The resources that each group's jobs hold, and the order of waiting jobs by dominant shares."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from topoplace_lab.simulate.scheduling import age

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topoplace.cluster.cluster import Cluster
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement
    from topoplace_lab.simulate.metrics import JobRecord

OfGroup = Callable[[str | None], float]
_GPUS = 0


class GroupShares:
    """The GPUs, CPUs and memory that the jobs of each group hold."""

    def __init__(self, cluster: Cluster, weight: OfGroup, quota: OfGroup) -> None:
        """Start without jobs. weight, quota: those of a group; see `Discipline`."""
        self._weight = weight
        self._quota = quota
        capacity = cluster.hosts.capacity
        totals = [
            cluster.topology.num_gpus,
            *(capacity[:, :2].sum(axis=0) / 1000 if len(capacity) else (0, 0)),
        ]
        self._totals = np.array(totals, dtype=float)
        self._held: dict[str | None, NDArray[np.float64]] = defaultdict(lambda: np.zeros(3))

    def add(self, record: JobRecord, placement: Placement, sign: int) -> None:
        """Count the resources of a job that starts (sign 1), or subtract those of one that ends (sign -1)."""
        cpus = sum(share.cpus for share in placement.hosts)
        memory_gb = sum(share.memory_gb for share in placement.hosts)
        gpus = len(placement.gpus) * record.job.gpu_share
        self._held[record.job.group] += sign * np.array([gpus, cpus, memory_gb])

    def within_quota(self, job: JobGraph, num_held: int = 0) -> bool:
        """Return True if the group's quota allows the job's GPUs in addition to those that the group holds.

        num_held: how many of these are the job's own.
        """
        group, gpus = job.group, (job.num_tasks - num_held) * job.gpu_share
        return bool(self._held[group][_GPUS] + gpus <= self._quota(group) + 1e-9)

    def dominant(self, group: str | None) -> float:
        """Return the weighted dominant share of a group."""
        shares = np.divide(self._held[group], self._totals, out=np.zeros(3), where=self._totals > 0)
        return float(shares.max()) / self._weight(group)

    def in_order(self, waiting: Iterable[JobRecord]) -> Iterator[JobRecord]:
        """Yield the waiting jobs, given oldest first, by the present dominant shares of their groups."""
        by_group: dict[str | None, list[JobRecord]] = defaultdict(list)
        for record in waiting:
            by_group[record.job.group].append(record)
        for jobs in by_group.values():
            jobs.reverse()
        while by_group:
            group = min(by_group, key=lambda one: (self.dominant(one), age(by_group[one][-1])))
            yield by_group[group].pop()
            if not by_group[group]:
                del by_group[group]
