"""The cells of a sweep, and the digest by which a plan knows its own finished cells."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from topoplace import __version__, _checks
from topoplace_lab.report.comparison import ComparisonRow, Outcome, Scenario, row_of

MAX_CELLS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Cell:
    """One simulation: a policy by name, a scenario, and the seed of its random draws.

    options: further arguments for the function that simulates the cell; finished cells do not keep them. code: digest
    of the policy's code, see `code_of`; "" if unknown. A finished cell of other code is simulated again.
    """

    policy: str
    scenario: Scenario
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)
    code: str = field(default="", compare=False)

    def labels(self) -> dict[str, Any]:
        """Return what distinguishes the cell in its plan, as columns of a table."""
        return {"policy": self.policy, **self.scenario._asdict(), "seed": self.seed}


@dataclass(frozen=True)
class Plan:
    """The cells of a sweep, in the order of its table.

    about: everything but their names that decides the cells' outcomes, as JSON values, such as digests of input files.
    A plan with other contents has another digest, and does not reuse finished cells.

    ValueError if there is no cell, if two are equal, or if there are more than a million.
    """

    cells: tuple[Cell, ...]
    about: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        if not 1 <= len(self.cells) <= MAX_CELLS:
            raise ValueError(f"cells: {len(self.cells)} of them, not 1..{MAX_CELLS}")
        seen: set[Cell] = set()
        for index, cell in enumerate(self.cells):
            if cell in seen:
                raise ValueError(f"cells[{index}] = {_checks.shown(cell.labels(), 200)}: appears twice")
            seen.add(cell)

    @cached_property
    def digest(self) -> str:
        """Return 12 hexadecimal digits that depend on the cells, on `about` and on the version of this library."""
        content = [__version__, [list(cell.labels().values()) for cell in self.cells], self.about]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def rows_of(plan: Plan, outcomes: Sequence[Outcome]) -> list[ComparisonRow]:
    """Return a row for each scenario and policy, in the order of the plan."""
    cells: dict[tuple[Scenario, str], list[Outcome]] = {}
    for cell, outcome in zip(plan.cells, outcomes, strict=True):
        cells.setdefault((cell.scenario, cell.policy), []).append(outcome)
    return [row_of(scenario, policy, found) for (scenario, policy), found in cells.items()]
