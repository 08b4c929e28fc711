"""The measures of a cell of the suite; every job counts, even one that the policy refuses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace.cluster.cluster import Cluster
from topoplace.collective import ring_bandwidth
from topoplace.objectives.communication import communication_time
from topoplace_lab.simulate import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from topoplace.placement import Placement
    from topoplace_lab.simulate.metrics import JobRecord
    from topoplace_lab.simulate.workloads.submitted_job import SubmittedJob

    Floats = NDArray[np.float64]

_RATED_GANGS: Final = 300
_EVERY: Final = 15
"""Every 15th of the rated gangs is in the sample of `max_min`."""
_MACHINE_GPUS: Final = 8


class Measure(NamedTuple):
    """One figure of a cell."""

    label: str
    about: str
    """A description in words; for a ratio, of the value whose ratio it is."""
    is_ratio: bool
    """True if the value is divided by the reference's; else it is a percentage."""
    is_better_low: bool = True


_WAIT: Final = "mean wait of jobs {}, of the mean base time of all jobs"
MEASURES: Final[Mapping[str, Measure]] = MappingProxyType(
    {
        "turnaround": Measure(
            "turnaround", "mean time from submission to end, over the reference's", is_ratio=True
        ),
        "lost": Measure(
            "lost to communication, %",
            "GPU time that jobs run longer than their base time, of the latter",
            is_ratio=False,
        ),
        "ring_bandwidth": Measure(
            "NCCL ring GB/s",
            "geometric mean over the first 300 jobs of several GPUs, over the reference's",
            is_ratio=True,
            is_better_low=False,
        ),
        "max_min": Measure(
            "max-min",
            "geometric mean of the communication of a step, for a sample of the same jobs, beside the jobs that run "
            "when they start, where flows share ports max-min fairly; over the reference's",
            is_ratio=True,
        ),
        "wait_one": Measure("wait of 1 GPU, %", _WAIT.format("of one GPU"), is_ratio=False),
        "wait_few": Measure("wait of 2–8, %", _WAIT.format("of 2 to 8 GPUs"), is_ratio=False),
        "wait_many": Measure("wait of more, %", _WAIT.format("of more GPUs"), is_ratio=False),
        "idle": Measure(
            "idle for want of a whole domain, %",
            "GPU time until the last submission that is idle while the first waiting job needs no more GPUs, of all",
            is_ratio=False,
        ),
        "refused": Measure("jobs refused, %", "jobs that the policy refuses, of all", is_ratio=False),
    }
)
"""The figures of a cell by name; a cell has NaN where it has no such jobs.

A refused job counts as one that starts when all others have finished.
"""


def figures(result: Result) -> dict[str, float]:
    """Return the summary of a simulation, and all measures."""
    records = result.records
    last = max((record.end for record in records if not record.rejected), default=_last_submission(records))
    starts = [last if record.rejected else record.start for record in records]
    waits = [start - record.submitted.submit_time for start, record in zip(starts, records, strict=True)]
    runs = [record.submitted.base_time if record.rejected else record.run_time for record in records]
    return {
        **result.summary(),
        "turnaround": _mean(wait + run for wait, run in zip(waits, runs, strict=True)),
        "lost": _lost(records),
        **_by_other_yardsticks(records),
        **_waits_by_size(records, waits),
        "idle": _idle(result),
        "refused": 100 * _mean(bool(record.rejected) for record in records),
    }


def _last_submission(records: Sequence[JobRecord]) -> float:
    return max(record.submitted.submit_time for record in records)


def _gpus(job: SubmittedJob) -> float:
    return job.job.num_tasks * job.job.gpu_share


def _lost(records: Sequence[JobRecord]) -> float:
    ran = [record for record in records if not record.rejected]
    base = math.fsum(_gpus(one.submitted) * one.submitted.base_time for one in ran)
    longer = math.fsum(_gpus(one.submitted) * (one.run_time - one.submitted.base_time) for one in ran)
    return 100 * longer / base if base else math.nan


def _by_other_yardsticks(records: Sequence[JobRecord]) -> dict[str, float]:
    """Return the rings and, for a sample, the communication of the first gangs."""
    ran = [(record, one) for record in records if (one := record.placement) and record.job.num_tasks > 1]
    gangs = ran[:_RATED_GANGS]
    return {
        "ring_bandwidth": _geometric_mean(ring_bandwidth(one.topology, one.gpus) for _, one in gangs),
        "max_min": _geometric_mean(
            _beside_all(record, one, records) for record, one in gangs[::_EVERY] if record.job.traffic
        ),
    }


def _beside_all(record: JobRecord, placement: Placement, records: Sequence[JobRecord]) -> float:
    """Return the seconds that a step of a job communicates beside all that run when it starts."""
    cluster = Cluster(placement.topology)
    for one in records:
        if one.placement and one.job.traffic and one.start <= record.start < one.end:
            cluster.allocate(one.job_id, one.placement)
    time = communication_time(record.job, placement.gpus, cluster.topology, cluster=cluster, max_min=True)
    return time.seconds


def _geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean; NaN if there is no value, or one that is zero or infinite."""
    known = list(values)
    return (
        math.exp(_mean(map(math.log, known)))
        if known and 0 < min(known) <= max(known) < math.inf
        else math.nan
    )


def _waits_by_size(records: Sequence[JobRecord], waits: Sequence[float]) -> dict[str, float]:
    base = _mean(record.submitted.base_time for record in records)
    sizes = np.array([record.job.num_tasks for record in records])
    return {
        name: 100 * _mean(np.array(waits)[chosen].tolist()) / base
        for name, chosen in (
            ("wait_one", sizes <= 1),
            ("wait_few", (sizes > 1) & (sizes <= _MACHINE_GPUS)),
            ("wait_many", sizes > _MACHINE_GPUS),
        )
    }


def _idle(result: Result) -> float:
    """Return the share of GPU time, in per cent, that is idle while the first waiting job needs no more GPUs."""
    records = [record for record in result.records if not record.rejected]
    if not records:
        return math.nan
    until, num_gpus = _last_submission(result.records), result.topology.num_gpus
    moments = np.unique([time for one in records for time in (one.submitted.submit_time, one.start, one.end)])
    moments = moments[moments <= until]
    free = num_gpus - _running(records, moments)
    need = _first_needs(records, moments)
    seconds = np.diff(moments, append=until)
    is_idle = (need > 0) & (need <= free + 1e-9)
    span = until - float(moments[0])
    return 100 * float((free * seconds)[is_idle].sum()) / (num_gpus * span) if span else math.nan


def _running(records: Sequence[JobRecord], moments: Floats) -> Floats:
    """Return the GPUs in use right after each moment."""
    gpus = np.array([_gpus(one.submitted) for one in records])
    used = np.zeros(len(moments) + 1)
    np.add.at(used, np.searchsorted(moments, [one.start for one in records]), gpus)
    np.add.at(used, np.searchsorted(moments, [one.end for one in records]), -gpus)
    return np.cumsum(used[:-1])


def _first_needs(records: Sequence[JobRecord], moments: Floats) -> Floats:
    """Return the GPUs of the first job in the queue right after each moment; 0 if none waits."""
    queue = sorted(records, key=lambda one: one.submitted.submit_time)
    found = np.zeros(len(moments))
    first = 0
    for at, now in enumerate(moments.tolist()):
        while first < len(queue) and queue[first].start <= now:
            first += 1
        if first < len(queue) and queue[first].submitted.submit_time <= now:
            found[at] = _gpus(queue[first].submitted)
    return found


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return math.fsum(known) / len(known) if known else math.nan
