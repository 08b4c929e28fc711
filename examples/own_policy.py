"""Write your own policy in fifteen lines: copy this file, change `best`, run `topoplace.testing.check_policy` on it.

The base class handles requirements of jobs, ranked alternatives, reasons and the queue.
"""

from __future__ import annotations

import topoplace as tp
from topoplace.policies import GpuSet, SearchPolicy
from topoplace.testing import check_policy


class HighestIds(SearchPolicy):
    """A policy that chooses the free GPUs with the highest ids."""

    name = "highest-ids"

    def best(
        self, job: tp.JobGraph, cluster: tp.Cluster, free: GpuSet, required: GpuSet = frozenset()
    ) -> tp.Placement | None:
        """Return `required` and the highest other ids of `free`."""
        others = sorted(free - required, reverse=True)[: job.num_tasks - len(required)]
        gpus = tuple(sorted((*required, *others)))
        scores = tp.objectives.scores_of(job, gpus, cluster.topology, cluster.free_gpus())
        return tp.Placement(gpus=gpus, scores=scores, topology=cluster.topology, job=job)

    def order(self, job: tp.JobGraph, placement: tp.Placement) -> tuple[float, ...]:
        """Return a sort key, smaller is better: the highest id first."""
        return tuple(sorted(-gpu for gpu in placement.gpus))


if __name__ == "__main__":
    print(check_policy(HighestIds))
    cluster = tp.Cluster(tp.machines.get("dgx1-v100"))
    cluster.allocate("someone", [0, 1])
    print(HighestIds().place(tp.JobGraph.ring(2), cluster))
