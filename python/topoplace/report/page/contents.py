"""What the page shows, as plain values for JSON: rounded, without NaN, and bounded in size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from topoplace.report.measures import MEASURES
from topoplace.simulate.samples import Sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from topoplace.simulate.metrics import Result
    from topoplace.topology.topology import Topology

MAX_JOBS: Final = 20_000
"""Limit on the jobs of a run that are shown one by one; key figures are of all."""
_HIGHER_IS_BETTER: Final = frozenset(("throughput", "utilization", "nvlink_use", "mean_utility"))
_SHOWN: Final = (
    *("makespan", "throughput", "utilization", "nvlink_use", "mean_wait", "wait_p90", "mean_slowdown"),
    *("mean_slowdown_with_wait", "mean_utility", "slo_violations", "rejected", "sensitive_run_time_p75"),
    "sensitive_effective_bandwidth_p50",
)
_DECIMALS: Final = 4


def contents_of(results: Sequence[Result]) -> dict[str, Any]:
    """Return the values of the page: figures by topology and policy, and the first run of each in detail.

    Runs of different numbers of jobs are no repetitions of each other: each number is a group of its own.
    """
    groups: dict[tuple[Topology, int], dict[str, list[Result]]] = {}
    for result in results:
        study = result.topology, len(result.records)
        groups.setdefault(study, {}).setdefault(result.policy, []).append(result)
    measures = [
        {
            "key": key,
            "label": MEASURES[key].label,
            "unit": MEASURES[key].unit,
            "higher": key in _HIGHER_IS_BETTER or "bandwidth" in key,
        }
        for key in _SHOWN
    ]
    return {"measures": measures, "groups": [_group(policies) for policies in groups.values()]}


def _group(policies: dict[str, list[Result]]) -> dict[str, Any]:
    """Return the values of one topology and number of jobs. policies: the results by policy."""
    first = next(iter(policies.values()))[0]
    topology = first.topology
    return {
        "name": topology.name,
        "gpus": topology.num_gpus,
        "num_jobs": len(first.records),
        "machines": _machines(topology),
        "runs": [
            {"policy": policy, "repetitions": len(runs), "figures": _figures(runs), **_details(runs[0])}
            for policy, runs in policies.items()
        ],
    }


def _machines(topology: Topology) -> list[dict[str, Any]]:
    """Return name, GPUs and domain of each machine, such as its rack."""
    level = topology.fabric.levels[0] if topology.fabric is not None and topology.fabric.levels else None
    return [
        {
            "name": name,
            "gpus": [int(gpu) for gpu in topology.gpus_of[name]],
            "rack": (level.domains[number] or "") if level else "",
        }
        for number, name in enumerate(topology.machine_names)
    ]


def _figures(runs: Sequence[Result]) -> dict[str, list[float | None]]:
    """Return mean, lower and upper end of the 95 % interval of each key figure, in the unit shown."""
    found: dict[str, list[float | None]] = {}
    summaries = [run.summary() for run in runs]
    for key in _SHOWN:
        factor = MEASURES[key].factor
        sample = Sample.of(summary[key] * factor for summary in summaries)
        found[key] = [_number(value) for value in (sample.mean, sample.low, sample.high)]
    return found


def _details(run: Result) -> dict[str, Any]:
    """Return the jobs of a run in columns, and each stay of a job on its GPUs."""
    jobs = run.jobs[:MAX_JOBS]
    row_of = {job: row for row, job in enumerate(jobs["job"].tolist())}
    shown = [job in row_of for job in run.stays["job"].tolist()]
    stays = run.stays[shown]
    scores = jobs["scores"]
    return {
        "left_out": len(run.jobs) - len(jobs),
        "jobs": {
            "id": [str(job) for job in jobs["job"]],
            **{
                name: _column(jobs[name])
                for name in ("submit", "start", "end", "wait", "run_time", "slowdown")
            },
            "num_gpus": jobs["num_gpus"].tolist(),
            "sensitive": jobs["bandwidth_sensitive"].astype(int).tolist(),
            "postponed": jobs["postponed"].tolist(),
            "rejected": [str(reason) for reason in jobs["rejected"]],
            "scores": {name: _column(scores[name]) for name in scores.dtype.names or ()},
        },
        "stays": {
            "job": [row_of[job] for job in stays["job"].tolist()],
            **{name: _column(stays[name]) for name in ("start", "end", "gpu_fraction")},
            "gpus": [list(map(int, gpus)) for gpus in stays["gpus"].tolist()],
        },
    }


def _column(values: NDArray[np.float64]) -> list[float | None]:
    return [_number(value) for value in values.tolist()]


def _number(value: float) -> float | None:
    """Return the value with as many decimals as the page can show; None if it is not finite."""
    return round(value, _DECIMALS) if math.isfinite(value) else None
