"""Which parts of a paper are reproduced: algorithms, equations, figures and tables, with their code and their rows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """One algorithm, equation, figure or table of a paper, or a passage of its text.

    name: its number in the paper. content: what it shows. code: the files of this package that implement it, as paths
    in the package. rows: ids of the rows that compare it, or what several ids begin with. note: why nothing implements
    or compares it, or what is left out.
    """

    name: str
    content: str
    code: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        if not self.rows and not self.note:
            raise ValueError(f"{self.name}: neither a row nor a note")
