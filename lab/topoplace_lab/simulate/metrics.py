"""The result of a simulation: one row per job, and the metrics computed from these rows."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from topoplace._lazy import above
from topoplace.engine.requirements import NOT_HONOURED
from topoplace.errors import require_package
from topoplace.topology.links.link_kinds import NVLINKS, LinkKind
from topoplace_lab.simulate.failures import domains
from topoplace_lab.simulate.interruptions import History, Stay, changes

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd  # pyright: ignore[reportMissingTypeStubs]

    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement
    from topoplace.topology.topology import Topology
    from topoplace_lab.simulate.workloads.submitted_job import SubmittedJob

_as_html: Callable[[Result], str] = above("as_html")
_gantt: Callable[..., None] = above("gantt")
_load: Callable[..., Result] = above("load_result")
_save: Callable[..., None] = above("save_result")
_RACK = "rack"
_ROUNDING = 1e-9
_OVER_NVLINK = NVLINKS | {LinkKind.NVSWITCH, LinkKind.C2C}
WAIT_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
QUANTILES = {"min": 0.0, "p25": 0.25, "p50": 0.5, "p75": 0.75, "max": 1.0}


@dataclass(slots=True)
class JobRecord:
    """The simulator's record of one job. Times are in seconds.

    If a job was moved, pre-empted or stopped by a failure, `start` is the first start, and `placement` and `end` are
    the last ones. `run_time` is the time in which it held GPUs. A job that never ran has no `placement` and NaN times.

    Args:
        postponed: Number of points in time at which the policy deferred the job.
        rejected: The reason for its rejection, or "".
    """

    submitted: SubmittedJob
    placement: Placement | None = None
    start: float = float("nan")
    end: float = float("nan")
    run_time: float = float("nan")
    postponed: int = 0
    rejected: str = ""
    history: History | None = None
    """What happened to a job before its present placement; None for one that ran in one go."""

    @property
    def job_id(self) -> str:
        """Return the job's id."""
        return self.submitted.job_id

    @property
    def job(self) -> JobGraph:
        """Return the job graph."""
        return self.submitted.job

    @property
    def submit_time(self) -> float:
        """Return the time of submission in seconds."""
        return self.submitted.submit_time

    @property
    def requested_time(self) -> float:
        """Return the run time that the user requested, in seconds; NaN if unknown."""
        return self.submitted.requested_time

    @property
    def stays(self) -> tuple[Stay, ...]:
        """Return the job's stays, each on the same GPUs, in order; () if the job never ran."""
        if self.placement is None:
            return ()
        history = self.history
        if history is None:
            return (Stay(self.placement, self.start, self.end),)
        if history.since < history.stays[-1].end:  # pre-empted, and never started again
            return tuple(history.stays)
        return (*history.stays, Stay(self.placement, history.since, self.end))

    @property
    def gpu_seconds(self) -> float:
        """Return the GPU seconds that the job held, each GPU counted by the job's share of it."""
        if self.job.elastic is not None and self.placement:
            return self.job.gpu_share * sum(stay.gpu_seconds for stay in self.stays)
        return self.run_time * (self.job.num_tasks * self.job.gpu_share)

    @property
    def wasted_gpu_seconds(self) -> float:
        """Return those of them in which the job lost work or restarted."""
        if self.history is None:
            return 0.0
        if self.job.elastic is not None:
            return self.job.gpu_share * self.history.wasted
        return (self.history.lost + self.history.paused) * (self.job.num_tasks * self.job.gpu_share)

    def __eq__(self, other: object) -> bool:
        """Compare all fields; two unknown times, which are NaN, are equal."""
        return self._compared() == other._compared() if isinstance(other, JobRecord) else NotImplemented

    def _compared(self) -> tuple[object, ...]:
        times = [None if math.isnan(time) else time for time in (self.start, self.end, self.run_time)]
        return self.submitted, self.placement, times, self.postponed, self.rejected, self.history


@dataclass(frozen=True)
class Result:
    """The result of a simulation. policy: the policy's name. records: one per job, in the order of the workload.

    `seed` and `options` do not count when results are compared.

    Args:
        seed: The seed of `simulate`; None if it is not known.
        options: Other choices by name, such as the options of `topoplace simulate`; None if they are unknown.
    """

    topology: Topology
    policy: str
    records: tuple[JobRecord, ...]
    seed: int | None = field(default=None, compare=False)
    options: Mapping[str, str] | None = field(default=None, compare=False)

    @cached_property
    def jobs(self) -> NDArray[np.void]:
        """Return a structured array with one row per job of the workload; times are in seconds.

        - job (id), submit, start, end, wait (start - submit, and time in the queue after pre-emptions), run_time.
        - slowdown: run_time / base time (the job's run time alone), SC'17's QoS slowdown; 1 means no loss.
          slowdown_with_wait: (wait + run_time) / base time. Both are 1 if the base time is 0.
        - min_utility, num_gpus, gpu_fraction, bandwidth_sensitive, profile: properties of the job.
          num_gpus is that of the job as submitted, if it is elastic.
        - gpus: tuple of GPUs in task order. scores: nested column with a field for each score of the placements.
        - postponed: number of points in time at which the policy deferred the job (`Plan.defer`). rejected: the
          reason, empty for jobs that ran. moves, preemptions, failures, resizes: how often the job was moved,
          pre-empted, stopped by a failure, and got another number of GPUs. tasks_moved: how many of its tasks changed
          GPU, over all of these. lost: run time whose work was lost. gpu_seconds: what it held, shared GPUs by their
          shares.

        For jobs that never ran, gpus is (), and scores, slowdowns and times except submit are NaN. A score that a
        placement does not have is NaN too.
        """
        names = sorted(
            {name for record in self.records if record.placement for name in record.placement.scores}
        )
        fields = [
            *(("job", object), ("submit", "f8"), ("start", "f8"), ("end", "f8"), ("wait", "f8")),
            *(("run_time", "f8"), ("slowdown", "f8"), ("slowdown_with_wait", "f8"), ("min_utility", "f8")),
            *(("num_gpus", "i4"), ("gpu_fraction", "f8"), ("bandwidth_sensitive", "?")),
            *(("profile", object), ("gpus", object), ("postponed", "i4"), ("rejected", object)),
            *(
                ("moves", "i4"),
                ("preemptions", "i4"),
                ("failures", "i4"),
                ("resizes", "i4"),
                ("tasks_moved", "i8"),
                ("lost", "f8"),
                ("gpu_seconds", "f8"),
            ),
            ("scores", [(name, "f8") for name in names]),
        ]
        table = np.array([_row(record, names) for record in self.records], dtype=np.dtype(fields))
        table.flags.writeable = False
        return table

    @cached_property
    def stays(self) -> NDArray[np.void]:
        """Return the rows of `jobs` that ran, with one row for each stay of a job on the same GPUs.

        Jobs that were moved or pre-empted have several; `start`, `end`, `run_time` and `gpus` are those of the stay.
        """
        ran = [number for number, record in enumerate(self.records) if record.placement]
        rows = [self.jobs[ran]]
        for at, number in enumerate(ran):
            if not self.records[number].history:
                continue
            *earlier, last = self.records[number].stays
            for stay in earlier:
                rows.append(self.jobs[number : number + 1].copy())
                _set_stay(rows[-1][0], stay)
            _set_stay(rows[0][at], last)
        return np.concatenate(rows) if len(rows) > 1 else rows[0]

    @property
    def sensitive(self) -> NDArray[np.void]:
        """Return the rows of `jobs` for bandwidth-sensitive jobs that ran."""
        rows: NDArray[np.void] = self.jobs[self.jobs["bandwidth_sensitive"] & ~np.isnan(self.jobs["start"])]
        return rows

    def summary(self) -> dict[str, float]:
        """Return key figures of the run by name. Times are in seconds, bandwidths in GB/s; NaN means no data.

        A job that was pre-empted and then rejected ran, but did not finish.

        - makespan: first submission to last end, NaN if no job ran. throughput: jobs finished per hour of the makespan.
          utilization: GPU seconds that jobs held, shared GPUs by their shares, divided by all of the makespan.
          nvlink_use: see the method of this name.
        - wait_p50, p90, p99, max: quantiles of the waits. Each is the wait of a job: the longer one between two
          neighbours.
        - mean_wait, mean_utility: means over the jobs that ran. mean_turnaround (end - submit), mean_slowdown,
          mean_slowdown_with_wait: over those that finished.
        - slo_violations: number of jobs that started below their min_utility; NaN if the policy has no utility score.
          rejected: number of rejected jobs.
        - sensitive_run_time, of jobs that finished, and sensitive_effective_bandwidth: min, p25, p50, p75, max over
          bandwidth-sensitive jobs.
        - goodput: of the GPU seconds that jobs held, the share without lost work and restarts. failures, tasks_moved:
          sums over the jobs. repaired_in_rack: see the method of this name.
        """
        ran = self.jobs[~np.isnan(self.jobs["start"])]
        finished = ran[ran["rejected"] == ""]
        begin = float(self.jobs["submit"].min()) if len(self.jobs) else 0.0
        makespan = float(ran["end"].max()) - begin if len(ran) else math.nan
        busy = float(ran["gpu_seconds"].sum())
        wasted = float(np.sum([record.wasted_gpu_seconds for record in self.records if record.placement]))
        return {
            "makespan": makespan,
            "throughput": len(finished) / makespan * 3600 if makespan else math.nan,
            "utilization": busy / (makespan * self.topology.num_gpus) if makespan else math.nan,
            "nvlink_use": self.nvlink_use(),
            "mean_wait": _mean(ran["wait"]),
            **_quantiles("wait", ran["wait"], WAIT_QUANTILES, "higher"),
            "mean_turnaround": _mean(finished["end"] - finished["submit"]),
            "mean_slowdown": _mean(finished["slowdown"]),
            "mean_slowdown_with_wait": _mean(finished["slowdown_with_wait"]),
            "mean_utility": _mean(score_of(ran, "utility")),
            "slo_violations": _slo_violations(ran),
            "rejected": float(len(self.jobs) - len(finished)),
            **_quantiles("sensitive_run_time", finished["run_time"][finished["bandwidth_sensitive"]]),
            **_quantiles("sensitive_effective_bandwidth", score_of(self.sensitive, "effective_bandwidth")),
            "goodput": 1.0 - wasted / busy if busy else math.nan,
            "failures": float(ran["failures"].sum()),
            "tasks_moved": float(ran["tasks_moved"].sum()),
            "repaired_in_rack": self.repaired_in_rack(),
        }

    def repaired_in_rack(self) -> float:
        """Return the share of failures after which every task that moved stayed in its rack, of those that moved any.

        NaN if there are none, or the topology has no level "rack".
        """
        if _RACK not in (level.name for level in self.topology.levels):
            return math.nan
        rack_of = domains(self.topology, _RACK).tolist()
        stayed = [
            all(rack_of[old] == rack_of[new] for old, new in pairs)
            for record in self.records
            if record.history
            for end, pairs in _changes(record)
            if pairs and any(failure.time == end for failure in record.history.failures)
        ]
        return _mean(np.array(stayed, dtype=float))

    def nvlink_use(self) -> float:
        """Return the fraction of communication that uses NVLink; NaN if no tasks communicated.

        NVLink may be direct or switched, and includes NVLink-C2C. Communication is measured in pairs of communicating
        tasks, each weighted by the run time of its job.
        """
        total = over_nvlink = 0.0
        for record in self.records:
            for placement, seconds in _held(record):
                gpus = placement.gpus
                for a, b, _ in record.submitted.on(placement).job.edges:
                    link = self.topology.link(gpus[a], gpus[b])
                    total += seconds
                    over_nvlink += seconds * (link.kind in _OVER_NVLINK)
        return over_nvlink / total if total else math.nan

    def compare(self, others: Iterable[Result]) -> list[dict[str, Any]]:
        """Return one row for this result and one per result of `others`: policy name, summary, and two speed-ups.

        Speed-ups are relative to this result; above 1 is faster. speedup compares throughput. sensitive_p75_speedup
        compares the 75th percentile of bandwidth-sensitive jobs' run times. They are NaN if undefined.
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

    def rejections(self) -> dict[str, int]:
        """Return the number of rejected jobs by reason, the most frequent reason first."""
        reasons = Counter(record.rejected for record in self.records if record.rejected)
        return dict(reasons.most_common())

    def to_pandas(self) -> pd.DataFrame:
        """Convert `jobs` to a pandas DataFrame in which each score is a column. Needs pandas."""
        require_package("pandas", "to_pandas")
        import pandas as pd  # pyright: ignore[reportMissingTypeStubs]

        plain = {name: self.jobs[name] for name in self.jobs.dtype.names or () if name != "scores"}
        scores = self.jobs["scores"]
        return pd.DataFrame({**plain, **{name: scores[name] for name in scores.dtype.names or ()}})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole result to a file: Parquet for a path that ends in .parquet (needs pyarrow), CSV for .csv.

        The file has a row per job with the columns of `jobs`, the topology, the job graphs, the seed and the options;
        nothing is lost. In CSV, a first line that begins with `#` has everything but the rows: `pandas.read_csv(path,
        skiprows=1)` reads the rest. The file is replaced as a whole, or not at all.

        Raises:
            ValueError: For a path with another ending.
        """
        _save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Result:
        """Read a result that `save` wrote. ValueError names the row, or the fault of the file."""
        return _load(path)

    def _repr_html_(self) -> str:
        """Return a table of the key figures, which notebooks show."""
        return _as_html(self)

    def gantt(self, path: str | Path) -> None:
        """Write a Gantt chart of jobs on GPUs, or of busy GPUs if bars are too many, to `path` (.png, .svg, .pdf).

        Needs matplotlib.
        """
        _gantt(self, path)


def refusal(result: Result) -> str:
    """Return why the policy cannot honour the jobs' requirements, if it rejected all for such a reason; else ""."""
    reasons = result.rejections()
    first = next(iter(reasons), "")
    return first if sum(reasons.values()) == len(result.records) and NOT_HONOURED in first else ""


def none_ran(results: Sequence[Result]) -> str:
    """Return the number of rejected jobs and the first reason, if no job ran in any of the results; else ""."""
    records = [record for result in results for record in result.records]
    if not records or any(record.placement for record in records):
        return ""
    num_jobs = len(results[0].records)
    which = f"all {num_jobs} jobs were rejected; the first" if num_jobs > 1 else "the only one was rejected"
    return f"no job ran: {which}: {records[0].rejected}"


def score_of(rows: NDArray[np.void], name: str) -> NDArray[np.float64]:
    """Return the score `name` of each given row of `Result.jobs`; NaN if the job did not run or lacks this score."""
    scores = rows["scores"]
    return scores[name] if name in (scores.dtype.names or ()) else np.full(len(rows), np.nan)


def _row(record: JobRecord, score_names: Iterable[str]) -> tuple[object, ...]:
    """Return the values of one row of `Result.jobs`, in the order of its columns."""
    submitted, placement, history = record.submitted, record.placement, record.history
    job, base = submitted.job, submitted.base_time
    scores: Mapping[str, float] = placement.scores if placement else {}
    return (
        *(submitted.job_id, submitted.submit_time, record.start, record.end),
        record.start - submitted.submit_time + (history.waited if history else 0.0),
        record.run_time,
        _slowdown(record.run_time, base),
        _slowdown(record.end - submitted.submit_time, base),
        *(job.min_utility, job.num_tasks, job.gpu_share, job.bandwidth_sensitive, job.profile),
        placement.gpus if placement else (),
        *(record.postponed, record.rejected),
        *_interruptions(record),
        record.gpu_seconds,
        tuple(scores.get(name, math.nan) for name in score_names),
    )


def _interruptions(record: JobRecord) -> tuple[int, int, int, int, int, float]:
    """Return the columns of `Result.jobs` about a job that did not run in one go."""
    history = record.history
    if history is None:
        return 0, 0, 0, 0, 0, 0.0
    moved = sum(len(pairs) for _, pairs in _changes(record))
    sizes = [len(stay.placement.gpus) for stay in record.stays]
    resizes = sum(a != b for a, b in pairwise(sizes))
    return (
        history.num_moves,
        history.num_preemptions,
        len(history.failures),
        resizes,
        moved,
        history.lost,
    )


def _changes(record: JobRecord) -> Iterator[tuple[float, list[tuple[int, int]]]]:
    """Yield when each stay but the last ended, and the GPUs before and after of the tasks that then changed theirs."""
    for before, after in pairwise(record.stays):
        yield before.end, changes(before.placement, after.placement)


def _set_stay(row: np.void, stay: Stay) -> None:
    """Write a stay into a row of `Result.jobs`."""
    row["start"], row["end"], row["run_time"] = stay.start, stay.end, stay.end - stay.start
    row["gpus"], row["num_gpus"] = stay.placement.gpus, len(stay.placement.gpus)
    row["gpu_seconds"] = stay.gpu_seconds * row["gpu_fraction"]


def _held(record: JobRecord) -> Iterator[tuple[Placement, float]]:
    """Yield the placements of a job, and for how many seconds it held each."""
    if record.history:
        yield from ((stay.placement, stay.end - stay.start) for stay in record.stays)
    elif record.placement:
        yield record.placement, record.run_time


def _slowdown(seconds: float, base_time: float) -> float:
    """Return the time in seconds over the run time at full speed; 1 if the latter is 0, NaN if the job never ran."""
    if math.isnan(seconds):
        return math.nan
    return seconds / base_time if base_time else 1.0


def _slo_violations(ran: NDArray[np.void]) -> float:
    utility = score_of(ran, "utility")
    if np.isnan(utility).all():
        return math.nan
    return float((utility < ran["min_utility"] - _ROUNDING).sum())


def _ratio(value: float, base: float) -> float:
    return value / base if base else math.nan


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _quantiles(
    prefix: str,
    values: NDArray[np.float64],
    quantiles: Mapping[str, float] = QUANTILES,
    method: Literal["linear", "higher"] = "linear",
) -> dict[str, float]:
    return {
        f"{prefix}_{name}": float(np.quantile(values, q, method=method)) if len(values) else float("nan")
        for name, q in quantiles.items()
    }
