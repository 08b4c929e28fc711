"""The page of `topoplace explore` with recorded answers, which needs no server: its files, by their names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import Any

import topoplace as tp
from topoplace import drawing
from topoplace.cli.explorer import copies, presets
from topoplace.cli.explorer.answer import answer, choices, rings_in_words
from topoplace.cli.explorer.state import State
from topoplace.drawing import style

MACHINES = ("dgx1-v100", "mi250x", "l40s-8")
SIZES = (2, 3, 4, 8)
START = {"machine": MACHINES[0], "busy": "0,5", "gpus": "4"}
_WIDTH = 560
_PAGE = "topoplace.cli.explorer"
_FROM_PAGE = ("page.css", "words.js", "drawing.js", "queue.js", "page.js")
_ITEM = re.compile(r'^<(?:g|path) [^\n]*?data-(gpu|link)="([^"]+)"[^\n]*$', re.MULTILINE)


def page() -> dict[str, str]:
    """Return the text of each file of the page."""
    found = {name: (files(_PAGE) / name).read_text("utf-8") for name in _FROM_PAGE}
    document = (files(_PAGE) / "page.html").read_text("utf-8")
    server = '<script src="server.js" defer></script>'
    if server not in document:
        raise ValueError(f"page.html has no {server}")
    scripts = "\n".join(f'<script src="{name}" defer></script>' for name in ("answers.js", "recorded.js"))
    found["index.html"] = document.replace(server, scripts)
    found["gantt.js"] = (files("topoplace_lab.report.page") / "gantt.js").read_text("utf-8")
    found["drawing.css"] = style.css()
    found["recorded.js"] = (Path(__file__).parent / "recorded.js").read_text("utf-8")
    found["answers.js"] = script(MACHINES)
    return found


def script(names: tuple[str, ...]) -> str:
    """Return the script that holds the answers for machines."""
    offered = {key: choices()[key] for key in ("policies", "default", "presets")} | {"start": START}
    held = {**offered, "machines": {name: recorded(name) for name in names}}
    return f"const RECORDED = {json.dumps(held, separators=(',', ':'))};\n"


@dataclass
class _Texts:
    """Values by number, each once."""

    number_of: dict[Any, int] = field(default_factory=dict[Any, int])

    def number(self, value: Any) -> int:
        return self.number_of.setdefault(value, len(self.number_of))


def recorded(name: str) -> dict[str, Any]:
    """Return the answers for each set of busy GPUs of a machine, and what its drawings consist of.

    "rows" has, by the size of the job and by the busy GPUs as bits, for each policy the number of its choice in "sets",
    or -1 - the number of its refusal.
    """
    topology = tp.machines.get(name)
    sets, refusals = _Texts(), _Texts()
    figures: dict[tuple[int, ...], dict[str, Any]] = {}
    rows: dict[int, list[list[int]]] = {}
    for size in SIZES:
        rows[size] = []
        for mask in range(1 << topology.num_gpus):
            found = answer(state_of(name, size, mask))
            figures |= {tuple(row["gpus"]): row for row in found["rows"] if row["gpus"]}
            numbers = {row["policy"]: _number(row, sets, refusals) for row in found["rows"]}
            rows[size].append([numbers[policy] for policy in choices()["policies"]])
    chosen = list(sets.number_of)
    return {
        "about": answer(state_of(name, 2, 0))["about"],
        "presets": {preset: presets.fields(topology, preset) for preset in presets.PRESETS},
        "rows": rows,
        "refusals": list(refusals.number_of),
        "sets": [_figures(topology, gpus, figures[gpus]) for gpus in chosen],
        "drawing": _drawing(topology, chosen),
    }


def state_of(name: str, size: int, mask: int) -> State:
    """Return the state of a page for a ring of `size` GPUs, with the busy GPUs of the bits of `mask`."""
    busy = copies.ranges(gpu for gpu in range(mask.bit_length()) if mask >> gpu & 1)
    return State(machine=name, gpus=str(size), busy=busy, part="choices")


def _number(row: dict[str, Any], sets: _Texts, refusals: _Texts) -> int:
    return sets.number(tuple(row["gpus"])) if row["gpus"] else -1 - refusals.number(row["refusal"])


def _figures(topology: tp.Topology, gpus: tuple[int, ...], row: dict[str, Any]) -> list[Any]:
    """Return the GPUs, seconds, GB/s of rings, the slowest port, the highlighted lines, and the rings in words."""
    job = tp.JobGraph.ring(len(gpus))
    marks = {line: used[0] for line, used in _used(drawing.svg(topology, chosen=gpus, job=job, width=_WIDTH))}
    return [gpus, row["seconds"], row["ring"], row["slowest"], marks, rings_in_words(topology, job, gpus)]


def _used(svg: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the highlighted lines of a drawing with the classes of their highlights."""
    for item in _ITEM.finditer(svg):
        if item[1] == "link" and (classes := re.findall(r'class="(used[^"]*)"', item[0])):
            yield item[2], classes


def _drawing(topology: tp.Topology, chosen: list[tuple[int, ...]]) -> dict[str, Any]:
    """Return a drawing with a place for each GPU and line, and what can be there."""
    n = topology.num_gpus
    idle = _items(drawing.svg(topology, width=_WIDTH))
    taken = _items(drawing.svg(topology, chosen=range(n), width=_WIDTH))
    used: dict[tuple[str, str], str] = {}
    for pair in combinations(range(n), 2):
        text = drawing.svg(topology, chosen=pair, job=tp.JobGraph.ring(2), width=_WIDTH)
        lit = {line for line, _ in _used(text)}
        used |= {key: item for key, item in _items(text).items() if key[0] == "link" and key[1] in lit}
    full = max(
        (_full(topology, gpus) for gpus in chosen if len(gpus) < n), key=lambda svg: svg.count("data-legend")
    )
    base = _ITEM.sub(
        lambda item: f"{{{item[1]} {item[2]}}}", re.sub(r"<style>.*?</style>\n", "", full, flags=re.DOTALL)
    )
    extra = "\n".join(f"{{link {name}}}" for _, name in used if f"{{link {name}}}" not in base)
    links = {name for kind, name in {**idle, **used} if kind == "link"}
    return {
        "svg": base.replace("{gpu ", f"{extra}\n{{gpu ", 1),
        "free": [idle["gpu", str(gpu)] for gpu in range(n)],
        "chosen": [taken["gpu", str(gpu)] for gpu in range(n)],
        "links": {
            name: [idle.get(("link", name), ""), used.get(("link", name), "")] for name in sorted(links)
        },
    }


def _full(topology: tp.Topology, gpus: tuple[int, ...]) -> str:
    """Return the drawing of a choice with another GPU in use, whose legend explains all that is in it."""
    busy = next(gpu for gpu in range(topology.num_gpus) if gpu not in gpus)
    return drawing.svg(topology, busy=[busy], chosen=gpus, job=tp.JobGraph.ring(len(gpus)), width=_WIDTH)


def _items(svg: str) -> dict[tuple[str, str], str]:
    """Return the GPUs and lines of a drawing by what and which they are."""
    return {
        (item[1], item[2]): item[0].replace(", the slowest of the rings", "") for item in _ITEM.finditer(svg)
    }
