"""Simulations of one experiment of the thesis in all its settings, over several seeds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from topoplace.papers.drmaestro import rodinia
from topoplace.policies import DRMaestro
from topoplace.simulate import JobRecord, NetworkContention, Result, simulate

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.plan import Plan, QueuedJob


class Timed(DRMaestro):
    """The policy DRMaestro, recording the CPU seconds of each plan."""

    def __init__(self, *, disaggregate: bool, network_aware: bool) -> None:
        super().__init__(disaggregate=disaggregate, network_aware=network_aware, profiles=rodinia.PROFILES)
        self.seconds: list[float] = []

    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        """Return the plan of DRMaestro and record its CPU time."""
        begin = time.thread_time()
        plan = super().plan(queue, cluster, now)
        self.seconds.append(time.thread_time() - begin)
        return plan


@dataclass(frozen=True, slots=True)
class Run:
    """One simulation; times in seconds, of Rodinia's jobs only."""

    result: Result
    seconds: list[float] = field(repr=False)
    """CPU seconds of each plan."""

    @property
    def makespan(self) -> float:
        """Return the time from the first submission to the last end."""
        jobs = self._jobs()
        return max(record.end for record in jobs) - min(record.submitted.submit_time for record in jobs)

    @property
    def mean_slowdown(self) -> float:
        """Return the mean of run time over run time alone."""
        return float(np.mean(self.slowdowns()))

    def slowdowns(self) -> list[float]:
        """Return the slowdown of every job, worst first, as in figures 29 and 31."""
        return sorted((r.run_time / r.submitted.base_time for r in self._jobs()), reverse=True)

    @property
    def most_postponements(self) -> int:
        """Return the most postponements of any job."""
        return max(record.postponed for record in self._jobs())

    def busy_gpus(self, begin: float, end: float) -> float:
        """Return the mean number of GPUs that jobs held between two times."""
        held = sum(max(0.0, min(record.end, end) - max(record.start, begin)) for record in self._jobs())
        return held / (end - begin)

    def _jobs(self) -> list[JobRecord]:
        return [record for record in self.result.records if record.submitted.job.num_tasks]


class Study:
    """One size of experiment in all its settings, over several seeds; runs are made on first use."""

    def __init__(self, num_jobs: int, num_machines: int, seeds: Sequence[int]) -> None:
        self.num_jobs = num_jobs
        self.num_machines = num_machines
        self.seeds = tuple(seeds)
        self._runs: dict[tuple[bool, bool], tuple[Run, ...]] = {}

    @property
    def where(self) -> str:
        """Return the experiment's size, for titles."""
        return f"{self.num_jobs} jobs on {self.num_machines} machines"

    def runs(self, *, disaggregate: bool, network_aware: bool = False) -> tuple[Run, ...]:
        """Return one run per seed; all settings have the same jobs."""
        key = disaggregate, network_aware
        if key not in self._runs:
            self._runs[key] = tuple(self._run(seed, *key) for seed in self.seeds)
        return self._runs[key]

    def _run(self, seed: int, disaggregate: bool, network_aware: bool) -> Run:
        policy = Timed(disaggregate=disaggregate, network_aware=network_aware)
        result = simulate(
            rodinia.machines(self.num_machines),
            rodinia.workload(self.num_jobs, self.num_machines, seed),
            policy,
            performance=NetworkContention(rodinia.PROFILES),
            seed=seed,
            hosts=rodinia.MACHINE,
        )
        return Run(result, policy.seconds)
