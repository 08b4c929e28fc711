"""The cells of a sweep as a comparison: for each scenario and policy, each figure's mean over the seeds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from topoplace.experiments.report.measures import load_remark
from topoplace.experiments.simulate.samples import Sample
from topoplace.experiments.sweeps.plan import Outcome, Plan, Scenario


@dataclass(frozen=True)
class ComparisonRow:
    """A policy in a scenario.

    samples: the values of each figure by its name, one for each seed that has it; figures without any are missing.
    refused: why the policy cannot run there with some seed, "" if it can with all.
    equal_seeds: number of seeds that all gave the same figures, which then have one value each; else 0.
    """

    scenario: Scenario
    policy: str
    samples: Mapping[str, Sample]
    refused: str
    equal_seeds: int = 0


def rows_of(plan: Plan, outcomes: Sequence[Outcome]) -> list[ComparisonRow]:
    """Return a row for each scenario and policy, in the order of the plan."""
    cells: dict[tuple[Scenario, str], list[Outcome]] = {}
    for cell, outcome in zip(plan.cells, outcomes, strict=True):
        cells.setdefault((cell.scenario, cell.policy), []).append(outcome)
    return [_row(scenario, policy, found) for (scenario, policy), found in cells.items()]


def notes_of(rows: Sequence[ComparisonRow]) -> list[str]:
    """Return a sentence for each scenario in which seeds change nothing, or whose load is not reached."""
    scenarios: dict[Scenario, list[ComparisonRow]] = {}
    for row in rows:
        scenarios.setdefault(row.scenario, []).append(row)
    return [
        f"{scenario}: {note}" for scenario, group in scenarios.items() for note in _notes(scenario, group)
    ]


def _notes(scenario: Scenario, rows: Sequence[ComparisonRow]) -> Iterator[str]:
    if equal := [row.policy for row in rows if row.equal_seeds]:
        yield f"the seeds change nothing under {', '.join(equal)}, so there is no interval"
    used = {row.policy: row.samples["utilization"].mean for row in rows if "utilization" in row.samples}
    yield from load_remark(scenario.load, used)


def _row(scenario: Scenario, policy: str, outcomes: Sequence[Outcome]) -> ComparisonRow:
    refused = next((one for one in outcomes if isinstance(one, str)), "")
    figures = [_with_data(one) for one in outcomes if not isinstance(one, str)]
    equal = len(figures) if len(figures) > 1 and all(one == figures[0] for one in figures) else 0
    return ComparisonRow(scenario, policy, _samples(figures[:1] if equal else figures), refused, equal)


def _with_data(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in figures.items() if not math.isnan(value)}


def _samples(figures: Sequence[Mapping[str, float]]) -> dict[str, Sample]:
    values: dict[str, list[float]] = {}
    for one in figures:
        for name, value in one.items():
            values.setdefault(name, []).append(value)
    return {name: Sample.of(found) for name, found in values.items()}
