"""The page of a sweep: the conclusion of each scenario, then its policies with all figures, in one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from topoplace_lab.report.columns import MEASURES, OF_SWEEP
from topoplace_lab.report.comparison import ComparisonRow, by_scenario, conclusion, conclusions_of, notes_of
from topoplace_lab.report.page import frame
from topoplace_lab.report.page.sections import Row, section
from topoplace_lab.simulate.storage.tables import replacing


def write_page(
    title: str, rows: Sequence[ComparisonRow], path: Path, *, have_one_queue: bool = False
) -> None:
    """Write the page about `rows` to `path`; it needs no other file. have_one_queue: as for `conclusion`."""
    found = conclusions_of(rows, have_one_queue=have_one_queue)
    data = {"sections": sections(rows, have_one_queue=have_one_queue)}
    with replacing(path) as file:
        file.write_text(frame.page(title, found, data), encoding="utf-8")


def sections(rows: Sequence[ComparisonRow], *, have_one_queue: bool = False) -> list[dict[str, Any]]:
    """Return the section of each scenario. have_one_queue: as for `conclusion`."""
    return [
        section(
            str(scenario),
            {name: MEASURES[name] for name in compared(group)},
            [_row(row) for row in group],
            sentence=conclusion(group, have_one_queue=have_one_queue),
            notes=_notes(group),
        )
        for scenario, group in by_scenario(rows).items()
    ]


def _row(row: ComparisonRow) -> Row:
    found = {name: (sample.mean, sample.low, sample.high) for name, sample in row.samples.items()}
    return Row(row.policy, found, "refuses" if row.refused and not row.samples else "")


def _notes(rows: Sequence[ComparisonRow]) -> list[str]:
    seeds = max((len(sample.values) for row in rows for sample in row.samples.values()), default=0)
    refused = [
        f"{row.policy} refuses{' some seeds' if row.samples else ''}: {row.refused}"
        for row in rows
        if row.refused
    ]
    means = [f"Means over at most {seeds} seeds, with 95 % intervals."] if seeds > 1 else []
    return [*means, *(f"{note}." for note in notes_of(rows)), *refused]


def cells_of(row: ComparisonRow, figures: Sequence[str], *, has_units: bool = True) -> list[str]:
    """Return the figures of a row for readers, mean [low, high]; "refuses" for a policy that refuses the jobs.

    A figure that is the same with all seeds has no interval. has_units: write times such as 7 h 37 min, below the head
    `Measure.head`; False: as numbers of seconds, below `Measure.heading`, for tables that programs read.
    """
    if row.refused and not row.samples:
        return ["refuses"] * len(figures)
    found: list[str] = []
    for name in figures:
        sample = row.samples.get(name)
        measure = MEASURES[name]
        text = measure.text if has_units else measure.number
        interval = f" [{text(sample.low)}, {text(sample.high)}]" if sample and sample.margin else ""
        found.append(f"{text(sample.mean)}{interval}" if sample else "-")
    return found


def compared(rows: Sequence[ComparisonRow]) -> list[str]:
    """Return the figures to compare that some row has."""
    return [name for name in OF_SWEEP if any(name in row.samples for row in rows)]
