"""Key figures of a workload before it runs: sizes, gaps, run times, and the GPUs that jobs request over time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from topoplace_lab.simulate.workloads.workload import Workload

_QUANTILES: Final[Mapping[str, float]] = {"min": 0.0, "p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}


def described(workload: Workload) -> dict[str, Any]:
    """Return the key figures by name; times are in seconds. ValueError for a workload without jobs.

    - jobs; without_gpus, shared, sensitive, single_machine: numbers of such jobs. models: number of jobs that require
      each GPU model. span: from the first to the last submission.
    - sizes: for each number of GPUs (as text), the number of jobs, and the GPU hours of these jobs.
    - gaps between submissions, with their coefficient of variation (1 for a Poisson process), and run_time: mean and
      quantiles.
    - gpu_hours of all jobs. mean_gpus, peak_gpus: the GPUs in use if each job ran at its submission, from the first
      submission to the last end. A job that shares GPUs counts with its shares.
    """
    if not len(workload):
        raise ValueError("the workload has no jobs")
    gaps = np.diff(np.sort(workload.submit_time))
    gpus, hours = _gpus(workload), _gpus(workload) * workload.base_time / 3600
    times, in_use = demand(workload)
    length = float(times[-1] - times[0])
    mean = float(gaps.mean()) if len(gaps) else 0.0
    return {
        "jobs": len(workload),
        "without_gpus": sum(not job.num_tasks for job in workload.jobs),
        "shared": sum(job.gpu_share < 1 for job in workload.jobs),
        "sensitive": sum(job.bandwidth_sensitive for job in workload.jobs),
        "single_machine": sum(job.single_machine for job in workload.jobs),
        "models": dict(Counter(model for job in workload.jobs for model in job.gpu_models).most_common()),
        "span": float(np.ptp(workload.submit_time)),
        "gpu_hours": float(hours.sum()),
        "mean_gpus": float((gpus * workload.base_time).sum()) / length if length else 0.0,
        "peak_gpus": float(in_use.max()),
        "gaps": _spread(gaps) | {"variation": float(gaps.std()) / mean if mean else 0.0},
        "run_time": _spread(workload.base_time),
        "sizes": _sizes(workload, hours),
    }


def demand(workload: Workload) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return (k,) the times in seconds at which the GPUs in use change, and (k,) their number from then on.

    Each job runs from its submission. The number is 0 after the last time.
    """
    gpus = _gpus(workload)
    times = np.concatenate([workload.submit_time, workload.submit_time + workload.base_time])
    changes = np.concatenate([gpus, -gpus])
    distinct, place = np.unique(times, return_inverse=True)
    in_use = np.cumsum(np.asarray(np.bincount(place, weights=changes), dtype=np.float64))
    return distinct, np.round(in_use, 6)


def _gpus(workload: Workload) -> NDArray[np.float64]:
    return np.array([job.num_tasks * job.gpu_share for job in workload.jobs])


def _sizes(workload: Workload, hours: NDArray[np.float64]) -> dict[str, dict[str, float]]:
    found: defaultdict[int, dict[str, float]] = defaultdict(lambda: {"jobs": 0, "gpu_hours": 0.0})
    for job, used in zip(workload.jobs, hours.tolist(), strict=True):
        found[job.num_tasks]["jobs"] += 1
        found[job.num_tasks]["gpu_hours"] += used
    return {str(size): found[size] for size in sorted(found)}


def _spread(values: NDArray[np.float64]) -> dict[str, float]:
    if not len(values):
        return dict.fromkeys(("mean", *_QUANTILES), 0.0)
    quantiles = {name: float(np.quantile(values, q)) for name, q in _QUANTILES.items()}
    return {"mean": float(values.mean()), **quantiles}
