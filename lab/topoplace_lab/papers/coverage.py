"""The reproduced parts of a paper: algorithms, equations, figures and tables, with their code and their rows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """One algorithm, equation, figure or table of a paper, or a passage of its text.

    name: the number in the paper. content: what the part shows. code: the files that implement it, as paths in this
    package. rows: ids, or common beginnings of ids, of the rows that compare it. note: what is left out, or why nothing
    implements or compares the part.
    """

    name: str
    content: str
    code: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        if not self.rows and not self.note:
            raise ValueError(f"{self.name}: neither a row nor a note")
