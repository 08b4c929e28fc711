"""The jobs of the SC'17 prototype experiment, and the paper's results for these jobs (section 5.2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from topoplace.jobs.job_graph import JobGraph
from topoplace.jobs.performance_profile import PerformanceProfile
from topoplace_lab.papers.sc17.measured import authors_profile
from topoplace_lab.simulate import Workload

POLICY_NAMES: Final = "FCFS, BF, TOPO-AWARE, TOPO-AWARE-P"
"""The four policies, in the order of the tuples below and of the values in a row."""
POLICIES: Final = ("fcfs", "best-fit", "topo-aware", "topo-aware-p")
"""The names of these policies in this package."""
MAKESPANS: Final = (456.2, 461.7, 454.2, 356.9)
"""Makespans of the prototype in seconds."""
SPEEDUPS: Final = (1.28, 1.30, 1.27)
"""Ratios of the other three policies' makespans to that of TOPO-AWARE-P."""
THIRD_STARTS: Final = 70.0
"""Start of job 3 in seconds if it takes any two GPUs."""
THIRD_ENDS: Final = (240.0, 120.0)
"""End of job 3 in seconds: under the other three policies, and under TOPO-AWARE-P."""
NOTICED: Final = 0.005
"""Slowdowns below this (0.5 %) count as none."""
GAIN: Final = 1.02
"""Ratio of two policies' times from which on the policy with the shorter time counts as ahead."""
FIVE_JOBS: Final = (
    ("bvlc_alexnet/1", 1, 0.3, 0.513093165250245),
    ("bvlc_alexnet/4", 1, 0.3, 15.039122037036615),
    ("bvlc_googlenet/1", 1, 0.3, 24.36804537148004),
    ("bvlc_alexnet/4", 2, 0.5, 25.332965062687443),
    ("bvlc_alexnet/1", 2, 0.5, 29.33493641120534),
    ("bvlc_alexnet/1", 2, 0.5, 29.893741982134614),
)
"""Application, GPUs, least utility and arrival in seconds: the list published with the code as `workloads-5`."""
TABLE_1: Final = (
    ("bvlc_alexnet/1", 1, 0.3, 0.51),
    ("bvlc_googlenet/4", 1, 0.3, 15.03),
    ("bvlc_alexnet/1", 1, 0.3, 24.36),
    ("bvlc_alexnet/4", 2, 0.5, 25.33),
    ("bvlc_alexnet/1", 2, 0.5, 29.33),
    ("bvlc_alexnet/1", 2, 0.5, 29.89),
)
"""The jobs of the paper's Table 1, which differ in jobs 1 and 2. Job 5 is CaffeRef there, a variant of AlexNet that was
never profiled; it gets AlexNet's times, as in the published list."""


def five_jobs(
    rows: tuple[tuple[str, int, float, float], ...] = FIVE_JOBS, profile: PerformanceProfile | None = None
) -> Workload:
    """Return the six jobs of the prototype experiment ("five jobs" in the paper's text) as a workload.

    The tasks of a job all communicate equally. rows: application, GPUs, least utility and arrival in seconds of each
    job. profile: run times that replace the published ones; raises ValueError if an application is missing.
    """
    jobs = [
        JobGraph.clique(num_gpus).with_(
            profile=name, min_utility=least, bandwidth_sensitive=True, single_machine=True
        )
        for name, num_gpus, least, _ in rows
    ]
    return Workload(jobs, [arrival for *_, arrival in rows], ideal_times(jobs, profile or authors_profile()))


def ideal_times(jobs: Iterable[JobGraph], profile: PerformanceProfile) -> list[float]:
    """Return each job's shortest run time alone in seconds; raise ValueError for a job that the profile lacks."""
    times: list[float] = []
    for job in jobs:
        ideal = profile.ideal_time(job.profile or "", job.num_tasks)
        if ideal is None:
            raise ValueError(f"profile: no time of {job.profile} on {job.num_tasks} GPUs")
        times.append(ideal)
    return times
