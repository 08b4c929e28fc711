"""The table of a sweep: a row for each cell, as Parquet or CSV."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from topoplace.errors import require_package
from topoplace_lab.report.comparison import Outcome
from topoplace_lab.simulate.storage.tables import FLOAT, INT, TEXT, form_of, replacing
from topoplace_lab.sweeps.plan import Plan

FORMAT: Final = "topoplace.sweep"
VERSION: Final = 1
_LABELS: Final = {"policy": TEXT, "topology": TEXT, "workload": TEXT, "load": FLOAT, "seed": INT}


def write_table(plan: Plan, outcomes: Sequence[Outcome], path: Path) -> None:
    """Write a row for each cell to `path`: Parquet for .parquet (needs pyarrow), CSV for .csv.

    Columns are policy, topology, workload, load, seed, refused (the reason, empty for a cell that ran), and the
    figures. Cells without data are empty. The same outcomes give the same bytes. ValueError for another ending.
    """
    form = form_of(path)
    names = list(
        dict.fromkeys(name for outcome in outcomes if not isinstance(outcome, str) for name in outcome)
    )
    labels = [cell.labels() for cell in plan.cells]
    columns: dict[str, list[Any]] = {name: [label[name] for label in labels] for name in _LABELS}
    columns["refused"] = [outcome if isinstance(outcome, str) else None for outcome in outcomes]
    for name in names:
        columns[name] = [_value(outcome, name) for outcome in outcomes]
    kinds = {**_LABELS, "refused": TEXT, **dict.fromkeys(names, FLOAT)}
    about = {"format": FORMAT, "version": VERSION, "plan": plan.digest}
    with replacing(path) as file:
        form.write(file, kinds, columns, json.dumps(about, separators=(",", ":")))


def ending() -> str:
    """Return the ending of a table: parquet, or csv if pyarrow is not installed."""
    try:
        require_package("pyarrow.parquet", "the table of a sweep")
    except ImportError:
        return "csv"
    return "parquet"


def _value(outcome: Outcome, name: str) -> float | None:
    value = math.nan if isinstance(outcome, str) else outcome.get(name, math.nan)
    return None if math.isnan(value) else value
