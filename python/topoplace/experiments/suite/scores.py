"""How policies did in the suite: each measure over all scenarios, none left out."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from topoplace.experiments.simulate.samples import Sample
from topoplace.experiments.suite.cells import HELD_OUT
from topoplace.experiments.suite.measures import MEASURES
from topoplace.experiments.sweeps import Outcome, Plan, Scenario

REFERENCE: Final = "random-fit"
"""The policy that all others are compared with. It looks at no links."""


@dataclass(frozen=True)
class Score:
    """How a policy did.

    values: for each measure, one value a seed, over the scenarios that have it: of ratios the geometric mean of the
    policy's value divided by the reference's, of percentages the mean. A policy that fails in a cell has none.
    failed: why, by scenario.
    """

    policy: str
    values: Mapping[str, Sample]
    failed: Mapping[Scenario, str]

    @property
    def runs_all(self) -> bool:
        """Return True if the policy refuses no job."""
        return "refused" in self.values and self.values["refused"].mean == 0


_Cells = dict[tuple[Scenario, int], Outcome]


def scores_of(plan: Plan, outcomes: Sequence[Outcome]) -> list[Score]:
    """Return the score of each policy of a plan of the suite without the held-out seed, best turnaround first.

    Policies that refuse jobs have less to run, so they come after those that run all. ValueError if the plan lacks
    the reference.
    """
    return _scores(plan, outcomes, lambda seed: seed != HELD_OUT)


def _scores(plan: Plan, outcomes: Sequence[Outcome], counts: Callable[[int], bool]) -> list[Score]:
    cells: dict[str, _Cells] = {}
    for cell, outcome in zip(plan.cells, outcomes, strict=True):
        if counts(cell.seed):
            cells.setdefault(cell.policy, {})[cell.scenario, cell.seed] = outcome
    if REFERENCE not in cells and cells:
        raise ValueError(f"the plan has no cells of {REFERENCE}, the reference")
    scores = [_score(policy, found, cells[REFERENCE]) for policy, found in cells.items()]
    return sorted(scores, key=lambda score: (not score.runs_all, _turnaround(score), score.policy))


def _turnaround(score: Score) -> float:
    sample = score.values.get("turnaround")
    return sample.mean if sample else math.inf


def _score(policy: str, cells: _Cells, reference: _Cells) -> Score:
    failed = {scenario: outcome for (scenario, _), outcome in cells.items() if isinstance(outcome, str)}
    if failed:
        return Score(policy, {}, failed)
    seeds = dict.fromkeys(seed for _, seed in cells)
    values: dict[str, Sample] = {}
    for name in MEASURES:
        by_seed = [_over_scenarios(name, seed, cells, reference) for seed in seeds]
        if not any(map(math.isnan, by_seed)):
            values[name] = Sample.of(by_seed)
    return Score(policy, values, {})


def _over_scenarios(name: str, seed: int, cells: _Cells, reference: _Cells) -> float:
    scenarios = [scenario for scenario, at in cells if at == seed]
    own = [_value(cells[scenario, seed], name) for scenario in scenarios]
    if not MEASURES[name].is_ratio:
        return _mean(own)
    base = [_value(reference[scenario, seed], name) for scenario in scenarios]
    return math.exp(_mean(math.log(a / b) for a, b in zip(own, base, strict=True) if a > 0 and b > 0))


def _value(outcome: Outcome, name: str) -> float:
    return math.nan if isinstance(outcome, str) else outcome.get(name, math.nan)


def _mean(values: Iterable[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan


# ---- conclusions -----------------------------------------------------------------------------------------------


class HeldOut(NamedTuple):
    """What the held-out seed says of the others."""

    best: str
    """The policy with the shortest turnaround there."""
    agreement: float
    """Spearman's rank correlation of the turnarounds there and with the other seeds."""


def best_by(scores: Sequence[Score], name: str) -> list[str]:
    """Return the policies that are best by a measure, of those that run all jobs, or as good within the intervals."""
    sign = 1 if MEASURES[name].is_better_low else -1
    known = [
        (score.policy, score.values[name]) for score in scores if score.runs_all and name in score.values
    ]
    if not known:
        return []
    _, best = min(known, key=lambda one: sign * one[1].mean)
    return [
        policy for policy, sample in known if sign * (sample.minus(best).mean) <= sample.minus(best).margin
    ]


def held_out(plan: Plan, outcomes: Sequence[Outcome]) -> HeldOut | None:
    """Return what the held-out seed says; None if the plan does not have it."""
    shown = {score.policy: _turnaround(score) for score in scores_of(plan, outcomes) if score.runs_all}
    kept = {
        score.policy: _turnaround(score)
        for score in _scores(plan, outcomes, HELD_OUT.__eq__)
        if score.runs_all
    }
    both = [policy for policy in kept if policy in shown]
    if len(both) < 2:
        return None
    ranks = [_ranks([found[policy] for policy in both]) for found in (shown, kept)]
    return HeldOut(min(both, key=lambda policy: kept[policy]), _correlation(*ranks))


def _ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value; equal ones have the mean of theirs."""
    return [sum(other < value for other in values) + values.count(value) / 2 for value in values]


def _correlation(one: Sequence[float], other: Sequence[float]) -> float:
    return statistics.correlation(one, other) if len(set(one)) > 1 and len(set(other)) > 1 else math.nan
