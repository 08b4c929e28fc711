"""Finished cells in a directory: a file each, written completely or not at all."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from topoplace import _checks
from topoplace_lab.report.comparison import Outcome
from topoplace_lab.simulate.storage.tables import replacing
from topoplace_lab.sweeps.code_digests import library_digest
from topoplace_lab.sweeps.plan import Plan

_MOST: Final = 1e300


class FinishedCells:
    """The outcomes of a plan's finished cells, by index, and the directory that keeps them.

    folder: created if missing. ValueError names a file that is damaged, or that belongs to another plan.
    """

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._folder = folder
        self._plan = plan
        folder.mkdir(parents=True, exist_ok=True)
        self.outcomes: dict[int, Outcome] = {}
        self.of_other_code: Counter[str] = Counter()
        """The number of finished cells of each policy whose code has changed since; these cells count as missing."""
        for path in sorted(folder.glob("*.json")):
            self._read(path)

    def add(self, index: int, outcome: Outcome) -> None:
        """Keep the outcome of a cell; after this call, it is on the disk."""
        stored = {"refused": outcome} if isinstance(outcome, str) else {"figures": _without_nan(outcome)}
        cell = self._plan.cells[index]
        about: dict[str, Any] = {"plan": self._plan.digest, "cell": cell.labels()}
        about |= {"library": library_digest(), "code": cell.code}
        with replacing(self._folder / _name_of(index)) as file:
            file.write_text(json.dumps(about | stored) + "\n", encoding="utf-8")
        self.outcomes[index] = outcome

    def remove_unfinished(self) -> None:
        """Remove incomplete files that killed runs left."""
        for path in self._folder.glob(".*.part"):
            path.unlink(missing_ok=True)

    def _read(self, path: Path) -> None:
        """Take over the outcome in a file, unless other code gave it."""
        try:
            index, stored = _index_of(path), _stored_in(path)
            digest, named, outcome = stored["plan"], stored["cell"], _outcome_of(stored)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            raise ValueError(f"{path}: not a finished cell, or damaged; remove it and run again") from None
        if digest != self._plan.digest:
            raise ValueError(
                f"{path}: a cell of the plan {_checks.shown(digest)}, not of {self._plan.digest!r}; "
                "use another directory, or remove this one"
            )
        if index >= len(self._plan.cells) or named != self._plan.cells[index].labels():
            raise ValueError(f"{path}: cell {_checks.shown(named, 200)} is not number {index} of the plan")
        cell = self._plan.cells[index]
        if stored.get("library") != library_digest():
            self.of_other_code["topoplace"] += 1
        elif stored.get("code") != cell.code:
            self.of_other_code[cell.policy] += 1
        else:
            self.outcomes[index] = outcome


def _index_of(path: Path) -> int:
    """Return the number of the cell that a file of this name keeps; ValueError if there is none."""
    index = int(path.stem)
    if index < 0 or path.name != _name_of(index):
        raise ValueError("not the name of a cell")
    return index


def _name_of(index: int) -> str:
    return f"{index:06}.json"


def _stored_in(path: Path) -> dict[str, Any]:
    """Return the content of the file of a cell; ValueError or RecursionError if it has none."""
    if not path.is_file():
        raise ValueError("a directory, or what cannot be read as a whole")
    stored: object = json.loads(path.read_text("utf-8"))
    if not isinstance(stored, dict):
        raise ValueError("not an object")
    return stored  # pyright: ignore[reportUnknownVariableType]


def _outcome_of(stored: Mapping[str, Any]) -> Outcome:
    if "refused" not in stored:
        return {name: _figure(value) for name, value in stored["figures"].items()}
    reason = stored["refused"]
    if not isinstance(reason, str):
        raise ValueError("not a text")
    reason.encode()
    return reason


def _without_nan(figures: Mapping[str, float]) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else float(value) for name, value in figures.items()}


def _figure(value: object) -> float:
    """Return a figure as it was kept: null for no data, as a number is never NaN, nor too large for a mean."""
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("not a number")
    if math.isnan(value) or _MOST < abs(value) < math.inf:
        raise ValueError("not a figure")
    return float(value)
