"""The jobs of SC'17's experiments."""

from __future__ import annotations

from typing import Final

from topoplace.jobgraph import JobGraph
from topoplace.papers.sc17.measured import authors_profile
from topoplace.simulate import Workload

FIVE_JOBS: Final = (
    ("bvlc_alexnet/1", 1, 0.3, 0.513093165250245),
    ("bvlc_alexnet/4", 1, 0.3, 15.039122037036615),
    ("bvlc_googlenet/1", 1, 0.3, 24.36804537148004),
    ("bvlc_alexnet/4", 2, 0.5, 25.332965062687443),
    ("bvlc_alexnet/1", 2, 0.5, 29.33493641120534),
    ("bvlc_alexnet/1", 2, 0.5, 29.893741982134614),
)
"""Profile, GPUs, least utility and arrival in seconds: the list published with the code as `workloads-5`."""
TABLE_1: Final = (
    ("bvlc_alexnet/1", 1, 0.3, 0.51),
    ("bvlc_googlenet/4", 1, 0.3, 15.03),
    ("bvlc_alexnet/1", 1, 0.3, 24.36),
    ("bvlc_alexnet/4", 2, 0.5, 25.33),
    ("bvlc_alexnet/1", 2, 0.5, 29.33),
    ("bvlc_alexnet/1", 2, 0.5, 29.89),
)
"""The same of the paper's Table 1, which differs in jobs 1 and 2. Its job 5 is CaffeRef, a variant of AlexNet that was
never profiled: it gets AlexNet's times, as in the published list."""


def five_jobs(rows: tuple[tuple[str, int, float, float], ...] = FIVE_JOBS) -> Workload:
    """The prototype's jobs as a workload: cliques of weight 1, each as long as alone at its best."""
    profile = authors_profile()
    return Workload(
        [
            JobGraph.clique(num_gpus).with_(
                profile=name, min_utility=least, bandwidth_sensitive=True, single_node=True
            )
            for name, num_gpus, least, _ in rows
        ],
        [arrival for *_, arrival in rows],
        [profile.ideal_time(name, num_gpus) or 0.0 for name, num_gpus, *_ in rows],
    )
