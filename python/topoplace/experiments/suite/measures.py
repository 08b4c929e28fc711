"""What a cell of the suite measures: every job counts, also one that the policy refuses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace.collective import ring_bandwidth
from topoplace.experiments.simulate import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from topoplace.experiments.simulate.metrics import JobRecord
    from topoplace.experiments.simulate.workloads.submitted_job import SubmittedJob
    from topoplace.jobs.job_graph import JobGraph

    Floats = NDArray[np.float64]

_RATED_GANGS: Final = 300
_MACHINE_GPUS: Final = 8


class Measure(NamedTuple):
    """One figure of a cell."""

    label: str
    about: str
    """What it is, in words; for a ratio, of what."""
    is_ratio: bool
    """True if it is compared with the reference; else it is a percentage."""
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
        "wait_one": Measure("wait of 1 GPU, %", _WAIT.format("of one GPU"), is_ratio=False),
        "wait_few": Measure("wait of 2–8, %", _WAIT.format("of 2 to 8 GPUs"), is_ratio=False),
        "wait_many": Measure("wait of more, %", _WAIT.format("of more GPUs"), is_ratio=False),
        "idle": Measure(
            "idle for want of a whole domain, %",
            "GPU time until the last submission that is idle while the first waiting job needs no more GPUs, of all",
            is_ratio=False,
        ),
        "refused": Measure("jobs refused, %", "jobs that the policy refuses, of all", is_ratio=False),
        "failed_groups": Measure(
            "groups failed, %",
            "jobs that the policy refuses, of those that require groups or a domain",
            is_ratio=False,
        ),
    }
)
"""The figures of a cell by name; a cell has NaN where it has no such jobs.

A job that is refused counts as one that starts when all others have ended.
"""


def figures(result: Result) -> dict[str, float]:
    """Return the summary of a simulation, and all measures."""
    records = result.records
    grouped = [record for record in records if _requires_domains(record.job)]
    last = max((record.end for record in records if not record.rejected), default=_last_submission(records))
    starts = [last if record.rejected else record.start for record in records]
    waits = [start - record.submitted.submit_time for start, record in zip(starts, records, strict=True)]
    runs = [record.submitted.base_time if record.rejected else record.run_time for record in records]
    return {
        **result.summary(),
        "turnaround": _mean(wait + run for wait, run in zip(waits, runs, strict=True)),
        "lost": _lost(records),
        "ring_bandwidth": _ring_bandwidth(records),
        **_waits_by_size(records, waits),
        "idle": _idle(result),
        "refused": 100 * _mean(bool(record.rejected) for record in records),
        "failed_groups": 100 * _mean(bool(record.rejected) for record in grouped),
    }


def _requires_domains(job: JobGraph) -> bool:
    return bool(job.within or any(group.within for group in job.groups))


def _last_submission(records: Sequence[JobRecord]) -> float:
    return max(record.submitted.submit_time for record in records)


def _gpus(job: SubmittedJob) -> float:
    return job.job.num_tasks * job.job.gpu_share


def _lost(records: Sequence[JobRecord]) -> float:
    ran = [record for record in records if not record.rejected]
    base = math.fsum(_gpus(one.submitted) * one.submitted.base_time for one in ran)
    longer = math.fsum(_gpus(one.submitted) * (one.run_time - one.submitted.base_time) for one in ran)
    return 100 * longer / base if base else math.nan


def _ring_bandwidth(records: Sequence[JobRecord]) -> float:
    gangs = [one.placement for one in records if one.placement and one.job.num_tasks > 1]
    rates = [ring_bandwidth(one.topology, one.gpus) for one in gangs[:_RATED_GANGS]]
    return math.exp(_mean(math.log(rate) for rate in rates)) if rates and min(rates) > 0 else math.nan


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
