"""The waiting jobs of a snapshot, as columns of a workload."""

from __future__ import annotations

import math
from typing import Any, Final

from topoplace import _checks
from topoplace.errors import SnapshotError
from topoplace.snapshot.records import Snapshot, WaitingJob
from topoplace_lab.simulate.workloads.row_report import RowReport

_ASSUMED: Final = (
    "a job runs for its limit of time, or the duration stated for jobs without one, on the best GPUs",
    "jobs that do not say how they communicate are bandwidth-sensitive rings",
)


def waiting_jobs(snapshot: Snapshot, duration: float | None) -> dict[str, Any]:
    """Return the arguments of a workload; see `Workload.from_snapshot`."""
    if duration is not None:
        duration = _checks.positive(duration, "duration", SnapshotError)
    jobs = [one for one in snapshot.waiting if not one.held]
    names = snapshot.cluster.topology.machine_names
    return {
        "jobs": [one.job for one in jobs],
        "submit_time": [0.0] * len(jobs),
        "base_time": [_run_time(one, duration) for one in jobs],
        "job_ids": [one.job_id for one in jobs],
        "excluded": [one.excluded(names) for one in jobs],
        "report": RowReport(len(snapshot.waiting), len(jobs), assumed=_ASSUMED),
    }


def _run_time(one: WaitingJob, duration: float | None) -> float:
    if one.seconds < math.inf:
        return one.seconds
    if duration is None:
        raise SnapshotError(
            f"duration = None: job {_checks.shown(one.job_id)} has no limit of its run time; state seconds"
        )
    return duration
