"""Texts that no reader reads: their tool or format, what they lack, and what to give instead.

`unread_tools.toml` is the table. Texts of data that any program may write (JSON, CSV) are described by their keys and
columns.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import cast

from topoplace import _checks
from topoplace.discovery.text import decode

_HEAD = 1 << 16
"""Limit on the characters of a text that are searched."""
_MAX_NAMES = 20
_USE = "give what `nvidia-smi`, `nvidia-smi -q` or `scontrol show node -d` prints, or the numbers by --busy"
_USE_OF_OTHERS = "no text tells it yet for GPUs of this maker; give their numbers by --busy"
_RUN = r"^(?:[^\n]{{0,80}}[$#>%][ \t]*)?[ \t|]*(?:sudo[ \t]+)?(?:{})\b"
"""A line that runs a program, with a prompt or without, or that its output begins with."""
_READ_KINDS = "Node(?:List)?|Topology|ResourceFlavor|ResourceSlice(?:List)?|HyperNode|HyperNodeList"
_MANIFEST = (
    rf'\A(?![\s\S]*\bkind"?:[ \t]*"?(?:{_READ_KINDS})"?[ \t\r]*(?:[,}}]|$))[\s\S]*?'
    r'^[ \t]*(?:-[ \t]+)?"?kind"?:[ \t]*"?(?:%s)(?:List)?"?[ \t\r]*,?$'
)
"""A text with an object of one of some kinds, and none of those that are read."""


@dataclass(frozen=True)
class Unread:
    """A tool whose texts no reader reads."""

    name: str
    """Name of the tool, as a noun with its article."""
    patterns: tuple[str, ...] = ()
    """Patterns of lines of its texts, which the refusal names; ^ and $ match ends of lines."""
    runs: str | None = None
    """Pattern of the program's name, if a line that runs it identifies its text."""
    manifests_of: tuple[str, ...] = ()
    """The kinds of Kubernetes objects of which one must be in its texts, beside none that is read."""
    lacks: str = "it does not state how the GPUs are connected"
    """The reason why no topology can be read from it, as a clause about "it"."""
    remedy: str = "give what `nvidia-smi topo -m` prints"
    hides_formats: bool = False
    """True if its texts look like a format that is read, so that the tool must be tried before the formats."""
    other_maker: bool = False
    """True if it is about GPUs of a maker of which no text tells the GPUs in use."""
    use: str = _USE
    """The text to give instead for GPUs in use."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The pattern that a text of the tool contains."""
        runs = [] if self.runs is None else [_RUN.format(self.runs)]
        manifests = [_MANIFEST % "|".join(self.manifests_of)] if self.manifests_of else []
        return re.compile("|".join([*self.patterns, *runs, *manifests]), re.MULTILINE)


@cache
def tools() -> tuple[Unread, ...]:
    """Return the rows of the table; the first whose pattern is found is the tool."""
    table = tomllib.loads(
        resources.files("topoplace.discovery").joinpath("unread_tools.toml").read_text("utf-8")
    )
    return tuple(Unread(**row) for row in table["tools"])


_CELLS = re.compile(r"[^,\n]{1,200}(?:,[^,\n]{0,200}){2,}")


def hidden_format(text: str) -> str | None:
    """Return why `text` is refused although it looks like a known format; None if it is not of such a tool."""
    return None if (found := _tool(text, hides_formats=True)) is None else _without_topology(*found)


def refusal(text: str) -> str | None:
    """Return what `text` is, what it lacks and what to give instead; None if unknown."""
    if (found := _tool(text, hides_formats=False)) is not None:
        return _without_topology(*found)
    return _of_json(text) or _of_csv(text)


def refusal_of_use(text: str) -> str | None:
    """Return what `text` is, and what to give for GPUs in use; None for JSON, and if unknown."""
    found = _tool(text, hides_formats=True) or _tool(text, hides_formats=False)
    if found is not None:
        tool, line = found
        use = _USE_OF_OTHERS if tool.other_maker else tool.use
        return f"line {line}: this is {tool.name}, from which GPUs in use are not read; {use}"
    if _of_json(text) or not text.strip():
        return None
    number, start = next((number, line) for number, line in decode.numbered_lines(text) if line.strip())
    return (
        f"line {number}: no known format begins with {_checks.shown(start.strip())}; for GPUs in use {_USE}"
    )


def _without_topology(tool: Unread, line: int) -> str:
    return f"line {line}: this is {tool.name}: {tool.lacks}; {tool.remedy}"


def _tool(text: str, *, hides_formats: bool) -> tuple[Unread, int] | None:
    """Return the tool whose text it is, and the line that says so; None if it is not known."""
    head = text[:_HEAD]
    for tool in tools():
        if tool.hides_formats == hides_formats and (found := tool.pattern.search(head)):
            return tool, head.count("\n", 0, found.end()) + 1
    return None


def _of_json(text: str) -> str | None:
    """Describe JSON by its keys."""
    start = text.lstrip()
    if not start.startswith(("{", "[{", '["', "[\n", "[]")):
        return None
    try:
        found: object = json.loads(start)
    except json.JSONDecodeError as error:
        line = error.lineno + text[: len(text) - len(start)].count("\n")
        return f"line {line}: this begins as JSON, and is cut off or damaged: {error.msg}; give the complete text"
    except (RecursionError, ValueError):
        return "line 1: this is JSON that is nested too deeply, or has too long a number; give what a tool prints"
    what = "an object"
    if isinstance(found, list):
        what, found = "a list of objects", next(iter(cast("list[object]", found)), None)
    if not isinstance(found, dict):
        return "line 1: this is JSON without an object; give what `topoplace show --json` prints"
    keys = _listed(list(cast("dict[str, object]", found))) or "none"
    return (
        f"line 1: this is JSON, {what} with the keys {keys}, and of no known format: a topology has 'format', Slurm "
        "'nodes', 'sinfo' or 'jobs', Kubernetes 'kind' or 'items'; give what `topoplace show --json` prints"
    )


def _of_csv(text: str) -> str | None:
    """Describe CSV by its columns."""
    lines = [(number, line) for number, line in decode.numbered_lines(text[:_HEAD]) if line.strip()][:2]
    if len(lines) < 2 or not all(_CELLS.fullmatch(line) for _, line in lines):
        return None
    number, header = lines[0]
    columns = [cell.strip() for cell in header.split(",")]
    if len(columns) != lines[1][1].count(",") + 1:
        return None
    return (
        f"line {number}: this is CSV with the columns {_listed(columns)}, which no format has; a list of machines "
        "has machine and num_gpus; a list of jobs is a workload, with job_id, submit_s and num_gpus: "
        "`topoplace trace` reads it"
    )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(_checks.shown(name) for name in names[:_MAX_NAMES]) + more
