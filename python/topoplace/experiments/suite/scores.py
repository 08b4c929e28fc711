"""How policies did in the suite: each measure over all scenarios, none left out."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
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

    cells: for each measure, one value for each scenario and seed, in the same order for all policies, NaN where no job
    counts: of ratios the logarithm of the policy's value divided by the reference's. A policy that fails in a cell has
    none. failed: why, by scenario.
    """

    policy: str
    cells: Mapping[str, tuple[float, ...]]
    failed: Mapping[Scenario, str]

    @property
    def runs_all(self) -> bool:
        """Return True if the policy refuses no job."""
        return bool(self.cells) and not any(self.cells["refused"])

    def sample(self, name: str) -> Sample | None:
        """Return the values of a measure in the cells that have it; None without such."""
        known = [value for value in self.cells.get(name, ()) if not math.isnan(value)]
        return Sample.of(known) if known else None

    def interval(self, name: str) -> tuple[float, float, float] | None:
        """Return the mean of a measure, of ratios the geometric one, and the 95 % interval over the cells."""
        sample = self.sample(name)
        if sample is None:
            return None
        found = sample.mean, sample.low, sample.high
        if not MEASURES[name].is_ratio:
            return found
        mean, low, high = map(math.exp, found)
        return mean, low, high


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
    sample = score.sample("turnaround")
    return sample.mean if sample else math.inf


def _score(policy: str, cells: _Cells, reference: _Cells) -> Score:
    failed = {scenario: outcome for (scenario, _), outcome in cells.items() if isinstance(outcome, str)}
    if failed:
        return Score(policy, {}, failed)
    values = {
        name: tuple([_value(name, outcome, reference[cell]) for cell, outcome in cells.items()])
        for name in MEASURES
    }
    return Score(policy, values, {})


def _value(name: str, outcome: Outcome, reference: Outcome) -> float:
    own, base = (
        math.nan if isinstance(one, str) else one.get(name, math.nan) for one in (outcome, reference)
    )
    if not MEASURES[name].is_ratio:
        return own
    return math.log(own / base) if own > 0 and base > 0 else math.nan


# ---- conclusions -----------------------------------------------------------------------------------------------


class HeldOut(NamedTuple):
    """What the held-out seed says of the others."""

    best: str
    """The policy with the shortest turnaround there."""
    agreement: float
    """Spearman's rank correlation of the turnarounds there and with the other seeds."""


def best_by(scores: Sequence[Score], name: str) -> list[str]:
    """Return the best policy by a measure, of those that run all jobs, and those that are as good.

    As good is one whose difference from the best, cell by cell, has a 95 % interval with 0.
    """
    sign = 1 if MEASURES[name].is_better_low else -1
    known = [(score, sample) for score in scores if score.runs_all and (sample := score.sample(name))]
    if not known:
        return []
    best, _ = min(known, key=lambda one: sign * one[1].mean)
    others = [score for score, _ in known if score is not best]
    return [best.policy, *(one.policy for one in others if _behind(one, best, name).low <= 0)]


def _behind(one: Score, best: Score, name: str) -> Sample:
    """Return by how much a policy is worse than the best, cell by cell."""
    sign = 1 if MEASURES[name].is_better_low else -1
    pairs = zip(one.cells[name], best.cells[name], strict=True)
    return Sample.of(sign * (a - b) for a, b in pairs if not math.isnan(a - b))


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
