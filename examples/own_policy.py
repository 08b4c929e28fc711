"""A policy of our own: fill the machine whose free GPUs fit best, so that large jobs still find room."""

from __future__ import annotations

import topoplace as tp
from topoplace.policies import SearchPolicy
from topoplace.policies.base import GpuSet
from topoplace.testing import check_policy


class BestFit(SearchPolicy):
    """The socket with the fewest free GPUs that still holds the job; else the lowest ids."""

    name = "best-fit"

    def best(
        self, job: tp.JobGraph, cluster: tp.Cluster, free: GpuSet, required: GpuSet = frozenset()
    ) -> tp.Placement | None:
        """The tightest socket that has room."""
        topology = cluster.topology
        sockets: dict[object, list[int]] = {}
        for gpu in sorted(free):
            sockets.setdefault((topology.gpus[gpu].machine, topology.gpus[gpu].socket), []).append(gpu)
        room = [gpus for gpus in sockets.values() if len(gpus) >= job.num_tasks and required <= set(gpus)]
        pool = min(room, key=len) if room else sorted(free)
        others = [gpu for gpu in pool if gpu not in required][: job.num_tasks - len(required)]
        gpus = tuple(sorted({*required, *others}))
        scores = tp.objectives.scores_of(job, gpus, topology, cluster.free_gpus())
        return tp.Placement(gpus=gpus, scores=scores, topology=topology)


print(check_policy(BestFit))
cluster = tp.Cluster(tp.machines.get("dgx1-v100"))
cluster.allocate("someone", [0, 1])
print(BestFit().place(tp.JobGraph.ring(2), cluster))
