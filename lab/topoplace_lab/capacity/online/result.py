"""The result of an online simulation: when and where each job ran, what it cost, and every decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from topoplace_lab.capacity.problem.catalogue import Catalogue
from topoplace_lab.capacity.problem.job import CapacityJob

Table = NDArray[np.void]

EVENTS: Final = ("submit", "boot", "start", "stop", "end", "shutdown")
"""Kinds of events: a job arrives; a node is rented; a job starts on a node; a job leaves its node unfinished; a job
ends; a node is returned."""
EVENT_FIELDS: Final = (
    *(("time", "f8"), ("event", "U8"), ("controller", "i4")),
    *(("node", "i4"), ("vm_type", "i4"), ("job", "i4"), ("gpus", "i4")),
)
DECISION_FIELDS: Final = (
    *(("time", "f8"), ("controller", "i4"), ("jobs", "i4"), ("nodes", "i4"), ("postponed", "i4")),
    *(("variables", "i8"), ("seconds", "f8"), ("cost", "f8"), ("gap", "f8")),
)
_JOB_FIELDS: Final = (
    *(("job", object), ("submit", "f8"), ("due", "f8"), ("weight", "f8"), ("controller", "i4")),
    *(("start", "f8"), ("end", "f8"), ("tardiness", "f8"), ("cost", "f8"), ("stops", "i4")),
)


def table(rows: Sequence[tuple[object, ...]], fields: Sequence[tuple[str, object]]) -> Table:
    """Return `rows` as a read-only NumPy structured array; fields: (name, dtype) of each column."""
    made = np.array(rows, dtype=np.dtype(list(fields)))
    made.flags.writeable = False
    return made


@dataclass(frozen=True, eq=False)
class CapacityResult:
    """The result of an online simulation. Times are in hours, costs in $.

    Args:
        events: The log, in order of time. Its fields are time, event (see `EVENTS`), controller, node, vm_type (index
            in the catalogue), job (index in `submitted`) and gpus; -1 means none. `audit_events` checks the log.
        decisions: One row per plan. Its fields are time, controller, jobs (running or waiting), nodes (of the plan),
            postponed (jobs), variables (of the largest model solved), seconds (of CPU time), cost and gap (of the
            plan).
    """

    planner: str
    catalogue: Catalogue
    submitted: tuple[CapacityJob, ...] = field(repr=False)
    events: Table = field(repr=False)
    decisions: Table = field(repr=False)
    vm_cost: float
    """Sum over all nodes of price times rented hours."""
    tardiness_cost: float
    """Sum over all jobs of weight times hours past the due date."""

    @property
    def total_cost(self) -> float:
        """Return the cost in $ of rented VMs and of late jobs together, by which the paper compares planners."""
        return self.vm_cost + self.tardiness_cost

    @property
    def jobs(self) -> Table:
        """Return one row per job, in the order of `submitted`.

        Fields: job (id), submit, due, weight, controller, start (the first one), end, tardiness (hours past the due
        date), cost (of the tardiness, $), stops (how often the job was preempted, moved or resized).
        """
        ran = [_Ran() for _ in self.submitted]
        rows: list[tuple[float, str, int, int, int, int, int]] = self.events.tolist()
        for time, event, controller, _, _, job, _ in rows:
            if job < 0:
                continue
            ran[job].note(event, time, controller)
        pairs = zip(self.submitted, ran, strict=True)
        return table([one.row(job) for job, one in pairs], _JOB_FIELDS)

    def summary(self) -> dict[str, float]:
        """Return key figures of the simulation by name.

        In $: vm_cost, tardiness_cost, total_cost. In hours: makespan (first submission to last end), mean_flow (mean
        time from submission to end), mean_tardiness (mean time past the due date, 0 for a job in time). Counts:
        tardy_jobs, stops (of running jobs), decisions (plans made). Means over these: jobs_per_decision,
        seconds_per_decision (CPU time), variables_per_decision.
        """
        jobs, decisions = self.jobs, self.decisions
        return {
            "vm_cost": self.vm_cost,
            "tardiness_cost": self.tardiness_cost,
            "total_cost": self.total_cost,
            "makespan": float(jobs["end"].max() - jobs["submit"].min()) if len(jobs) else 0.0,
            "mean_flow": _mean(jobs["end"] - jobs["submit"]),
            "mean_tardiness": _mean(jobs["tardiness"]),
            "tardy_jobs": float((jobs["tardiness"] > 0).sum()),
            "stops": float(jobs["stops"].sum()),
            "decisions": float(len(decisions)),
            "jobs_per_decision": _mean(decisions["jobs"]),
            "seconds_per_decision": _mean(decisions["seconds"]),
            "variables_per_decision": _mean(decisions["variables"]),
        }


@dataclass(slots=True)
class _Ran:
    """One job's controller, first start, end and number of stops, collected from the event log."""

    controller: int = -1
    start: float = np.nan
    end: float = np.nan
    stops: int = 0

    def note(self, event: str, time: float, controller: int) -> None:
        self.controller = controller
        if event == "start" and np.isnan(self.start):
            self.start = time
        elif event == "end":
            self.end = time
        elif event == "stop":
            self.stops += 1

    def row(self, job: CapacityJob) -> tuple[object, ...]:
        late = max(0.0, self.end - job.due)
        given = (job.job_id, job.submit, job.due, job.weight, self.controller)
        return (*given, self.start, self.end, late, job.weight * late, self.stops)


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else 0.0
