"""Random jobs for the "simulated congesting queue" of the TSUBAME paper's abstract, which the paper does not describe.

We assume 1,000 jobs submitted at once to 32 nodes. A job asks for one to four nodes. On each node it asks for one to
three GPUs, one to eight CPUs and one to 22 GB. It runs for one to four hours. All numbers are drawn uniformly.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from topoplace_lab.papers.tsubame.machine import GB, GPUS, MEMORY, NODE
from topoplace_lab.simulate import Workload
from topoplace_lab.simulate.workloads.generators import seeded
from topoplace_lab.simulate.workloads.logged_jobs import estimated_transfers, job_from_nodes

NODES: Final = 32
JOBS: Final = 1000
MAX_NODES: Final = 4
HOURS: Final = (1, 4)


def workload(seed: int, count: int = JOBS) -> Workload:
    """Return a list of `count` random jobs, all submitted at time 0."""
    random = seeded(seed)
    limits = (MAX_NODES, GPUS, int(NODE.cpus), MEMORY)
    asked = (random.integers(1, high + 1, count).tolist() for high in limits)
    jobs = [
        job_from_nodes(nodes, gpus, cpus, memory * GB)
        for nodes, gpus, cpus, memory in zip(*asked, strict=True)
    ]
    seconds = np.round(3600 * random.uniform(*HOURS, count))
    return Workload(jobs, np.zeros(count), seconds, transfers=estimated_transfers(jobs, random))
