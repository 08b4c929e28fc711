"""How policies did in the suite: each measure relative to a reference policy, over all that the policy runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from topoplace.experiments.simulate.samples import Sample
from topoplace.experiments.sweeps import Outcome, Plan, Scenario

REFERENCE: Final = "random-fit"
"""The policy that all others are compared with. It runs every workload and looks at no links."""
MEASURES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "mean_turnaround": "turnaround",
        "makespan": "makespan",
        "sensitive_slowdown": "slowdown of sensitive jobs",
        "sensitive_effective_bandwidth": "bandwidth of sensitive jobs",
    }
)
"""The figures of a cell that are compared, with their labels. Lower is better, but for the bandwidth."""


@dataclass(frozen=True)
class Score:
    """How a policy did.

    ratios: for each measure, one value a seed: the geometric mean over scenarios of the policy's value divided by the
    reference's. scenarios: number of those that the policy runs. refused: why it refuses others, by scenario.
    """

    policy: str
    ratios: Mapping[str, Sample]
    scenarios: int
    refused: Mapping[Scenario, str]


_Cells = dict[tuple[Scenario, int], Outcome]


def scores_of(plan: Plan, outcomes: Sequence[Outcome]) -> list[Score]:
    """Return the score of each policy of a plan of the suite, best turnaround first.

    A scenario counts if neither the policy nor the reference refuses it with any seed. ValueError if the plan lacks
    the reference.
    """
    cells: dict[str, _Cells] = {}
    for cell, outcome in zip(plan.cells, outcomes, strict=True):
        cells.setdefault(cell.policy, {})[cell.scenario, cell.seed] = outcome
    if REFERENCE not in cells:
        raise ValueError(f"the plan has no cells of {REFERENCE}, the reference")
    scores = [_score(policy, found, cells[REFERENCE]) for policy, found in cells.items()]
    return sorted(scores, key=lambda score: (_turnaround(score), score.policy))


def _turnaround(score: Score) -> float:
    sample = score.ratios.get("mean_turnaround")
    return sample.mean if sample else math.inf


def _score(policy: str, cells: _Cells, reference: _Cells) -> Score:
    refused = {scenario: outcome for (scenario, _), outcome in cells.items() if isinstance(outcome, str)}
    left = {scenario for (scenario, _), outcome in reference.items() if isinstance(outcome, str)}.union(
        refused
    )
    ran = list(dict.fromkeys(scenario for scenario, _ in cells if scenario not in left))
    seeds = sorted({seed for _, seed in cells})
    ratios: dict[str, Sample] = {}
    for measure in MEASURES:
        by_seed = [_geometric_mean(_ratios(measure, ran, seed, cells, reference)) for seed in seeds]
        if not any(map(math.isnan, by_seed)):
            ratios[measure] = Sample.of(by_seed)
    return Score(policy, ratios, len(ran), refused)


def _ratios(
    measure: str, scenarios: Sequence[Scenario], seed: int, cells: _Cells, reference: _Cells
) -> list[float]:
    """Return the ratios of all scenarios that have the measure."""
    found: list[float] = []
    for scenario in scenarios:
        value, base = cells[scenario, seed], reference[scenario, seed]
        assert not isinstance(value, str)
        assert not isinstance(base, str)
        own, of_reference = value.get(measure, math.nan), base.get(measure, math.nan)
        if own > 0 and of_reference > 0:  # NaN is neither
            found.append(own / of_reference)
    return found


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values)) if values else math.nan
