"""Simulations of job logs without remote GPUs (G queue) and with them (R queue), on clusters of several sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from topoplace import policies
from topoplace_lab.papers.tsubame import generator
from topoplace_lab.papers.tsubame.machine import MODEL, NODE, machines
from topoplace_lab.simulate import Workload, simulate
from topoplace_lab.simulate.processes import Runner
from topoplace_lab.simulate.samples import Sample

NODES: Final = 480
TABLE_3_NODES: Final = (450, 460, 470, 480)
G_QUEUE: Final = "g-queue"
R_QUEUE: Final = "r-queue"
Floats = NDArray[np.float64]
Log = Callable[[], Workload]


@dataclass(frozen=True)
class StudyOutcome:
    """The times of every job in one simulation, in seconds; wait and execution are NaN for rejected jobs."""

    submit: Floats
    wait: Floats
    execution: Floats
    remote: NDArray[np.bool_]
    """True for jobs that used remote GPUs."""

    @property
    def life(self) -> Floats:
        """Return each job's time from submission to end, in seconds."""
        return self.wait + self.execution

    def mean(self, of: str) -> float:
        """Return the mean of `of` ("wait", "execution" or "life") over the jobs that ran, in seconds."""
        column: Floats = getattr(self, of)
        return float(np.nanmean(column))

    @property
    def makespan(self) -> float:
        """Return the seconds from the first submission to the last end of a job."""
        return float(np.nanmax(self.submit + self.life) - self.submit.min())


@dataclass(frozen=True)
class GeneratedLog:
    """The log that `generator` makes for a seed."""

    seed: int
    days: int

    def __call__(self) -> Workload:
        """Generate the log."""
        return generator.workload(self.seed, self.days)


@dataclass(frozen=True, eq=False)
class GivenLog:
    """A log that the user gave."""

    workload: Workload

    def __call__(self) -> Workload:
        """Return the log."""
        return self.workload


class TsubameStudy:
    """Simulations of job logs without and with remote GPUs on several cluster sizes.

    logs: at least one. nodes: size of the full cluster. A simulation runs on first use, or with all others in
    `run_all`.
    """

    def __init__(self, logs: Sequence[Log], nodes: int = NODES) -> None:
        self.logs = tuple(logs)
        self.nodes = nodes
        self.sizes = tuple(round(nodes * size / NODES) for size in TABLE_3_NODES)
        """Cluster sizes in the proportions of Table 3 (450, 460, 470 and 480 nodes)."""
        self._runs: dict[tuple[Log, str, int], StudyOutcome] = {}

    def run_all(self, runner: Runner) -> None:
        """Run all simulations of the study."""
        ways = [(G_QUEUE, self.nodes), *((R_QUEUE, size) for size in self.sizes)]
        calls = [(log, *way) for log in self.logs for way in ways]
        self._runs.update(zip(calls, runner.results(_run, calls), strict=True))

    def run(self, log: Log, policy: str, nodes: int | None = None) -> StudyOutcome:
        """Return a log's job times under the policy of that name on `nodes` nodes, by default the full cluster."""
        key = log, policy, self.nodes if nodes is None else nodes
        if key not in self._runs:
            self._runs[key] = _run(*key)
        return self._runs[key]

    def difference(self, log: Log, of: str, nodes: int | None = None) -> Floats:
        """Return the seconds that remote GPUs save each job of a log that ran both without and with them.

        of: the time compared, "wait", "execution" or "life". nodes: cluster size with remote GPUs, by default the full
        cluster; without remote GPUs it is always the full cluster. ValueError if there is no such job.
        """
        before, after = (
            getattr(self.run(log, name, n), of) for name, n in ((G_QUEUE, None), (R_QUEUE, nodes))
        )
        apart: Floats = before - after
        known = apart[np.isfinite(apart)]
        if not len(known):
            raise ValueError(f"no job of the log fits on {nodes or self.nodes} nodes")
        return known

    def mean(self, of: str) -> Sample:
        """Return the mean time of jobs without remote GPUs in seconds; of: "wait", "execution" or "life"."""
        return self.each(lambda log: self.run(log, G_QUEUE).mean(of))

    def saved(self, of: str, nodes: int | None = None) -> Sample:
        """Return the mean seconds that remote GPUs save a job; for the arguments, see `difference`."""
        return self.each(lambda log: float(self.difference(log, of, nodes).mean()))

    def change(self, of: str) -> Sample:
        """Return the relative change of a mean time due to remote GPUs, on the full cluster; negative is shorter.

        of: "wait", "execution" or "life". NaN if the mean without remote GPUs is 0.
        """
        saved, before = self.saved(of).values, self.mean(of).values
        return Sample.of(-a / b if b else float("nan") for a, b in zip(saved, before, strict=True))

    def each(self, quantity: Callable[[Log], float]) -> Sample:
        """Return a quantity of every log."""
        return Sample.of(map(quantity, self.logs))


@lru_cache(maxsize=1)
def workload_of(log: Log) -> Workload:
    """Return the log's jobs; the last log is kept. ValueError if it has none."""
    workload = log()
    if not len(workload):
        raise ValueError("the log has no jobs with GPUs that ran")
    return workload


def _run(log: Log, policy: str, nodes: int) -> StudyOutcome:
    return run(workload_of(log), policy, nodes)


def run(workload: Workload, policy: str, nodes: int) -> StudyOutcome:
    """Simulate `workload` under the policy of that name on `nodes` nodes and return every job's times."""
    result = simulate(machines(nodes), workload, policies.get(policy), performance=MODEL, hosts=NODE)
    rows = [
        (
            record.submitted.submit_time,
            record.start,
            record.end,
            bool(record.placement and record.placement.remote),
        )
        for record in result.records
    ]
    submit, start, end, remote = np.array(rows, dtype=np.float64).reshape(-1, 4).T
    return StudyOutcome(submit, start - submit, end - start, remote.astype(np.bool_))
