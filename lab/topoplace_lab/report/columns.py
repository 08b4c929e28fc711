"""The columns of comparisons: key figures of `Result.summary` with label and unit, and which ones each table shows."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from topoplace.drawing.tables import duration, number
from topoplace.objectives.effective_bandwidth import OUTSIDE_ITS_RANGE, is_outside_range
from topoplace_lab.simulate.metrics import QUANTILES, WAIT_QUANTILES
from topoplace_lab.simulate.samples import UNBOUNDED
from topoplace_lab.simulate.workloads.workload import is_missed

if TYPE_CHECKING:
    from topoplace_lab.simulate.metrics import Result

_NONE_RAN: Final = "no job ran"
_NO_UTILITY: Final = "the policy has no score of utility"
_NONE_SENSITIVE: Final = "no bandwidth-sensitive job ran, or its placement has no such score"


@dataclass(frozen=True)
class Measure:
    """A key figure, as readers see it.

    factor: converts a value to the unit shown, such as 100 for %. missing: why a result may not have the figure. short:
    a label for the head of a column. about: the definition, in a sentence without a full stop. is_better_high: False if
    less is better. bounds: the least and the largest possible value.
    """

    label: str
    unit: str = ""
    factor: float = 1.0
    missing: str = _NONE_RAN
    short: str = ""
    about: str = ""
    is_better_high: bool = False
    bounds: tuple[float, float] = (0.0, math.inf)

    @property
    def heading(self) -> str:
        """Return the head of a column of numbers: a short label, and the unit."""
        return f"{self.short or self.label} {self.unit}".rstrip()

    @property
    def head(self) -> str:
        """Return the head of a column of texts: times state their units themselves."""
        return (self.short or self.label) if self.is_time else self.heading

    @property
    def is_time(self) -> bool:
        """Return True for a measure in seconds."""
        return self.unit == "s"

    def number(self, value: float) -> str:
        """Return a value of `Result.summary` in `unit` with three significant digits; "-" for NaN."""
        return number(value * self.factor)

    def text(self, value: float) -> str:
        """Return a value of `Result.summary` for readers, with times such as 7 h 37 min; "-" for NaN."""
        return duration(value) if self.is_time else self.number(value)


def _of_jobs(quantile: str) -> str:
    """Return which of the jobs a quantile is about, such as p90."""
    known = {"min": "the least", "p50": "the median", "max": "the most"}
    return known.get(quantile) or f"not exceeded by {quantile.removeprefix('p')} % of them"


MEASURES: Final[Mapping[str, Measure]] = {
    "makespan": Measure("makespan", "s", about="time from the first submission to the last end"),
    "throughput": Measure("throughput", "jobs/h", about="jobs that end in an hour", is_better_high=True),
    "utilization": Measure(
        *("utilization", "%", 100.0),
        about="GPU time in use, of all GPU time",
        is_better_high=True,
        bounds=(0.0, 1.0),
    ),
    "nvlink_use": Measure(
        *("NVLink use", "%", 100.0, "no tasks communicated"),
        about="communication that goes over NVLink, of all communication",
        is_better_high=True,
        bounds=(0.0, 1.0),
    ),
    "mean_wait": Measure("mean wait", "s", about="mean time from submission to start"),
    **{
        f"wait_{name}": Measure(f"wait {name}", "s", about=f"time from submission to start, {_of_jobs(name)}")
        for name in WAIT_QUANTILES
    },
    "mean_turnaround": Measure(
        "mean turnaround", "s", short="turnaround", about="mean time from submission to end"
    ),
    "mean_slowdown": Measure("slowdown", about="mean run time over that of the job alone"),
    "mean_slowdown_with_wait": Measure(
        "slowdown incl. wait", about="mean of wait and run time over the run time of the job alone"
    ),
    "mean_utility": Measure(
        "utility",
        missing=_NO_UTILITY,
        about="mean score of utility, from 0 to 1",
        is_better_high=True,
        bounds=(0.0, 1.0),
    ),
    "slo_violations": Measure(
        "SLO violations", missing=_NO_UTILITY, about="jobs placed with less utility than they ask for"
    ),
    "rejected": Measure("rejected", about="jobs that the policy refuses, or that can never run"),
    **{
        f"sensitive_run_time_{name}": Measure(
            f"sensitive run time {name}",
            "s",
            missing=_NONE_SENSITIVE,
            short=f"sensitive {name}",
            about=f"run time of bandwidth-sensitive jobs, {_of_jobs(name)}",
        )
        for name in QUANTILES
    },
    **{
        f"sensitive_effective_bandwidth_{name}": Measure(
            f"sensitive effective bandwidth {name}",
            "GB/s",
            missing=_NONE_SENSITIVE,
            short=f"EffBW {name}",
            about=f"effective bandwidth of bandwidth-sensitive jobs, {_of_jobs(name)}",
            is_better_high=True,
            bounds=UNBOUNDED,  # where the formula is extrapolated, it may be below 0
        )
        for name in QUANTILES
    },
    "goodput": Measure(
        *("goodput", "%", 100.0),
        about="GPU time that jobs held, without lost work and restarts, of all of it",
        is_better_high=True,
        bounds=(0.0, 1.0),
    ),
    "failures": Measure("failures", about="failures that stopped a job"),
    "tasks_moved": Measure("tasks moved", about="tasks that changed GPU"),
    "repaired_in_rack": Measure(
        *("repaired in the rack", "%", 100.0, "no task moved after a failure, or no racks are known"),
        short="in the rack",
        about="failures after which all tasks that moved stayed in their rack",
        is_better_high=True,
        bounds=(0.0, 1.0),
    ),
    "speedup": Measure("throughput speed-up"),
    "sensitive_p75_speedup": Measure("p75 speed-up", missing=_NONE_SENSITIVE),
}
"""The figures by their keys in `Result.summary` and `Result.compare`."""

OF_FAILURES: Final = ("goodput", "failures", "tasks_moved", "repaired_in_rack")
"""The figures that say nothing unless parts failed."""

# The columns of comparisons: keys of `Result.summary`, or of a row of `Result.compare`.
OF_COMMAND: Final = (
    *("mean_turnaround", "makespan", "utilization", "mean_wait", "mean_slowdown"),
    *("sensitive_run_time_p75", "speedup"),
)
"""Columns of `topoplace simulate` with several policies."""
OF_LOG: Final = (
    *("mean_turnaround", "makespan", "utilization", "mean_wait", "mean_slowdown"),
    "mean_slowdown_with_wait",
)
"""The same for job logs, which do not contain how jobs communicate."""
OF_SERVICE: Final = (
    *("mean_turnaround", "makespan", "utilization", "nvlink_use", "mean_wait", "mean_slowdown"),
    *("mean_slowdown_with_wait", "mean_utility", "slo_violations"),
)
"""The same with a performance profile, which contains how jobs slow each other down (SC'17)."""
OF_MAPA: Final = (
    *("mean_turnaround", "makespan", "utilization", "mean_wait", "sensitive_run_time_p75"),
    *("sensitive_effective_bandwidth_p50", "speedup", "sensitive_p75_speedup"),
)
"""The same with MAPA's equation of run times."""
OF_SWEEP: Final = (
    *("mean_turnaround", "makespan", "utilization", "mean_wait", "wait_p99"),
    *("mean_slowdown", "mean_slowdown_with_wait"),
    *("sensitive_run_time_p75", "sensitive_effective_bandwidth_p50", "rejected"),
)
"""Columns of sweeps."""
OF_PAGE: Final = (
    *("mean_turnaround", "makespan", "throughput", "utilization", "nvlink_use", "mean_wait", "wait_p90"),
    *("mean_slowdown", "mean_slowdown_with_wait", "mean_utility", "slo_violations", "rejected"),
    *("sensitive_run_time_p75", "sensitive_effective_bandwidth_p50"),
)
"""Columns of the report's page."""


def heads(keys: Iterable[str], *, has_units: bool) -> list[str]:
    """Return the heads of columns for the figures `keys`: of texts if `has_units`, else of numbers."""
    return [MEASURES[key].head if has_units else MEASURES[key].heading for key in keys]


def remarks(keys: Iterable[str], results: Sequence[Result]) -> list[str]:
    """Return what readers must know about the figures `keys` of `results`; [] if there is nothing."""
    if not any("effective_bandwidth" in key for key in keys):
        return []
    counts: set[str] = set()
    for result in results:
        ran = [one.placement for one in result.records if one.placement and one.job.bandwidth_sensitive]
        if outside := sum(is_outside_range(placement) for placement in ran):
            counts.add(f"{outside} of the {len(ran)}" if outside < len(ran) else f"all {len(ran)}")
    if not counts:
        return []
    which = counts.pop() if len(counts) == 1 else "some"
    return [
        f"effective bandwidth (EffBW) is extrapolated for {which} bandwidth-sensitive jobs: {OUTSIDE_ITS_RANGE}"
    ]


def shown(summary: Mapping[str, float]) -> list[str]:
    """Return the keys of `Result.summary` that say something about this result, in the order of `MEASURES`."""
    return [key for key in MEASURES if key in summary and (summary["failures"] or key not in OF_FAILURES)]


def as_html(result: Result) -> str:
    """Return a table of a result's key figures, without missing ones, as HTML for a notebook."""
    summary = result.summary()
    rows = [
        f'<tr><td style="text-align:left">{MEASURES[key].label}</td>'
        f"<td>{_with_unit(MEASURES[key], summary[key])}</td></tr>"
        for key in shown(summary)
        if not math.isnan(summary[key])
    ]
    title = f"{result.policy}, {len(result.records):,} jobs on {result.topology.name}"
    return f"<table><caption>{html.escape(title)}</caption>{''.join(rows)}</table>"


def _with_unit(measure: Measure, value: float) -> str:
    return measure.text(value) if measure.is_time else f"{measure.text(value)} {measure.unit}".rstrip()


def load_remark(load: float | None, utilization: Mapping[str, float]) -> list[str]:
    """Return a line if jobs that ask for a share `load` of all GPU time use far less of it, by policy; else [].

    utilization: the used share, by policy. load: None if the jobs' own load holds.
    """
    used = {} if load is None else {name: one for name, one in utilization.items() if is_missed(load, one)}
    found = ", ".join(f"{number(100 * one)} % under {name}" for name, one in used.items())
    return [f"load {load:g} is not reached: jobs used of all GPU time {found}"] if used else []


def reasons_for_dashes(keys: Iterable[str], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each reason why some of the figures `keys` are NaN in some row, with their labels."""
    labels: dict[str, list[str]] = {}
    for key in keys:
        if key in MEASURES and any(math.isnan(row[key]) for row in rows):
            labels.setdefault(MEASURES[key].missing, []).append(MEASURES[key].label)
    return [f"- in {', '.join(names)}: {reason}" for reason, names in labels.items()]
