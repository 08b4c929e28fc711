"""Compare simulations: each figure's mean over the seeds, for each scenario and policy, and the conclusions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from topoplace import DEFAULT_POLICY
from topoplace_lab.report.columns import MEASURES, load_remark
from topoplace_lab.simulate.samples import UNBOUNDED, Sample

_ROUNDING: Final = 1e-6
"""Turnarounds that differ by no more than this share are equal, because sums in another order differ slightly."""


Outcome = Mapping[str, float] | str
"""The result of a cell: figures by name, NaN for no data; or the reason why its policy cannot run there."""


class Interval(Protocol):
    """A 95 % interval of a ratio; `str` says what was drawn, such as blocks of jobs."""

    @property
    def low(self) -> float:
        """Return the lower end."""
        ...

    @property
    def high(self) -> float:
        """Return the upper end."""
        ...


class Scenario(NamedTuple):
    """A setting in which policies are compared: topology, workload, and load (None if unchanged)."""

    topology: str
    workload: str
    load: float | None

    def __str__(self) -> str:
        load = "" if self.load is None else f", load {self.load:g}"
        return f"{self.workload} on {self.topology}{load}"


@dataclass(frozen=True)
class ComparisonRow:
    """A policy in a scenario.

    samples: the values of each figure by its name, one for each seed that has it; figures without any are missing.
    refused: why the policy cannot run there with some seed, "" if it can with all.
    equal_seeds: number of seeds that all gave the same figures, which then have one value each; else 0.
    turnarounds: the mean turnaround with each seed; NaN if no job finished.
    """

    scenario: Scenario
    policy: str
    samples: Mapping[str, Sample]
    refused: str
    equal_seeds: int = 0
    turnarounds: tuple[float, ...] = ()

    def mean(self, figure: str) -> float:
        """Return the mean of a figure over the seeds; NaN if none has it."""
        return self.samples[figure].mean if figure in self.samples else math.nan

    def num_seeds_with(self, figure: str) -> int:
        """Return the number of values of a figure."""
        return len(self.samples[figure].values) if figure in self.samples else 0


def by_scenario(rows: Sequence[ComparisonRow]) -> dict[Scenario, list[ComparisonRow]]:
    """Return the rows of each scenario."""
    scenarios: dict[Scenario, list[ComparisonRow]] = {}
    for row in rows:
        scenarios.setdefault(row.scenario, []).append(row)
    return scenarios


def notes_of(rows: Sequence[ComparisonRow]) -> list[str]:
    """Return a sentence for each scenario where seeds change nothing, or whose load is not reached."""
    return [
        f"{scenario}: {note}"
        for scenario, group in by_scenario(rows).items()
        for note in _notes(scenario, group)
    ]


def conclusions_of(rows: Sequence[ComparisonRow], *, have_one_queue: bool) -> list[str]:
    """Return the conclusion of each scenario that has one."""
    found = (
        (scenario, conclusion(group, have_one_queue=have_one_queue))
        for scenario, group in by_scenario(rows).items()
    )
    return [f"{scenario}: {sentence}" for scenario, sentence in found if sentence]


def best_of(rows: Sequence[ComparisonRow]) -> set[int]:
    """Return the indices of the best of a scenario's policies; none if there is only one, or if no job finished.

    The best policies reject the fewest jobs, and among these have the least mean turnaround.
    """
    if len(rows) < 2:
        return set()
    rejected, turnaround = ([row.mean(name) for row in rows] for name in ("rejected", "mean_turnaround"))
    left = [i for i in range(len(rows)) if not math.isnan(turnaround[i])]
    left = [i for i in left if rejected[i] == min(rejected)]
    return {i for i in left if turnaround[i] <= min(turnaround[j] for j in left) * (1 + _ROUNDING)}


def conclusion(
    rows: Sequence[ComparisonRow],
    *,
    have_one_queue: bool = False,
    with_one_queue: Sequence[ComparisonRow] = (),
    over_blocks: Interval | None = None,
) -> str:
    """Return a sentence on how much sooner jobs finish under the best policies of a scenario than under the first.

    Turnarounds are compared seed by seed. The sentence is "" if there is nothing to compare.

    have_one_queue: True if all policies have the same queue, so that only placements differ. with_one_queue: rows of
    the first and the best policies under one queue. They separate the effect of placement from that of a policy's own
    queue; differences that chance may explain count for neither. over_blocks: the interval of the ratio of turnarounds
    for a single seed, see `trace_blocks`; None without one.
    """
    best = [rows[i] for i in sorted(best_of(rows))]
    if not best or not all(map(_is_comparable, (*rows[:1], *best, *with_one_queue))):
        return ""
    if rows[0] in best:
        return f"no policy{_that_runs_as_many(rows)} finishes jobs sooner than {rows[0].policy}"
    best.sort(key=lambda row: row.policy != DEFAULT_POLICY)
    names = best[0].policy if len(best) == 1 else f"{best[0].policy} and {len(best) - 1} more"
    most, least = rows[0].mean("rejected"), best[0].mean("rejected")
    if most > least:
        return f"{names}: {least:g} jobs rejected, {most:g} under {rows[0].policy}; turnarounds are of other jobs"
    ratio = _turnaround_ratio(best[0].policy, rows)
    if ratio is None:
        return ""
    found = f"{names}: jobs finish {_percent(ratio)} sooner than under {rows[0].policy}"
    interval, drawn = (
        (ratio, f"{len(ratio.values)} seeds") if len(ratio.values) > 1 else (over_blocks, over_blocks)
    )
    if interval is not None:
        low, high = 100 * (1 - interval.high), 100 * (1 - interval.low)
        is_of_chance = low <= 0 <= high
        chance = ": chance may explain it" * is_of_chance
        found += f" (95 % interval {low:.1f} to {high:.1f} %, {drawn}{chance})"
        if is_of_chance:
            return found
    if have_one_queue:
        return f"{found}, all of it by placement, as all policies have one queue"
    if not with_one_queue:
        return found
    placement = _turnaround_ratio(best[0].policy, with_one_queue)
    if placement is None:
        return found
    queue = 1 - ratio.mean / placement.mean
    return f"{found}: {_percent(placement)} by placement, and then {100 * queue:.1f} % by its own queue"


def _is_comparable(row: ComparisonRow) -> bool:
    return (
        not row.refused
        and "mean_turnaround" in row.samples
        and min(row.samples["mean_turnaround"].values) > 0
    )


def _that_runs_as_many(rows: Sequence[ComparisonRow]) -> str:
    """Return that only some policies are meant, if one has shorter turnarounds than the first, of fewer jobs."""
    shortest = min(one for row in rows if not math.isnan(one := row.mean("mean_turnaround")))
    return " that runs as many" if shortest < rows[0].mean("mean_turnaround") * (1 - _ROUNDING) else ""


def _turnaround_ratio(policy: str, rows: Sequence[ComparisonRow]) -> Sample | None:
    """Return the turnaround under a policy over that under the first one, for each seed that has both."""
    own = next(row for row in rows if row.policy == policy)
    pairs = zip(own.turnarounds, rows[0].turnarounds, strict=True)
    ratios = [a / b for a, b in pairs if not math.isnan(a - b)]
    if own.equal_seeds and rows[0].equal_seeds:
        ratios = ratios[:1]
    return Sample.of(ratios, (0.0, math.inf)) if ratios else None


def _percent(ratio: Sample) -> str:
    return f"{100 * (1 - ratio.mean):.1f} %"


def _notes(scenario: Scenario, rows: Sequence[ComparisonRow]) -> Iterator[str]:
    if equal := [row.policy for row in rows if row.equal_seeds]:
        yield f"the seeds change nothing under {', '.join(equal)}, so there is no interval"
    used = {row.policy: row.samples["utilization"].mean for row in rows if "utilization" in row.samples}
    yield from load_remark(scenario.load, used)


def row_of(
    scenario: Scenario, policy: str, outcomes: Sequence[Outcome], *, num_jobs: float = math.inf
) -> ComparisonRow:
    """Return the row of a policy in a scenario.

    outcomes: one for each seed. num_jobs: the number of jobs of each, which bounds the rejected ones.
    """
    refused = next((one for one in outcomes if isinstance(one, str)), "")
    figures = [_with_data(one) for one in outcomes if not isinstance(one, str)]
    equal = len(figures) if len(figures) > 1 and all(one == figures[0] for one in figures) else 0
    turnarounds = [
        math.nan if isinstance(one, str) else one.get("mean_turnaround", math.nan) for one in outcomes
    ]
    samples = _samples(figures[:1] if equal else figures, num_jobs)
    return ComparisonRow(scenario, policy, samples, refused, equal, tuple(turnarounds))


def _with_data(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in figures.items() if not math.isnan(value)}


def _samples(figures: Sequence[Mapping[str, float]], num_jobs: float) -> dict[str, Sample]:
    values: dict[str, list[float]] = {}
    for one in figures:
        for name, value in one.items():
            values.setdefault(name, []).append(value)
    bounds = {name: measure.bounds for name, measure in MEASURES.items()}
    bounds |= dict.fromkeys(("rejected", "slo_violations"), (0.0, num_jobs))
    return {  # the suite has other figures
        name: Sample.of(found, bounds.get(name, UNBOUNDED)) for name, found in values.items()
    }
