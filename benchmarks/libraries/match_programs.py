"""Programs that count mappings of a pattern in a target: how they are called, and what they print."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

Edges = Sequence[tuple[int, int]]


class Solver(NamedTuple):
    """A program that counts the mappings of an undirected pattern without labels."""

    text: Callable[[int, Edges], str]
    """Writes a graph in the program's format."""
    arguments: Callable[[bool, Path, Path], list[str | Path]]
    """Its arguments: whether mappings are induced, the pattern's file, the target's."""
    answer: str
    """A regular expression for the number of mappings in what it prints."""

    def count(self, printed: str) -> int:
        """Return the number of mappings; ValueError if the program printed none."""
        found = re.search(self.answer, printed, re.MULTILINE)
        if found is None:
            raise ValueError(f"no number of mappings in {printed!r}")
        return int(found[1])


def neighbours(vertices: int, edges: Edges) -> list[list[int]]:
    """Return the neighbours of each vertex."""
    rows: list[list[int]] = [[] for _ in range(vertices)]
    for u, v in edges:
        rows[u].append(v)
        rows[v].append(u)
    return [sorted(row) for row in rows]


def vf_text(vertices: int, edges: Edges) -> str:
    """Write VF's format: each vertex with the label 0, then its arcs."""
    lines = [str(vertices), *(f"{vertex} 0" for vertex in range(vertices))]
    for vertex, row in enumerate(neighbours(vertices, edges)):
        lines += [str(len(row)), *(f"{vertex} {to}" for to in row)]
    return "\n".join(lines) + "\n"


def gfu_text(vertices: int, edges: Edges) -> str:
    """Write RI's format for undirected graphs: each vertex with the label 0, then each edge once."""
    return "\n".join(
        ["#graph", str(vertices), *["0"] * vertices, str(len(edges)), *(f"{u} {v}" for u, v in edges), ""]
    )


def lad_text(vertices: int, edges: Edges) -> str:
    """Write LAD's format: the degree and the neighbours of each vertex."""
    rows = neighbours(vertices, edges)
    return "\n".join([str(vertices), *(" ".join(map(str, [len(row), *row])) for row in rows), ""])


def vf3_arguments(induced: bool, pattern: Path, target: Path) -> list[str | Path]:
    return ["-r", "0", *["-e"] * (not induced), pattern, target]


SOLVERS = {
    "VF3": Solver(vf_text, vf3_arguments, r"^(\d+) \S+ \S+$"),
    "VF3L": Solver(vf_text, vf3_arguments, r"^(\d+) \S+ \S+$"),
    "RI": Solver(
        gfu_text,
        lambda induced, pattern, target: ["ind" if induced else "mono", "gfu", target, pattern],
        r"^number of found matches: (\d+)$",
    ),
    "Glasgow": Solver(
        lad_text,
        lambda induced, pattern, target: [
            "--count-solutions",
            *("--format", "lad"),
            *["--induced"] * induced,
            *(pattern, target),
        ],
        r"^solution_count = (\d+)$",
    ),
}
