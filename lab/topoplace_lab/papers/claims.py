"""Rows of a paper's reproduction: the paper's number, our number, and a verdict computed from our number by a rule."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Final

from topoplace_lab.papers.rules import DIFFERS, NOT_COMPARABLE, ORDER_ONLY, REPRODUCED, Rule

IDENTITY: Final = "identity"
FITTED: Final = "fitted"
RESULTS: Final = (REPRODUCED, ORDER_ONLY, DIFFERS, NOT_COMPARABLE)
"""Verdicts on numbers that could have come out otherwise; README and documentation count these."""


@dataclass(frozen=True, slots=True)
class PaperClaim:
    """One row of a paper's reproduction: a quantity, the paper's value, our value, and whether they agree.

    `id` numbers the row within its paper. `paper` and `ours` are the two values, as printed text. `why` states the rule
    that gives the verdict, which is one of
    - "reproduced", "order only" (only the order or direction of values agrees), "differs";
    - "not comparable": the paper has no such number, or a 95 % interval from too few simulations crosses the rule's
      bound;
    - "identity": it could not have come out otherwise: arithmetic on the paper's own numbers, a constant, or an upper
      bound;
    - "fitted": our free parameters were chosen so that it agrees; the values show whether it still does on other seeds.

    `rule` is the rule itself, None if the verdict follows from no value, and `values` are those that it was given.
    `machine` is True if our value, such as a time, depends on the machine and differs in each run. `series` names what
    the first values belong to, such as policies; () if nothing.
    """

    id: str
    quantity: str
    paper: str
    ours: str
    verdict: str
    why: str
    rule: Rule | None = field(default=None, repr=False, compare=False)
    values: tuple[object, ...] = field(default=(), repr=False, compare=False)
    machine: bool = field(default=False, repr=False, compare=False)
    series: tuple[str, ...] = field(default=(), repr=False, compare=False)

    def to_dict(self) -> dict[str, str]:
        """Return the row's fields by name, as `topoplace papers NAME --json` prints them."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.compare}


@dataclass(frozen=True, slots=True)
class ClaimedQuantity:
    """A quantity that a paper states: the first three fields of its row; `machine` and `series` as in `PaperClaim`."""

    id: str
    quantity: str
    paper: str
    machine: bool = False
    series: tuple[str, ...] = ()

    def judged(self, ours: str, rule: Rule, *values: object, note: str = "", fitted: str = "") -> PaperClaim:
        """Return the row whose verdict `rule` gives on `values`.

        ours: our values as text. note: further text of the column "why". fitted: the free parameters that were chosen
        to match the paper's number; "" for none. With such parameters, the verdict is `fitted` unless it is `differs`.
        """
        why = "; ".join(filter(None, (rule.text, note, fitted and f"fitted by {fitted}")))
        verdict = rule.verdict(*values)
        if fitted and verdict != DIFFERS:
            verdict = FITTED
        return self._row(ours, verdict, why, rule, values)

    def identity(self, ours: str, rule: Rule, *values: object, note: str = "") -> PaperClaim:
        """Return the row of a number that could not have come out otherwise; arguments are as in `judged`."""
        claim = self.judged(ours, rule, *values, note=note)
        return replace(claim, verdict=IDENTITY) if claim.verdict == REPRODUCED else claim

    def of_the_paper(self, ours: str, why: str) -> PaperClaim:
        """Return the row of a number that follows from the paper's own numbers, consistent or not."""
        return self._row(ours, IDENTITY, why)

    def not_comparable(self, ours: str, why: str) -> PaperClaim:
        """Return the row of a number that the paper lacks, or has in a form that cannot be compared."""
        return self._row(ours, NOT_COMPARABLE, why)

    def _row(
        self, ours: str, verdict: str, why: str, rule: Rule | None = None, values: tuple[object, ...] = ()
    ) -> PaperClaim:
        return PaperClaim(
            self.id, self.quantity, self.paper, ours, verdict, why, rule, values, self.machine, self.series
        )


def listed(values: Iterable[object], form: str | int = 1) -> str:
    """Return the values as text separated by commas, each in the format `form` or with that many decimals."""
    spec = f".{form}f" if isinstance(form, int) else form
    return ", ".join(format(value, spec) for value in values)
