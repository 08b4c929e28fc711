"""The jobs that wait in a snapshot, as a workload."""

from __future__ import annotations

import math
from typing import Final

from topoplace import _checks
from topoplace.errors import SnapshotError
from topoplace.experiments.simulate.workloads.row_report import RowReport
from topoplace.experiments.simulate.workloads.workload import Workload
from topoplace.snapshot.records import Snapshot, WaitingJob

_ASSUMED: Final = (
    "a job runs for its limit of time, or the duration stated for jobs without one, on the best GPUs",
    "jobs that do not say how they communicate are bandwidth-sensitive rings",
)


def waiting_jobs(snapshot: Snapshot, duration: float | None = None) -> Workload:
    """Return the jobs that wait and are not held for `tp.simulate`, in the order of the queue, submitted at time 0.

    A job runs for its limit of time on the best GPUs.

    Args:
        duration: Run time in seconds of jobs without a limit.

    Raises:
        SnapshotError: Names a job without a limit if there is no `duration`.
    """
    if duration is not None:
        duration = _checks.positive(duration, "duration", SnapshotError)
    jobs = [one for one in snapshot.waiting if not one.held]
    names = snapshot.cluster.topology.machine_names
    return Workload(
        [one.job for one in jobs],
        [0.0] * len(jobs),
        [_run_time(one, duration) for one in jobs],
        [one.job_id for one in jobs],
        excluded=[one.excluded(names) for one in jobs],
        report=RowReport(len(snapshot.waiting), len(jobs), assumed=_ASSUMED),
    )


def _run_time(one: WaitingJob, duration: float | None) -> float:
    if one.seconds < math.inf:
        return one.seconds
    if duration is None:
        raise SnapshotError(
            f"duration = None: job {_checks.shown(one.job_id)} has no limit of its run time; state seconds"
        )
    return duration
