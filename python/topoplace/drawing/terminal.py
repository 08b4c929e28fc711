"""Draw a topology as lines of text: GPUs as tiles or letters, or a letter for each machine of a large cluster."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from topoplace.drawing import style
from topoplace.drawing.picture import title_of
from topoplace.drawing.scene import text_width
from topoplace.drawing.states import Busy, States, states_of

if TYPE_CHECKING:
    from topoplace.topology.topology import Topology

Span: TypeAlias = tuple[str, str]
"""A text and the state that it shows: "free", "busy", "chosen", "unhealthy", or "" for other text."""

_MARKS: Final = {"free": " ", "busy": "#", "chosen": "*", "unhealthy": "x"}
_WORDS: Final = {"free": "free", "busy": "in use", "chosen": "chosen", "unhealthy": "out of service"}
_MAX_TILES: Final = 64
_MAX_LETTERS: Final = 1024
_MAX_LINES: Final = 40
_LONGEST_NAME: Final = 20


def lines(
    topology: Topology, *, busy: Busy = (), chosen: Sequence[int] = (), width: int = 80
) -> Sequence[Sequence[Span]]:
    """Return lines of at most `width` columns that draw `topology`, the last of them a legend.

    Up to 64 GPUs are tiles with their numbers; up to 1,024 are letters. With more, each machine is one character: the
    eighths of its GPUs in use. busy, chosen: as for `topoplace.drawing.svg`, with its errors.
    """
    states = states_of(topology, busy, chosen, ())
    title = _cut(title_of(topology), width)
    if topology.num_gpus <= _MAX_TILES:
        body, legend = list(_tiles(states, width)), _legend(states)
    elif topology.num_gpus <= _MAX_LETTERS:
        body, legend = list(_letters(states, width)), _legend(states)
    else:
        body = list(_machines(states, width))
        legend = [(". idle, 1 to 7 eighths in use, # full, * chosen; a letter is a machine", "")]
    if len(body) > _MAX_LINES:
        body = [*body[: _MAX_LINES - 1], [(f"... and {len(body) - _MAX_LINES + 1} more lines", "")]]
    return [[(title, "")], *body, legend]


def _tiles(states: States, width: int) -> Iterator[list[Span]]:
    """Yield lines of tiles for each socket, or for each machine where there are several."""
    topology = states.topology
    groups: dict[str, list[int]] = {}
    for device in topology.gpus:
        name = "" if device.socket is None else f"socket {device.socket}"
        groups.setdefault(device.machine if topology.num_machines > 1 else name, []).append(device.index)
    room = min(_LONGEST_NAME, max(map(len, groups)))
    digits = len(str(topology.num_gpus - 1))
    beside = max(1, (width - room - 3) // (digits + 3))
    for name, gpus in groups.items():
        for start in range(0, len(gpus), beside):
            line: list[Span] = [(_tail(name if not start else "", room), ""), (" |", "")]
            for gpu in gpus[start : start + beside]:
                mark = _MARKS[state := states.state(gpu)]
                line += [(f"{mark}{gpu:>{digits}}{mark}", state), ("|", "")]
            yield line


def _letters(states: States, width: int) -> Iterator[list[Span]]:
    """Yield lines in which each machine is its name and a letter for each GPU, several side by side."""
    gpus_of = states.topology.gpus_of
    room = min(_LONGEST_NAME, max(map(len, gpus_of)))
    most = max(map(len, gpus_of.values()))
    beside = max(1, (width + 2) // (room + most + 3))
    line: list[Span] = []
    for name, gpus in gpus_of.items():
        line += [(_tail(name, room) + " ", "")]
        line += [(_MARKS[state].replace(" ", "."), state) for state in map(states.state, gpus)]
        line += [(" " * (most - len(gpus)) + "  ", "")]
        if len(line) >= beside * (most + 2):
            yield line[:-1]
            line = []
    if line:
        yield line[:-1]


def _machines(states: States, width: int) -> Iterator[list[Span]]:
    """Yield lines in which each machine is a letter, the domains of the innermost large level one after the other."""
    topology = states.topology
    gpus_of = list(topology.gpus_of.values())
    groups: dict[str, list[int]] = {}
    sized = [level for level in topology.levels if 8 * len(set(level.domains)) <= topology.num_machines]
    domains = sized[0].domains if sized else [""] * topology.num_machines
    for machine, domain in enumerate(domains):
        groups.setdefault(domain or "", []).append(machine)
    room = min(_LONGEST_NAME, max(map(len, groups)))
    most = width - room - 1
    for name, machines in groups.items():
        for start in range(0, len(machines), most):
            letters = [_share(states, gpus_of[machine]) for machine in machines[start : start + most]]
            yield [(_tail(name if not start else "", room) + " ", ""), *letters]


def _share(states: States, gpus: Sequence[int]) -> Span:
    """Return the letter of a machine, and the state that most of it is in."""
    found = [states.state(gpu) for gpu in gpus]
    if "chosen" in found:
        return "*", "chosen"
    used = len(found) - found.count("free")
    if used in (0, len(found)):
        return ("#", "busy") if used else (".", "free")
    return str(min(style.SHARES - 1, math.ceil(used * style.SHARES / len(found)))), "busy"


def _legend(states: States) -> list[Span]:
    """Return a line that explains the marks of the states that occur."""
    seen = {states.state(gpu) for gpu in range(states.topology.num_gpus)}
    line: list[Span] = []
    for state in _MARKS:
        if state in seen:
            mark = _MARKS[state].replace(" ", ".")
            line += [(mark, state), (f" {_WORDS[state]}  ", "")]
    return line


def _tail(name: str, room: int) -> str:
    """Return a name in `room` columns; of a longer one its end, where names differ."""
    text = _plain(name)
    return text.ljust(room) if len(text) <= room else f"..{text[2 - room :]}"


def _cut(text: str, width: int) -> str:
    text = _plain(text)
    return text if len(text) <= width else f"{text[: width - 3]}..."


def _plain(text: str) -> str:
    """Return a text that takes one column a letter and cannot control the terminal."""
    is_plain = text.isprintable() and text_width(text, 1.0) == text_width("x" * len(text), 1.0)
    return text if is_plain else ascii(text)[1:-1]
