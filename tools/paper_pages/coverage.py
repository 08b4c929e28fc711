"""The reproduced parts of a paper: algorithms, equations, figures and tables, with their code and their rows."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Part:
    """One algorithm, equation, figure or table of a paper, or a passage of its text.

    name: the number in the paper. content: what the part shows. code: the files that implement it, as paths in a
    package. rows: ids, or common beginnings of ids, of the rows that compare it. note: what is left out, or why nothing
    implements or compares the part.
    """

    name: str
    content: str
    code: Sequence[str] = ()
    rows: Sequence[str] = ()
    note: str = ""

    def __post_init__(self) -> None:
        if not self.rows and not self.note:
            raise ValueError(f"{self.name}: neither a row nor a note")


@dataclass(frozen=True, slots=True)
class Paper:
    """The contents of a paper's page, rows apart.

    name: the subcommand of `topoplace papers`. title: the paper's title. introduction: the paper's question and
    findings, the comparison, and its outcome. `{ID}` stands for our values in the row of that id, without their
    intervals. parts: the paper's parts, with the code and rows of each.
    """

    name: str
    title: str
    introduction: str
    parts: Sequence[Part]


def of_paper(name: str) -> Paper:
    """Return what `NAME.toml` says of a paper."""
    table = tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text("utf-8"))
    parts = tuple(Part(**part) for part in table["parts"])
    return Paper(name, table["title"], table["introduction"], parts)
