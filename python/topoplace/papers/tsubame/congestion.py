"""The jobs of the abstract's "simulated congesting queue", which the paper does not describe.

We take many jobs that are all there at once, on few nodes, and ask for whatever a node of Table 2 has, uniformly: one
to three GPUs, one to eight CPUs, one to 22 GB, on one to four nodes, for one to four hours.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from topoplace.papers.tsubame.machine import GB, GPUS, MEMORY, NODE
from topoplace.simulate import Workload
from topoplace.simulate.workloads.generators import seeded
from topoplace.simulate.workloads.logged_jobs import estimated_transfers, job_from_nodes

NODES: Final = 32
JOBS: Final = 1000
MOST_NODES: Final = 4
HOURS: Final = (1, 4)


def workload(seed: int) -> Workload:
    """One list of jobs, all submitted at time 0."""
    random = seeded(seed)
    most = (MOST_NODES, GPUS, NODE.cpus, MEMORY)
    asked = (random.integers(1, high + 1, JOBS).tolist() for high in most)
    jobs = [
        job_from_nodes(nodes, gpus, cpus, memory * GB)
        for nodes, gpus, cpus, memory in zip(*asked, strict=True)
    ]
    seconds = np.round(3600 * random.uniform(*HOURS, JOBS))
    return Workload(jobs, np.zeros(JOBS), seconds, transfers=estimated_transfers(jobs, random))
