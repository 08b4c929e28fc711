"""What came out of a simulation: one row per job, and what can be read off them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from topoplace.topology.links.link import NVLINKS, LinkKind

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd  # pyright: ignore[reportMissingTypeStubs]

    from topoplace.placement import Placement
    from topoplace.simulate.workloads.submitted_job import SubmittedJob
    from topoplace.topology.topology import Topology

_ROUNDING = 1e-9
_OVER_NVLINK = NVLINKS | {LinkKind.NVSWITCH, LinkKind.C2C}
QUANTILES = {"min": 0.0, "p25": 0.25, "p50": 0.5, "p75": 0.75, "max": 1.0}


@dataclass(slots=True)
class JobRecord:
    """What the engine notes of one job; one that never ran has no `placement`, and NaN for its times."""

    submitted: SubmittedJob
    placement: Placement | None = None
    start: float = float("nan")
    end: float = float("nan")
    run_time: float = float("nan")
    postponed: int = 0
    rejected: str = ""


@dataclass(frozen=True)
class Result:
    """A finished simulation. `records` are in the order of the workload's rows."""

    topology: Topology
    policy: str
    records: tuple[JobRecord, ...]

    @cached_property
    def jobs(self) -> NDArray[np.void]:
        """One row per job of the workload; times in seconds.

        job (id), submit, start, end, wait (start - submit), run_time, slowdown (run_time / base time, 1 for no loss;
        SC'17's QoS slowdown), slowdown_with_wait ((wait + run_time) / base time), min_utility, num_gpus,
        bandwidth_sensitive, profile, gpus (tuple, task i on gpus[i]), postponed (how often the policy deferred the job
        although enough suitable GPUs were free), rejected (the reason, empty for jobs that ran), and scores, a nested
        column with one field per score of the placements. NaN where a job never ran.
        """
        names = sorted(
            {name for record in self.records if record.placement for name in record.placement.scores}
        )
        fields = [
            *(("job", object), ("submit", "f8"), ("start", "f8"), ("end", "f8"), ("wait", "f8")),
            *(("run_time", "f8"), ("slowdown", "f8"), ("slowdown_with_wait", "f8"), ("min_utility", "f8")),
            *(("num_gpus", "i4"), ("bandwidth_sensitive", "?")),
            *(("profile", object), ("gpus", object), ("postponed", "i4"), ("rejected", object)),
            ("scores", [(name, "f8") for name in names]),
        ]
        table = np.array([_row(record, names) for record in self.records], dtype=np.dtype(fields))
        table.flags.writeable = False
        return table

    @property
    def sensitive(self) -> NDArray[np.void]:
        """The rows of `jobs` of the bandwidth-sensitive jobs that ran."""
        rows: NDArray[np.void] = self.jobs[self.jobs["bandwidth_sensitive"] & ~np.isnan(self.jobs["start"])]
        return rows

    def summary(self) -> dict[str, float]:
        """The run in numbers; times in seconds, bandwidths in GB/s. NaN where there is no job to measure.

        makespan (first submission to last end), throughput (jobs per hour of it), utilization (busy GPU seconds over
        all GPU seconds of it), nvlink_use (of the seconds that pairs of tasks talked, the share on NVLink), mean_wait,
        mean_slowdown, mean_slowdown_with_wait, mean_utility, slo_violations (jobs that started with less than their
        min_utility; NaN under a policy that tells no utility), rejected (counts), and min, p25, p50, p75, max of
        sensitive_run_time and of sensitive_effective_bandwidth over the bandwidth-sensitive jobs.
        """
        ran = self.jobs[~np.isnan(self.jobs["start"])]
        begin = float(self.jobs["submit"].min()) if len(self.jobs) else 0.0
        makespan = float(ran["end"].max()) - begin if len(ran) else 0.0
        busy = float((ran["run_time"] * ran["num_gpus"]).sum())
        return {
            "makespan": makespan,
            "throughput": len(ran) / makespan * 3600 if makespan else float("nan"),
            "utilization": busy / (makespan * self.topology.num_gpus) if makespan else float("nan"),
            "nvlink_use": self.nvlink_use(),
            "mean_wait": _mean(ran["wait"]),
            "mean_slowdown": _mean(ran["slowdown"]),
            "mean_slowdown_with_wait": _mean(ran["slowdown_with_wait"]),
            "mean_utility": _mean(score_of(ran, "utility")),
            "slo_violations": _slo_violations(ran),
            "rejected": float(len(self.jobs) - len(ran)),
            **_quantiles("sensitive_run_time", self.sensitive["run_time"]),
            **_quantiles("sensitive_effective_bandwidth", score_of(self.sensitive, "effective_bandwidth")),
        }

    def nvlink_use(self) -> float:
        """Of the seconds that pairs of tasks talked, the share over NVLink, direct or switched; NaN where none did."""
        talked = over_nvlink = 0.0
        for record in self.records:
            placement = record.placement
            for a, b, _ in record.submitted.job.edges if placement else ():
                assert placement is not None
                link = self.topology.link(placement.gpus[a], placement.gpus[b])
                talked += record.run_time
                over_nvlink += record.run_time * (link.kind in _OVER_NVLINK)
        return over_nvlink / talked if talked else math.nan

    def compare(self, others: Iterable[Result]) -> list[dict[str, Any]]:
        """This run's summary and those of `others`, a row each, with its policy and two ratios to this run.

        speedup is throughput over this run's throughput; sensitive_p75_speedup the same for the 75th percentile of
        the sensitive jobs' run time (above 1 is faster). NaN where there is nothing to divide by.
        """
        rows: list[dict[str, Any]] = [
            {"policy": result.policy, **result.summary()} for result in (self, *others)
        ]
        base = rows[0]
        for row in rows:
            row["speedup"] = _ratio(row["throughput"], base["throughput"])
            row["sensitive_p75_speedup"] = _ratio(
                base["sensitive_run_time_p75"], row["sensitive_run_time_p75"]
            )
        return rows

    def to_pandas(self) -> pd.DataFrame:
        """`jobs` as a pandas DataFrame, each score a column of its own. Needs pandas."""
        import pandas as pd  # pyright: ignore[reportMissingTypeStubs]

        plain = {name: self.jobs[name] for name in self.jobs.dtype.names or () if name != "scores"}
        scores = self.jobs["scores"]
        return pd.DataFrame({**plain, **{name: scores[name] for name in scores.dtype.names or ()}})

    def gantt(self, path: str | Path) -> None:
        """Write a picture of which job held which GPU when to `path` (.png, .svg, .pdf). Needs matplotlib."""
        from topoplace.report import plots

        plots.gantt(self, path)


def score_of(rows: NDArray[np.void], name: str) -> NDArray[np.float64]:
    """The score `name` of rows of `Result.jobs`, NaN where the policy did not give it."""
    scores = rows["scores"]
    return scores[name] if name in (scores.dtype.names or ()) else np.full(len(rows), np.nan)


def _row(record: JobRecord, score_names: Iterable[str]) -> tuple[object, ...]:
    """The columns of `Result.jobs`, in their order."""
    submitted, placement = record.submitted, record.placement
    job = submitted.job
    scores: Mapping[str, float] = placement.scores if placement else {}
    return (
        *(submitted.job_id, submitted.submit_time, record.start, record.end),
        record.start - submitted.submit_time,
        record.run_time,
        record.run_time / submitted.base_time if submitted.base_time else 1.0,
        (record.end - submitted.submit_time) / submitted.base_time if submitted.base_time else 1.0,
        *(job.min_utility, job.num_tasks, job.bandwidth_sensitive, job.profile),
        placement.gpus if placement else (),
        *(record.postponed, record.rejected),
        tuple(scores.get(name, math.nan) for name in score_names),
    )


def _slo_violations(ran: NDArray[np.void]) -> float:
    utility = score_of(ran, "utility")
    if np.isnan(utility).all():
        return math.nan
    return float((utility < ran["min_utility"] - _ROUNDING).sum())


def _ratio(value: float, base: float) -> float:
    return value / base if base else math.nan


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _quantiles(prefix: str, values: NDArray[np.float64]) -> dict[str, float]:
    return {
        f"{prefix}_{name}": float(np.quantile(values, q)) if len(values) else float("nan")
        for name, q in QUANTILES.items()
    }
