"""The page of a sweep: a table of all policies for each scenario and a picture, in one HTML file."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from topoplace.errors import require_package
from topoplace.experiments.report import measures
from topoplace.experiments.report.measures import MEASURES
from topoplace.experiments.report.page import sorting
from topoplace.experiments.simulate.samples import Sample
from topoplace.experiments.simulate.storage.tables import replacing
from topoplace.experiments.sweeps.comparison import ComparisonRow, by_scenario, conclusion, notes_of
from topoplace.experiments.sweeps.plan import Scenario

COMPARED: Final = (
    *("mean_turnaround", "makespan", "utilization", "mean_wait", "wait_p99"),
    *("mean_slowdown", "mean_slowdown_with_wait"),
    *("sensitive_run_time_p75", "sensitive_effective_bandwidth_p50", "rejected"),
)
"""The figures that are compared, of those in `Result.summary`."""
_DRAWN: Final = "mean_slowdown_with_wait"
_MOST_DRAWN: Final = 40
Panel = tuple[str, Mapping[str, Sample]]
"""The title of a plot, and samples by the names of its lines."""
_STYLE: Final = """
body { font-family: sans-serif; margin: 2em; max-width: 90em }
table { border-collapse: collapse; font-size: 90% }
th { cursor: pointer }
th, td { padding: 0.2em 0.7em; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap }
th:first-child, td:first-child { text-align: left }
img { max-width: 100% }
"""


class Overview(NamedTuple):
    """What a page begins with: a table over all scenarios, and the panels of the picture."""

    heads: Sequence[str]
    lines: Sequence[Sequence[str]]
    panels: Sequence[Panel]
    what: str
    """Label of the picture's axis of values."""


def write_page(
    title: str,
    rows: Sequence[ComparisonRow],
    path: Path,
    *,
    overview: Overview | None = None,
    have_one_queue: bool = False,
) -> None:
    """Write the page about `rows` to `path`; it has a picture if matplotlib is installed, and needs no other file.

    overview: what the page begins with; by default a picture of slowdowns by scenario. have_one_queue: as for
    `conclusion`.
    """
    scenarios = by_scenario(rows)
    seeds = max((len(sample.values) for row in rows for sample in row.samples.values()), default=0)
    first = overview or Overview((), (), _slowdowns(scenarios), MEASURES[_DRAWN].heading)
    body = [
        f"<h1>{escape(title)}</h1>",
        f"<p>Means over at most {seeds} seeds ± half of their 95 % intervals.</p>" if seeds > 1 else "",
        *(f"<p>{escape(note)}.</p>" for note in notes_of(rows)),
        _html_table(first.heads, first.lines) if first.lines else "",
        _picture(first.panels, first.what),
        *(
            f"<h2>{escape(str(scenario))}</h2>{_table(group, have_one_queue)}"
            for scenario, group in scenarios.items()
        ),
    ]
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    script = f"<script>{sorting()}</script>"
    with replacing(path) as file:
        page = (
            f'<!DOCTYPE html><html lang="en"><head>{head}</head><body>{"".join(body)}{script}</body></html>'
        )
        file.write_text(page + "\n", encoding="utf-8")


def cells_of(row: ComparisonRow, figures: Sequence[str], *, has_units: bool = True) -> list[str]:
    """Return the figures of a row as people read them, mean ± margin; those of a policy that refuses as "refuses".

    A figure that is the same with all seeds has no margin. has_units: write times such as 7 h 37 min, below the head
    `Measure.head`; False: as numbers of seconds, below `Measure.heading`, for tables that programs read.
    """
    if row.refused and not row.samples:
        return ["refuses"] * len(figures)
    found: list[str] = []
    for name in figures:
        sample = row.samples.get(name)
        measure = MEASURES[name]
        text = measure.text if has_units else measure.number
        margin = f" ± {text(sample.margin)}" if sample and sample.margin else ""
        found.append(f"{text(sample.mean)}{margin}" if sample else "-")
    return found


def compared(rows: Sequence[ComparisonRow]) -> list[str]:
    """Return which of the figures to compare some row has."""
    return [name for name in COMPARED if any(name in row.samples for row in rows)]


def _table(rows: Sequence[ComparisonRow], have_one_queue: bool) -> str:
    names, sentence = compared(rows), conclusion(rows, have_one_queue=have_one_queue)
    heads = ("policy", *measures.heads(names, has_units=True))
    notes = "".join(
        f"<p>{escape(row.policy)} refuses{' some seeds' if row.samples else ''}: {escape(row.refused)}</p>"
        for row in rows
        if row.refused
    )
    lines = [(row.policy, *cells_of(row, names)) for row in rows]
    return (f"<p>{escape(sentence)}.</p>" if sentence else "") + _html_table(heads, lines) + notes


def _html_table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    first = "".join(f'<th scope="col" tabindex="0">{escape(head)}</th>' for head in heads)
    others = ("".join(f"<td>{escape(cell)}</td>" for cell in line) for line in lines)
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in (first, *others))}</table>"


def _slowdowns(scenarios: Mapping[Scenario, Sequence[ComparisonRow]]) -> list[Panel]:
    panels: list[Panel] = [
        (str(scenario), {row.policy: row.samples[_DRAWN] for row in group if _DRAWN in row.samples})
        for scenario, group in scenarios.items()
    ]
    return [panel for panel in panels if panel[1]][:_MOST_DRAWN]


def _picture(panels: Sequence[Panel], what: str) -> str:
    try:
        require_package("matplotlib.figure", "the picture of a sweep")
    except ImportError as error:
        return f"<p>No picture: {escape(str(error))}</p>"
    if not panels:
        return ""
    from topoplace.experiments.report.interval_plot import intervals

    with TemporaryDirectory() as folder:
        picture = Path(folder) / "sweep.png"
        intervals(panels, picture, what=what)
        data = base64.b64encode(picture.read_bytes()).decode()
    return f'<p><img alt="{escape(what)}" src="data:image/png;base64,{data}"></p>'
