"""Scores of policies in the suite: each measure over all scenarios."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from topoplace_lab.simulate.samples import Sample, t_quantile
from topoplace_lab.suite.cells import is_held_out
from topoplace_lab.suite.measures import MEASURES
from topoplace_lab.sweeps import Outcome, Plan, Scenario

REFERENCE: Final = "random-fit"
"""The policy with which all others are compared; it ignores links."""


_ByScenario = Mapping[Scenario, tuple[float, ...]]


class Estimate(NamedTuple):
    """The mean over fixed scenarios with equal weights, and how far the draw of their jobs may move it.

    The scenarios of the suite are fixed; only the seeds inside them are drawn. The variance is
    therefore that of a stratified sample, and its degrees of freedom are Satterthwaite's.
    """

    mean: float
    error: float
    """The standard error of the mean."""
    degrees: int

    @classmethod
    def of(cls, values: _ByScenario) -> Estimate | None:
        """Return the estimate from the values of each seed in each scenario; None if all are NaN."""
        known = [[one for one in seeds if not math.isnan(one)] for seeds in values.values()]
        samples = [Sample.of(seeds) for seeds in known if seeds]
        if not samples:
            return None
        drawn = [one for one in samples if len(one.values) > 1]
        variances = [statistics.variance(one.values) / len(one.values) for one in drawn]
        total = math.fsum(variances)
        weights = math.fsum(one**2 / (len(of.values) - 1) for one, of in zip(variances, drawn, strict=True))
        mean = math.fsum(one.mean for one in samples) / len(samples)
        return cls(mean, math.sqrt(total) / len(samples), max(1, int(total**2 / weights)) if weights else 1)

    def margin(self, chance: float) -> float:
        """Return how far the mean may be off; it is off by more with probability `chance`."""
        return self.error and t_quantile(1 - chance / 2, self.degrees) * self.error


@dataclass(frozen=True)
class Score:
    """The score of a policy.

    cells: for each measure and scenario, one value for each seed; NaN if no job counts. The value of a ratio is the
    logarithm of the policy's value over the reference's. A policy that fails in a cell has none. failed: the reasons
    for that, by scenario.
    """

    policy: str
    cells: Mapping[str, _ByScenario]
    failed: Mapping[Scenario, str]

    @property
    def runs_all(self) -> bool:
        """Return True if the policy refuses no job."""
        return bool(self.cells) and not any(map(any, self.cells["refused"].values()))

    def interval(self, name: str) -> tuple[float, float, float] | None:
        """Return a measure's mean (geometric for ratios) and 95 % interval over other seeds; None if it has none."""
        estimate = Estimate.of(self.cells.get(name, {}))
        if estimate is None:
            return None
        margin = estimate.margin(0.05)
        found = estimate.mean, estimate.mean - margin, estimate.mean + margin
        if not MEASURES[name].is_ratio:
            return found
        mean, low, high = map(math.exp, found)
        return mean, low, high


_Cells = dict[Scenario, dict[int, Outcome]]


def scores_of(plan: Plan, outcomes: Sequence[Outcome]) -> list[Score]:
    """Return the score of each policy of a suite's plan, without held-out traces, best turnaround first.

    Policies that refuse jobs have less to run, so they come after those that run all. ValueError if the plan lacks
    the reference.
    """
    return _scores(plan, outcomes, held_out=False)


def _scores(plan: Plan, outcomes: Sequence[Outcome], *, held_out: bool) -> list[Score]:
    cells: dict[str, _Cells] = {}
    for cell, outcome in zip(plan.cells, outcomes, strict=True):
        if is_held_out(cell) == held_out:
            cells.setdefault(cell.policy, {}).setdefault(cell.scenario, {})[cell.seed] = outcome
    if REFERENCE not in cells and cells:
        raise ValueError(f"the plan has no cells of {REFERENCE}, the reference")
    scores = [_score(policy, found, cells[REFERENCE]) for policy, found in cells.items()]
    return sorted(scores, key=lambda score: (not score.runs_all, _turnaround(score), score.policy))


def _turnaround(score: Score) -> float:
    estimate = Estimate.of(score.cells.get("turnaround", {}))
    return estimate.mean if estimate else math.inf


def _score(policy: str, cells: _Cells, reference: _Cells) -> Score:
    failed = {
        scenario: outcome
        for scenario, seeds in cells.items()
        for outcome in seeds.values()
        if isinstance(outcome, str)
    }
    if failed:
        return Score(policy, {}, failed)
    values = {
        name: {
            scenario: tuple(_value(name, one, reference[scenario][seed]) for seed, one in seeds.items())
            for scenario, seeds in cells.items()
        }
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
    """How well held-out traces agree with the workloads of the suite."""

    best: str
    """The policy with the shortest turnaround on the traces."""
    agreement: float
    """Spearman's rank correlation of the turnarounds on the traces and in the suite."""


def best_by(scores: Sequence[Score], name: str) -> list[str]:
    """Return the best policy by a measure, among those that run all jobs, and all that are as good.

    A policy is as good if chance may explain its difference from the best, seed by seed. With a chance of up to 5 %,
    the best policy over all possible seeds is not among them (Bonferroni over all candidates).
    """
    sign = 1 if MEASURES[name].is_better_low else -1
    known = [(one, found) for one in scores if one.runs_all and (found := Estimate.of(one.cells[name]))]
    if not known:
        return []
    best, _ = min(known, key=lambda one: sign * one[1].mean)
    others = [score for score, _ in known if score is not best]
    return [best.policy, *(one.policy for one in others if not _is_worse(one, best, name, sign, len(others)))]


def _is_worse(one: Score, best: Score, name: str, sign: int, comparisons: int) -> bool:
    """Return True if a policy is worse than the best by more than chance."""
    behind = Estimate.of(
        {
            scenario: tuple(sign * (a - b) for a, b in zip(seeds, best.cells[name][scenario], strict=True))
            for scenario, seeds in one.cells[name].items()
        }
    )
    return behind is not None and behind.mean - behind.margin(0.05 / comparisons) > 0


def held_out(plan: Plan, outcomes: Sequence[Outcome]) -> HeldOut | None:
    """Return how well held-out traces agree with the suite; None if the plan has none."""
    shown = {score.policy: _turnaround(score) for score in scores_of(plan, outcomes) if score.runs_all}
    kept = {
        score.policy: _turnaround(score) for score in _scores(plan, outcomes, held_out=True) if score.runs_all
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
