"""The slowest decisions of least-time with timeout=0.2: jobs of 4 to 16,384 tasks on 500 machines of each kind.

`python benchmarks/limits/bench_decisions.py [MACHINE ...]` places each job on a cluster on which two of five GPUs are
busy, no two machines alike, and prints the CPU seconds of each decision that takes longer than 0.4 s, then the slowest.
TPUs are left out.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Final

import numpy as np

import topoplace as tp

MACHINES: Final = 500
TIMEOUT_S: Final = 0.2
ALLOWED_S: Final = 0.4
SIZES: Final = (4, 8, 64, 512, 4096, 16384)
MOST_PAIRED: Final = 4096
"""Of more tasks, no job may have all pairs."""


def jobs(most: int) -> Iterator[tuple[str, tp.JobGraph]]:
    graph = tp.JobGraph
    for size in SIZES:
        if size > most:
            return
        yield f"allreduce({size})", graph.allreduce(size)
        yield f"ring({size})", graph.ring(size)
        if size <= MOST_PAIRED:
            yield f"clique({size})", graph.clique(size)
        if size >= 64:
            yield f"parallel(8, {size // 8})", graph.parallel(tensor=8, data=size // 8)
            yield f"parallel(2, 4, {size // 8})", graph.parallel(tensor=2, pipeline=4, data=size // 8)
        if 64 <= size <= MOST_PAIRED:
            experts = graph.parallel(tensor=8, data=size // 8, expert=size // 8)
            yield f"parallel(8, experts {size // 8})", experts


def busy_cluster(machine: str) -> tp.Cluster:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get(machine), MACHINES, network=50.0))
    total = cluster.topology.num_gpus
    for gpu in np.random.default_rng(1).choice(total, 2 * total // 5, replace=False).tolist():
        cluster.drain(gpu)
    return cluster


def main() -> None:
    slowest: list[tuple[float, str, str]] = []
    for machine in sys.argv[1:] or [name for name in tp.machines.names() if name != "tpu-v4-64"]:
        cluster, policy = busy_cluster(machine), tp.policies.get("least-time", timeout=TIMEOUT_S)
        policy.place(tp.JobGraph.ring(2), cluster)
        for name, job in jobs(cluster.num_free):
            begin = time.process_time()
            policy.place(job, cluster)
            slowest.append((time.process_time() - begin, machine, name))
            if slowest[-1][0] > ALLOWED_S:
                print(f"{slowest[-1][0]:8.2f} s  {machine:15} {name}", flush=True)
    slowest.sort(reverse=True)
    print(f"{len(slowest)} decisions; the slowest:", slowest[:5])


if __name__ == "__main__":
    main()
