"""Finished cells in a directory: a file each, which is there as a whole or not at all."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from topoplace import _checks
from topoplace.simulate.storage.tables import replacing
from topoplace.sweeps.plan import Outcome, Plan


class FinishedCells:
    """The outcomes of the finished cells of a plan, by the cells' indices, and the directory that keeps them.

    folder: created if missing. ValueError names a file that is damaged, or that belongs to another plan.
    """

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._folder = folder
        self._plan = plan
        folder.mkdir(parents=True, exist_ok=True)
        self.outcomes: dict[int, Outcome] = {}
        for path in sorted(folder.glob("*.json")):
            index, outcome = self._read(path)
            self.outcomes[index] = outcome

    def add(self, index: int, outcome: Outcome) -> None:
        """Keep the outcome of a cell; after this call, it is on the disk."""
        stored = {"refused": outcome} if isinstance(outcome, str) else {"figures": _without_nan(outcome)}
        about = {"plan": self._plan.digest, "cell": self._plan.cells[index].labels()}
        with replacing(self._folder / f"{index:06}.json") as file:
            file.write_text(json.dumps(about | stored) + "\n", encoding="utf-8")
        self.outcomes[index] = outcome

    def remove_unfinished(self) -> None:
        """Remove what killed runs left: files that were not complete."""
        for path in self._folder.glob(".*.part"):
            path.unlink(missing_ok=True)

    def _read(self, path: Path) -> tuple[int, Outcome]:
        try:
            stored: dict[str, Any] = json.loads(path.read_text("utf-8"))
            digest, cell, index = stored["plan"], stored["cell"], int(path.stem)
            outcome: Outcome = stored["refused"] if "refused" in stored else _with_nan(stored["figures"])
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ValueError(f"{path}: not a finished cell, or damaged; remove it and go on") from None
        if digest != self._plan.digest:
            raise ValueError(
                f"{path}: a cell of the plan {_checks.shown(digest)}, not of {self._plan.digest!r}; "
                "take another directory, or remove this one"
            )
        if index >= len(self._plan.cells) or cell != self._plan.cells[index].labels():
            raise ValueError(f"{path}: cell {_checks.shown(cell, 200)} is not number {index} of the plan")
        return index, outcome


def _without_nan(figures: Any) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else float(value) for name, value in figures.items()}


def _with_nan(figures: dict[str, float | None]) -> dict[str, float]:
    return {name: math.nan if value is None else float(value) for name, value in figures.items()}
