"""The cells of a sweep as a comparison: for each scenario and policy, each figure's mean over the seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from topoplace.simulate.samples import Sample
from topoplace.sweeps.plan import Outcome, Plan, Scenario


@dataclass(frozen=True)
class Row:
    """A policy in a scenario.

    samples: the values of each figure by its name, one for each seed that has it; figures without any are missing.
    refused: why the policy cannot run there with some seed, "" if it can with all.
    """

    scenario: Scenario
    policy: str
    samples: Mapping[str, Sample]
    refused: str


def rows_of(plan: Plan, outcomes: Sequence[Outcome]) -> list[Row]:
    """Return a row for each scenario and policy, in the order of the plan."""
    cells: dict[tuple[Scenario, str], list[Outcome]] = {}
    for cell, outcome in zip(plan.cells, outcomes, strict=True):
        cells.setdefault((cell.scenario, cell.policy), []).append(outcome)
    return [
        Row(scenario, policy, _samples(found), next((one for one in found if isinstance(one, str)), ""))
        for (scenario, policy), found in cells.items()
    ]


def _samples(outcomes: Sequence[Outcome]) -> dict[str, Sample]:
    values: dict[str, list[float]] = {}
    for outcome in outcomes:
        for name, value in () if isinstance(outcome, str) else outcome.items():
            if not math.isnan(value):
                values.setdefault(name, []).append(value)
    return {name: Sample.of(found) for name, found in values.items()}
