"""Print a network as a tree: its switches or racks, the domains below each, and the machines at the leaves."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final

from topoplace.discovery.text import host_list
from topoplace.drawing import tables
from topoplace.errors import TopologyError

if TYPE_CHECKING:
    from topoplace.topology.fabric import Fabric

MAX_LINES: Final = 60
"""Limit on the lines of a tree; a larger one is shown without some of its branches."""
_BRANCHES_SHOWN: Final = (1 << 20, 32, 16, 8, 4, 2, 1)
_MAX_NAMES_LENGTH: Final = 60
_LINES_OF_TREES: Final = ("├── ", "│   ", "└── ", "    ")
_ASCII_LINES: Final = ("|-- ", "|   ", "`-- ", "    ")


@dataclass
class _ShownDomain:
    """A switch, rack or other domain of a level, with the machines that are in none of its smaller domains."""

    name: str
    level: str
    domains: dict[tuple[str, str], _ShownDomain] = field(
        default_factory=dict[tuple[str, str], "_ShownDomain"]
    )
    machines: list[str] = field(default_factory=list[str])

    def num_machines(self) -> int:
        """Return the number of machines in this domain and in those below it."""
        return len(self.machines) + sum(domain.num_machines() for domain in self.domains.values())


def show(fabric: Fabric) -> None:
    """Print `fabric` as a tree of at most about 60 lines, with a remark on omitted branches, and its notes."""
    counts = [f"{len(set(level.domains) - {None})} x {level.name}" for level in reversed(fabric.levels)]
    print(tables.plain(f"{fabric.name}: {', '.join([*counts, f'{len(fabric.machines)} machines'])}"))
    for line in _tree_lines(_tree(fabric)):
        print(line)
    for note in fabric.notes:
        print(f"note: {tables.plain(note)}")


def _tree(fabric: Fabric) -> _ShownDomain:
    """Return the root above all domains. A level that a machine is not in is left out of the machine's path."""
    root = _ShownDomain("", "")
    for i, machine in enumerate(fabric.machines):
        domain = root
        for level in reversed(fabric.levels):
            name = level.domains[i]
            if name is not None:
                domain = domain.domains.setdefault((level.name, name), _ShownDomain(name, level.name))
        domain.machines.append(machine)
    return root


def _tree_lines(root: _ShownDomain) -> Sequence[str]:
    """Return the lines of the tree, with as many branches below each domain as fit into `MAX_LINES`."""
    marks = _LINES_OF_TREES if _can_print("".join(_LINES_OF_TREES)) else _ASCII_LINES
    lines: list[str] = []
    for most in _BRANCHES_SHOWN:
        lines = list(islice(_branches(root, most, marks, top=True), None if most == 1 else MAX_LINES + 1))
        if len(lines) <= MAX_LINES:
            break
    return lines


def _branches(domain: _ShownDomain, most: int, marks: Sequence[str], *, top: bool = False) -> Iterator[str]:
    """Yield the lines below `domain`, with at most `most` of its smaller domains; top: without marks before names."""
    inner = list(domain.domains.values())
    shown, hidden = inner[:most], inner[most:]
    parts: list[tuple[str, _ShownDomain | None]] = [(_label(below), below) for below in shown]
    if hidden:
        machines = sum(below.num_machines() for below in hidden)
        levels = " and ".join(dict.fromkeys(below.level for below in hidden))
        parts.append((f"and {len(hidden)} more ({levels}) with {machines} machines", None))
    if domain.machines and (inner or top):
        parts.insert(0, (_names(domain.machines), None))
    for i, (text, below) in enumerate(parts):
        last = i == len(parts) - 1
        first_mark, next_mark = ("", "") if top else (marks[2 * last], marks[2 * last + 1])
        yield f"{first_mark}{text}"
        if below is not None:
            yield from (f"{next_mark}{line}" for line in _branches(below, most, marks))


def _label(domain: _ShownDomain) -> str:
    machines = f": {_names(domain.machines)}" if domain.machines and not domain.domains else ""
    named = domain.name.startswith(domain.level)  # leaf3 is no clearer as "leaf leaf3"
    return tables.plain(domain.name if named else f"{domain.level} {domain.name}") + machines


def _names(machines: Sequence[str]) -> str:
    """Return the names of machines as a host list, such as n[01-16]; if that is long, its start and their number."""
    try:
        text = host_list.folded(machines)
    except TopologyError:  # a name that no host list can hold
        text = ", ".join(machines)
    if len(text) > _MAX_NAMES_LENGTH:
        text = f"{text[:_MAX_NAMES_LENGTH]}... ({len(machines)} machines)"
    return tables.plain(text)


def _can_print(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
