"""Simulations of one log under both queues, on clusters of different sizes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from topoplace import policies
from topoplace.papers.tsubame.machine import MODEL, NODE, machines
from topoplace.simulate import Workload, simulate

NODES: Final = 480
G_QUEUE: Final = "g-queue"
R_QUEUE: Final = "r-queue"
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """The (m,) times of each job in seconds; NaN for rejected jobs."""

    submit: Floats
    wait: Floats
    execution: Floats
    remote: NDArray[np.bool_]
    """True for jobs that had GPUs of other nodes."""

    @property
    def life(self) -> Floats:
        """Return the time from submission to end."""
        return self.wait + self.execution

    def mean(self, of: str) -> float:
        """Return the mean of the column named `of` over the jobs that ran."""
        column: Floats = getattr(self, of)
        return float(np.nanmean(column))

    @property
    def makespan(self) -> float:
        """Return the time from the first submission to the last end."""
        return float(np.nanmax(self.submit + self.life) - self.submit.min())


class Study:
    """One log in all settings; runs are made on first use."""

    def __init__(self, workload: Workload, nodes: int = NODES) -> None:
        if not len(workload):
            raise ValueError("the log has no jobs with GPUs that ran")
        self.workload = workload
        self.nodes = nodes
        self.sizes = tuple(round(nodes * size / NODES) for size in (450, 460, 470, 480))
        """Numbers of nodes in the proportions of Table 3."""
        self._runs: dict[tuple[str, int], Outcome] = {}

    def run(self, policy: str, nodes: int | None = None) -> Outcome:
        """Return the run of the log under the policy of that name on `nodes` nodes, by default all."""
        key = policy, self.nodes if nodes is None else nodes
        if key not in self._runs:
            self._runs[key] = run(self.workload, *key)
        return self._runs[key]

    def difference(self, of: str, nodes: int | None = None) -> Floats:
        """Return the column `of` under G on all nodes minus that under R, for jobs that ran under both.

        of: "wait", "execution" or "life". nodes: number of nodes under R, by default all.
        """
        before, after = (getattr(self.run(name, n), of) for name, n in ((G_QUEUE, None), (R_QUEUE, nodes)))
        apart: Floats = before - after
        known = apart[np.isfinite(apart)]
        if not len(known):
            raise ValueError(f"no job of the log fits on {nodes or self.nodes} nodes")
        return known

    def change(self, of: str) -> float:
        """Return the change of the mean of `of` under R relative to G on all nodes; NaN if G's mean is 0."""
        apart, before = float(self.difference(of).mean()), self.run(G_QUEUE).mean(of)
        return -apart / before if before else math.nan


def run(workload: Workload, policy: str, nodes: int) -> Outcome:
    """Simulate `workload` under the policy of that name on `nodes` nodes."""
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
    return Outcome(submit, start - submit, end - start, remote.astype(np.bool_))
