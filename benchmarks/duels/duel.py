"""A kernel of ours next to other libraries on a few cases, and who wins."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from timing.measure import Contender, Measured, Spread, alternate

OURS = "ours"


class Case(NamedTuple):
    """A question that all contenders answer."""

    contenders: Mapping[str, Contender]
    agree: bool = True
    """Whether all answers must be equal."""


class Duel(NamedTuple):
    """A kernel, what it is asked, and the libraries that are asked the same."""

    kernel: str
    what: str
    peers: Sequence[str]
    """Libraries that are installed here."""
    missing: Sequence[str]
    cases: Callable[[], Sequence[Case]]
    by_answer: bool = False
    """Whether answers are compared, and the smaller one wins; else CPU times are."""


class Outcome(NamedTuple):
    """How a duel ended."""

    kernel: str
    what: str
    peers: Sequence[str]
    missing: Sequence[str]
    num_cases: int
    ours: Spread
    """Seconds of a call, or the answer: the geometric mean over cases of each round."""
    ratio: Spread | None
    """The best other library's figure over ours, likewise; None without another library."""
    by_answer: bool = False


def fight(duel: Duel, seconds: float) -> Outcome:
    """Measure all cases, for up to `seconds` of CPU time each, and return the outcome."""
    rows = [figures(case, duel.by_answer, seconds) for case in duel.cases()]
    return outcome(duel, rows)


def figures(case: Case, by_answer: bool, seconds: float) -> dict[str, list[float]]:
    """Return each contender's times or answers in each round; AssertionError if answers have to agree and differ."""
    found = alternate(case.contenders, seconds)
    if case.agree:
        check_agreement(found)
    return {name: one.answers if by_answer else one.seconds for name, one in found.items()}


def check_agreement(found: Mapping[str, Measured]) -> None:
    """Raise AssertionError if the contenders' answers differ."""
    for round_ in zip(*(one.answers for one in found.values()), strict=True):
        if any(answer != round_[0] for answer in round_):
            raise AssertionError(f"the libraries disagree: {dict(zip(found, round_, strict=True))}")


def outcome(duel: Duel, rows: Sequence[Mapping[str, Sequence[float]]]) -> Outcome:
    """Return how a duel ended, from each case's figures by contender and round."""
    ours = Spread.of(means([row[OURS] for row in rows]))
    ratio = Spread.of(means([over_ours(row) for row in rows])) if duel.peers else None
    head = duel.kernel, duel.what, duel.peers, duel.missing
    return Outcome(*head, len(rows), ours, ratio, duel.by_answer)


def over_ours(row: Mapping[str, Sequence[float]]) -> list[float]:
    """Return the figure of the best other contender over ours in each round."""
    others = [name for name in row if name != OURS]
    best = min(others, key=lambda name: statistics.median(row[name]))
    return [theirs / ours for theirs, ours in zip(row[best], row[OURS], strict=True)]


def means(rows: Sequence[Sequence[float]]) -> list[float]:
    """Return the geometric mean over the rows of each round that all of them have."""
    return [math.exp(statistics.fmean(map(math.log, round_))) for round_ in zip(*rows, strict=False)]
