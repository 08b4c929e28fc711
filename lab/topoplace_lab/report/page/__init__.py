"""Pages about results, of one file each: no server, no network, no script from elsewhere.

A page begins with its conclusions. `write_page` writes the page about simulated results: policies side by side, the
machines over time, waits, run times, and every decision. Sweeps and the suite have pages of their own.

To change:

- Frame of all pages: `frame.py`, `page.html`; style: `page.css`; words, tables, charts: `shell.js`; the section that
  compares policies: `sections.py`.
- The page about results: values `contents.py`; parts: `report.html`; drawings: `report.js`; the schedule of GPUs:
  `gantt.js`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from topoplace_lab.report.page import frame
from topoplace_lab.report.page.contents import contents_of

if TYPE_CHECKING:
    from topoplace_lab.simulate.metrics import Result


def write_page(
    results: Sequence[Result], path: str | Path, *, title: str = "Policies compared", conclusion: str = ""
) -> None:
    """Write a page about `results` to `path`, as UTF-8.

    Results of one policy on one topology with equal options are repetitions, such as seeds. Their key figures are means
    with 95 % intervals, and the first result is shown in detail. conclusion: the first sentence; "" says how much
    sooner jobs finish under the best policy than under the first. ValueError if there is no result; OSError if the file
    cannot be written.
    """
    Path(path).write_text(page(results, title=title, conclusion=conclusion), "utf-8")


def page(results: Sequence[Result], *, title: str = "Policies compared", conclusion: str = "") -> str:
    """Return the page as text; see `write_page`."""
    if not results:
        raise ValueError("results is empty")
    contents = contents_of(results)
    groups = contents["groups"]
    named = [
        (f"{one['name']}: " if len(groups) > 1 else "") + one["conclusion"]
        for one in groups
        if one["conclusion"]
    ]
    return frame.page(title, [conclusion] if conclusion else named, contents, body="report")
