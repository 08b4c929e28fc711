"""Simulations of one job log without remote GPUs (G queue) and with them (R queue), on clusters of several sizes."""

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


class Study:
    """Simulations of one job log without and with remote GPUs on several cluster sizes; each runs on first use.

    nodes: size of the full cluster. ValueError if the log has no jobs.
    """

    def __init__(self, workload: Workload, nodes: int = NODES) -> None:
        if not len(workload):
            raise ValueError("the log has no jobs with GPUs that ran")
        self.workload = workload
        self.nodes = nodes
        self.sizes = tuple(round(nodes * size / NODES) for size in (450, 460, 470, 480))
        """Cluster sizes in the proportions of Table 3 (450, 460, 470 and 480 nodes)."""
        self._runs: dict[tuple[str, int], Outcome] = {}

    def run(self, policy: str, nodes: int | None = None) -> Outcome:
        """Return the log's job times under the policy of that name on `nodes` nodes, by default the full cluster."""
        key = policy, self.nodes if nodes is None else nodes
        if key not in self._runs:
            self._runs[key] = run(self.workload, *key)
        return self._runs[key]

    def difference(self, of: str, nodes: int | None = None) -> Floats:
        """Return the seconds that remote GPUs save each job that ran both without and with them.

        of: the time compared, "wait", "execution" or "life". nodes: cluster size with remote GPUs, by default the full
        cluster; without remote GPUs it is always the full cluster. ValueError if there is no such job.
        """
        before, after = (getattr(self.run(name, n), of) for name, n in ((G_QUEUE, None), (R_QUEUE, nodes)))
        apart: Floats = before - after
        known = apart[np.isfinite(apart)]
        if not len(known):
            raise ValueError(f"no job of the log fits on {nodes or self.nodes} nodes")
        return known

    def change(self, of: str) -> float:
        """Return the relative change of a mean time due to remote GPUs, on the full cluster; negative is shorter.

        of: "wait", "execution" or "life". NaN if the mean without remote GPUs is 0.
        """
        apart, before = float(self.difference(of).mean()), self.run(G_QUEUE).mean(of)
        return -apart / before if before else math.nan


def run(workload: Workload, policy: str, nodes: int) -> Outcome:
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
    return Outcome(submit, start - submit, end - start, remote.astype(np.bool_))
