"""One HTML page about simulated results: no server, no network, no script from elsewhere.

The page has the policies side by side, what happened over time on which machine, waits, run times, and every decision.

To change:

- Values: `contents.py`; frame and headings: `page.html`; style: `page.css`; all that is drawn (charts, legend, tables):
  `page.js`; the order of rows: `sorting.js`, which other pages with tables have, too.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from topoplace.experiments.report.page.contents import contents_of

if TYPE_CHECKING:
    from topoplace.experiments.simulate.metrics import Result


def write_page(results: Sequence[Result], path: str | Path, *, title: str = "Policies compared") -> None:
    """Write a page about `results` to `path`, as UTF-8.

    Results of one policy on one topology with equal options count as repetitions, such as seeds: their key figures are
    means with 95 % intervals, and the first of them is shown in detail. ValueError if there is no result; OSError if
    the file cannot be written.
    """
    if not results:
        raise ValueError("results is empty")
    Path(path).write_text(page(results, title=title), "utf-8")


def sorting() -> str:
    """Return the script that sorts a table when the head of a column is chosen."""
    return (files(__name__) / "sorting.js").read_text("utf-8")


def page(results: Sequence[Result], *, title: str = "Policies compared") -> str:
    """Return the page as text; see `write_page`."""
    here = files(__name__)
    # In a script element, "<" could begin its end tag: whatever jobs are called, it is escaped.
    data = json.dumps(contents_of(results), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    parts = {
        "TITLE": html.escape(title),
        "STYLE": (here / "page.css").read_text("utf-8"),
        "DATA": data,
        "SCRIPT": (here / "page.js").read_text("utf-8") + sorting(),
    }
    text = (here / "page.html").read_text("utf-8")
    # All at once: a job or a title may itself be called "@SCRIPT@".
    return re.sub(f"@({'|'.join(parts)})@", lambda found: parts[found[1]], text)
