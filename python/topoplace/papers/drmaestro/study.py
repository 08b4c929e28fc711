"""Simulations of one experiment of the thesis, without and with remote GPUs and network awareness, per seed."""

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
    """The policy DRMaestro, which also records the CPU seconds of each call of `plan`."""

    def __init__(self, *, disaggregate: bool, network_aware: bool) -> None:
        super().__init__(disaggregate=disaggregate, network_aware=network_aware, profiles=rodinia.PROFILES)
        self.seconds: list[float] = []

    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        """Return DRMaestro's plan for the queue and record its CPU time."""
        begin = time.thread_time()
        plan = super().plan(queue, cluster, now)
        self.seconds.append(time.thread_time() - begin)
        return plan


@dataclass(frozen=True, slots=True)
class Run:
    """One simulation's figures, in seconds; jobs of the Rodinia suite count, the initial CPU-only jobs do not."""

    result: Result
    seconds: list[float] = field(repr=False)
    """CPU seconds of each plan."""

    @property
    def makespan(self) -> float:
        """Return the seconds from the first submission to the last end of a job."""
        jobs = self._jobs()
        return max(record.end for record in jobs) - min(record.submitted.submit_time for record in jobs)

    @property
    def mean_slowdown(self) -> float:
        """Return the mean slowdown of the jobs: run time over run time alone."""
        return float(np.mean(self.slowdowns()))

    def slowdowns(self) -> list[float]:
        """Return the slowdown of every job (run time over run time alone), largest first, as in figures 29 and 31."""
        return sorted((r.run_time / r.submitted.base_time for r in self._jobs()), reverse=True)

    @property
    def most_postponements(self) -> int:
        """Return how often the most postponed job was postponed by the policy."""
        return max(record.postponed for record in self._jobs())

    def busy_gpus(self, begin: float, end: float) -> float:
        """Return the mean number of GPUs held by jobs between two times in seconds."""
        held = sum(max(0.0, min(record.end, end) - max(record.start, begin)) for record in self._jobs())
        return held / (end - begin)

    def _jobs(self) -> list[JobRecord]:
        return [record for record in self.result.records if record.submitted.job.num_tasks]


class Study:
    """One experiment: a number of jobs and machines, simulated for several seeds; a run is made on first use."""

    def __init__(self, num_jobs: int, num_machines: int, seeds: Sequence[int]) -> None:
        self.num_jobs = num_jobs
        self.num_machines = num_machines
        self.seeds = tuple(seeds)
        self._runs: dict[tuple[bool, bool], tuple[Run, ...]] = {}

    @property
    def where(self) -> str:
        """Return the experiment's size as text for titles, such as "64 jobs on 4 machines"."""
        return f"{self.num_jobs} jobs on {self.num_machines} machines"

    def runs(self, *, disaggregate: bool, network_aware: bool = False) -> tuple[Run, ...]:
        """Return one simulation per seed, with the same jobs whatever the two settings are.

        disaggregate: allow remote GPUs. network_aware: let the policy avoid network contention.
        """
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
