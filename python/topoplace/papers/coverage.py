"""Which parts of a paper are reproduced: algorithms, equations, figures and tables, with their code and their rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


def page(paper: str, title: str, parts: Sequence[Part]) -> str:
    """Return the table of a paper's parts as a page in Markdown.

    paper: name of the subcommand of `topoplace papers`. title: of the paper.
    """
    return "\n".join(_lines(paper, title, parts)) + "\n"


def _lines(paper: str, title: str, parts: Sequence[Part]) -> Iterator[str]:
    yield f"# {title}"
    yield ""
    yield f"Every algorithm, equation, figure and table of the paper. `topoplace papers {paper}` prints the rows."
    yield f"This page is generated from `papers/{paper}/coverage.py` by `python tools/write_coverage.py`."
    yield ""
    yield "| part | what it shows | code | rows | remarks |"
    yield "|---|---|---|---|---|"
    for part in parts:
        code = ", ".join(f"`{path}`" for path in part.code) or "–"
        yield f"| {part.name} | {part.content} | {code} | {', '.join(part.rows) or '–'} | {part.note} |"
