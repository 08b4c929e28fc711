"""A section of a page that compares policies: a table of measures and a chart, as plain values for JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from topoplace.drawing import style
from topoplace_lab.report import looks
from topoplace_lab.report.columns import Measure

_DECIMALS: Final = 4
Interval = tuple[float, float, float]
"""A mean, and the two ends of its 95 % interval."""


class Row(NamedTuple):
    """A policy in a section.

    figures: the values by name of the measure; some may be missing. instead: the text of cells without figures, such as
    "refuses".
    """

    policy: str
    figures: Mapping[str, Interval]
    instead: str = ""


def section(
    title: str,
    measures: Mapping[str, Measure],
    rows: Sequence[Row],
    *,
    sentence: str = "",
    notes: Sequence[str] = (),
) -> dict[str, Any]:
    """Return a section; measures that no row has are left out.

    measures: the columns, by name. sentence: the conclusion, above the table. notes: how to read the table, below it.
    """
    known = {name: one for name, one in measures.items() if any(_is_known(row, name) for row in rows)}
    series = looks.policy_numbers([row.policy for row in rows])
    return {
        "title": title,
        "sentence": sentence,
        "measures": [_column(name, measure) for name, measure in known.items()],
        "rows": [
            {
                "policy": row.policy,
                "instead": row.instead,
                "colour": looks.colour(number),
                "dash": number // len(style.COLOURS),
                "figures": {name: _shown(row.figures.get(name), measures[name].factor) for name in known},
            }
            for number, row in zip(series, rows, strict=True)
        ],
        "notes": list(notes),
    }


def rounded(value: float) -> float | None:
    """Return the value with as many decimals as a page can show; None if it is not finite."""
    return round(value, _DECIMALS) if math.isfinite(value) else None


def _is_known(row: Row, name: str) -> bool:
    return name in row.figures and math.isfinite(row.figures[name][0])


def _column(name: str, measure: Measure) -> dict[str, Any]:
    about = measure.about or measure.label
    return {
        "key": name,
        "label": measure.label,
        "unit": measure.unit,
        "about": f"{about[0].upper()}{about[1:]}{_UNITS.get(measure.unit, f', in {measure.unit}')}.",
        "higher": measure.is_better_high,
    }


_UNITS: Final = {"": "", "s": ", in days, hours, minutes and seconds", "%": ", in per cent"}


def _shown(found: Interval | None, factor: float) -> list[float | None]:
    return [None, None, None] if found is None else [rounded(value * factor) for value in found]
