"""The frame of all pages: title, conclusions, style, scripts and data in one text that needs nothing else."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, Final

_MOST_LINES: Final = 8


def page(title: str, conclusions: Sequence[str], data: Mapping[str, Any], *, body: str = "") -> str:
    """Return a page as text.

    conclusions: the sentences at its start. data: values for its scripts, without NaN or infinity. body: the name of
    the .html and .js files for the rest of the page; "" for sections of `data` alone.
    """
    # In a script element, "<" could begin its end tag: names of jobs may have it, so it is escaped.
    encoded = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    parts = {
        "TITLE": html.escape(title),
        "LEAD": _lead(conclusions),
        "STYLE": _part("page.css"),
        "BODY": _part(f"{body}.html") if body else "",
        "DATA": encoded,
        "SCRIPT": "".join(map(_part, ("gantt.js", "shell.js", *((f"{body}.js",) if body else ())))),
    }
    # All at once: a job or a title may itself be called "@SCRIPT@".
    return re.sub(f"@({'|'.join(parts)})@", lambda found: parts[found[1]], _part("page.html"))


def _part(name: str) -> str:
    return (files("topoplace_lab.report.page") / name).read_text("utf-8")


def _lead(conclusions: Sequence[str]) -> str:
    lines = [f"<p>{html.escape(_sentence(one))}</p>" for one in conclusions]
    if len(lines) <= _MOST_LINES:
        return "".join(lines)
    more = (
        f"<details><summary>{len(lines) - _MOST_LINES} more</summary>{''.join(lines[_MOST_LINES:])}</details>"
    )
    return "".join(lines[:_MOST_LINES]) + more


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."
