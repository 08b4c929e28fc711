"""Simulations of one experiment of the thesis, without and with remote GPUs and network awareness, per seed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from topoplace.policies import DRMaestro
from topoplace_lab.papers.drmaestro import rodinia
from topoplace_lab.simulate import NetworkContention, Observer, PerformanceModel, Result, simulate
from topoplace_lab.simulate.processes import Runner

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.plan import Plan, QueuedJob

Floats = NDArray[np.float64]


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


@dataclass(frozen=True, slots=True, eq=False)
class StudyRun:
    """One simulation's figures, in seconds; jobs of the Rodinia suite count, the initial CPU-only jobs do not.

    submit, start, end, base: each job's times, and its run time alone. postponed: how often the policy postponed it.
    seconds: CPU seconds of each plan.
    """

    submit: Floats
    start: Floats
    end: Floats
    base: Floats
    postponed: Floats
    seconds: list[float]

    @classmethod
    def of(cls, result: Result, seconds: list[float]) -> StudyRun:
        """Return the figures of a simulation's result; seconds: CPU seconds of each plan."""
        rows = [
            (r.submitted.submit_time, r.start, r.end, r.submitted.base_time, r.postponed)
            for r in result.records
            if r.submitted.job.num_tasks
        ]
        submit, start, end, base, postponed = np.array(rows, dtype=np.float64).reshape(-1, 5).T
        return cls(submit, start, end, base, postponed, seconds)

    @property
    def makespan(self) -> float:
        """Return the seconds from the first submission to the last end of a job."""
        return float(self.end.max() - self.submit.min())

    @property
    def mean_slowdown(self) -> float:
        """Return the mean slowdown of the jobs: run time over run time alone."""
        return float(self.slowdowns.mean())

    @property
    def slowdowns(self) -> Floats:
        """Return the slowdown of every job (run time over run time alone), largest first, as in figures 29 and 31."""
        return np.sort((self.end - self.start) / self.base)[::-1]

    @property
    def most_postponements(self) -> int:
        """Return how often the most postponed job was postponed by the policy."""
        return int(self.postponed.max())

    def busy_gpus(self, begin: float, end: float) -> float:
        """Return the mean number of GPUs held by jobs between two times in seconds."""
        held = np.maximum(0.0, np.minimum(self.end, end) - np.maximum(self.start, begin))
        return float(held.sum()) / (end - begin)


class DRMaestroStudy:
    """One experiment: a number of jobs and machines, simulated for several seeds; a run is made on first use."""

    def __init__(self, num_jobs: int, num_machines: int, seeds: Sequence[int]) -> None:
        self.num_jobs = num_jobs
        self.num_machines = num_machines
        self.seeds = tuple(seeds)
        self._runs: dict[tuple[bool, bool], tuple[StudyRun, ...]] = {}

    @property
    def where(self) -> str:
        """Return the experiment's size as text for titles, such as "64 jobs on 4 machines"."""
        return f"{self.num_jobs} jobs on {self.num_machines} machines"

    def run_all(self, runner: Runner) -> None:
        """Run all simulations of the study."""
        ways = [(disaggregate, aware) for disaggregate in (False, True) for aware in (False, True)]
        calls = [(self.num_jobs, self.num_machines, *way, seed) for way in ways for seed in self.seeds]
        runs, count = runner.results(_simulated, calls), len(self.seeds)
        self._runs.update((way, tuple(runs[count * i : count * (i + 1)])) for i, way in enumerate(ways))

    def runs(self, *, disaggregate: bool, network_aware: bool = False) -> tuple[StudyRun, ...]:
        """Return one simulation per seed; the jobs do not depend on the two settings.

        disaggregate: allow remote GPUs. network_aware: let the policy avoid network contention.
        """
        key = disaggregate, network_aware
        if key not in self._runs:
            self._runs[key] = tuple(
                _simulated(self.num_jobs, self.num_machines, *key, seed) for seed in self.seeds
            )
        return self._runs[key]


def _simulated(
    num_jobs: int, num_machines: int, disaggregate: bool, network_aware: bool, seed: int
) -> StudyRun:
    return simulated(
        num_jobs, num_machines, Timed(disaggregate=disaggregate, network_aware=network_aware), seed
    )


def simulated(
    num_jobs: int,
    num_machines: int,
    policy: DRMaestro,
    seed: int,
    decide_every: float | None = None,
    *,
    performance: PerformanceModel | None = None,
    observer: Observer | None = None,
    measure_every: float | None = None,
) -> StudyRun:
    """Simulate random jobs on the testbed under a policy; the plans of a `Timed` one are timed.

    performance: by default `NetworkContention` with the applications' profiles. All other arguments: see `simulate`.
    """
    result = simulate(
        rodinia.machines(num_machines),
        rodinia.workload(num_jobs, num_machines, seed),
        policy,
        performance=performance or NetworkContention(rodinia.PROFILES),
        seed=seed,
        hosts=rodinia.MACHINE,
        decide_every=decide_every,
        observer=observer,
        measure_every=measure_every,
    )
    return StudyRun.of(result, policy.seconds if isinstance(policy, Timed) else [])
