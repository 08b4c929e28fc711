"""Programs that count mappings of a pattern in a target: how they are built and called, and what they print."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from native.sources import Source, compiled, fetched

Edges = Sequence[tuple[int, int]]

VF3LIB = Source(
    "MiviaLab/vf3lib",
    "4d82c0f5cc65e7de10278225d02d370b1950b0b4",
    ("include", "main.cpp"),
    "e7e1a65de5d0a1cb19cac5f0a1d2772338907e8ca9cfe0aa7294871c82642823",
)
RI = Source(
    "InfOmics/RI",
    "350d4bbe2e7f750b250eece523d6f13ec7fb1d1f",
    ("include", "rilib", "ri3.cpp"),
    "10fabbdc7a224f993c8213b3a9edd08852c4589656179a2ef7bbf38c858fa1c1",
)
GLASGOW = Source(
    "ciaranm/glasgow-subgraph-solver",
    "1217f5b82ce62c2c2f227002eedb029765da74f3",
    ("gss", "src"),
    "cdc1313f934515016d9c120436389acaeae57a4dd81129841761f85156efd1c8",
)
CXXOPTS = Source(
    "jarro2783/cxxopts",
    "44380e5a44706ab7347f400698c703eb2a196202",
    ("include",),
    "fee7e739a421d99ab8711cd35b85af877f46d048a027712d31f60e2c9040b5f2",
)


class Solver(NamedTuple):
    """A program that counts the mappings of an undirected pattern without labels."""

    built: Callable[[Path], Path]
    """Builds the program in a folder, and returns it."""
    release: str
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


def vf3(variant: str) -> Callable[[Path], Path]:
    """Return what builds a variant of VF3."""

    def built(build: Path) -> Path:
        folder = fetched(VF3LIB, build)
        return compiled(folder / variant.lower(), "-std=c++11", "-Iinclude", f"-D{variant}", "main.cpp")

    return built


def ri(build: Path) -> Path:
    return compiled(fetched(RI, build) / "ri", "-Irilib", "-Iinclude", "ri3.cpp")


def glasgow(build: Path) -> Path:
    folder, options = fetched(GLASGOW, build), fetched(CXXOPTS, build)
    files = [
        str(path.relative_to(folder))
        for path in sorted(folder.glob("gss/**/*.cc"))
        if "_test" not in path.stem
    ]
    flags = ("-std=c++20", "-pthread", "-I.", f"-I{options / 'include'}")
    libraries = ("-lgmpxx", "-lgmp")
    return compiled(
        folder / "glasgow_subgraph_solver",
        *flags,
        *files,
        "src/glasgow_subgraph_solver.cc",
        *libraries,
    )


def vf3_arguments(induced: bool, pattern: Path, target: Path) -> list[str | Path]:
    return ["-r", "0", *["-e"] * (not induced), pattern, target]


SOLVERS = {
    "VF3": Solver(vf3("VF3"), VF3LIB.commit[:7], vf_text, vf3_arguments, r"^(\d+) \S+ \S+$"),
    "VF3L": Solver(vf3("VF3L"), VF3LIB.commit[:7], vf_text, vf3_arguments, r"^(\d+) \S+ \S+$"),
    "RI": Solver(
        ri,
        "3.6",
        gfu_text,
        lambda induced, pattern, target: ["ind" if induced else "mono", "gfu", target, pattern],
        r"^number of found matches: (\d+)$",
    ),
    "Glasgow": Solver(
        glasgow,
        GLASGOW.commit[:7],
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
