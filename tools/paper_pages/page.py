"""A paper's page and the index of all pages, as Markdown: pure functions of the records and the papers' parts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from paper_pages.coverage import Paper, Part
from paper_pages.interval_plot import Compared
from paper_pages.record import Record, RecordRow
from topoplace_lab.papers.claims import FITTED, IDENTITY, RESULTS

MACHINE: Final = "of this machine"
"""The index's heading for rows whose values depend on the machine, so that verdicts may differ elsewhere."""
COLUMNS: Final = (*RESULTS, IDENTITY, FITTED, MACHINE)
_PLACEHOLDER: Final = re.compile(r"\{([^{}]+)\}")
_INTERVAL: Final = re.compile(r" \[[^\]]*\]")


def counts(rows: Sequence[RecordRow]) -> Counter[str]:
    """Return the number of rows with each verdict; those that depend on the machine count as `MACHINE`."""
    return Counter(MACHINE if row.machine else row.verdict for row in rows)


def page(paper: Paper, record: Record, pictures: Sequence[str]) -> str:
    """Return a paper's page. pictures: names of picture files next to the page.

    Raises KeyError if the introduction names a row that the record does not have.
    """
    return "\n".join(_page(paper, record, pictures)) + "\n"


def _page(paper: Paper, record: Record, pictures: Sequence[str]) -> Iterator[str]:
    ours = {row.id: _INTERVAL.sub("", row.ours) for row in record.rows}
    yield f"# {paper.title}"
    yield ""
    yield _PLACEHOLDER.sub(lambda found: _cell(ours[" ".join(found[1].split())]), paper.introduction)
    yield ""
    yield _summary(record.rows)
    yield f"`topoplace papers {paper.name}` computes the rows, and `make docs` this page from those that are kept."
    if record.cpu_minutes is None:
        yield "**The rows are those of a quick run** (`--quick`), with fewer seeds and jobs."
    for name in pictures:
        yield ""
        yield f"![Our numbers over the paper's, a line each]({name})"
    yield ""
    yield "## Claims"
    yield ""
    yield "[How to read the verdicts](README.md#verdicts). In brackets: the 95 % interval of a mean over seeds."
    yield "† marks values that depend on the machine, such as times."
    yield ""
    yield "| row | claim | paper | ours | verdict | why |"
    yield "|---|---|---|---|---|---|"
    for row in record.rows:
        yield _row(row, paper.parts)
    yield ""
    yield "## Parts of the paper"
    yield ""
    yield "Every algorithm, equation, figure and table, with its code and its rows."
    yield ""
    yield "| part | what it shows | code | rows | remarks |"
    yield "|---|---|---|---|---|"
    for part in paper.parts:
        code = ", ".join(f"`{path}`" for path in part.code) or "–"
        yield f"| {part.name} | {part.content} | {code} | {', '.join(part.rows) or '–'} | {part.note} |"


def index(papers: Sequence[Paper], records: Mapping[str, Record]) -> str:
    """Return the page that counts the verdicts of all papers."""
    return "\n".join(_index(papers, records)) + "\n"


def _index(papers: Sequence[Paper], records: Mapping[str, Record]) -> Iterator[str]:
    yield _INDEX
    yield f"| paper | {' | '.join(COLUMNS)} | CPU time, minutes |"
    yield "|---|" + "---|" * (len(COLUMNS) + 1)
    for paper in papers:
        record = records[paper.name]
        found = counts(record.rows)
        numbers = " | ".join(str(found[name]) for name in COLUMNS)
        spent = "quick run" if record.cpu_minutes is None else f"{record.cpu_minutes:g}"
        yield f"| [{paper.title}]({paper.name}.md) | {numbers} | {spent} |"
    yield ""
    yield "CPU times are of user and system together on a cloud machine. With `--quick` and its fewer seeds,"
    yield "`topoplace papers NAME` takes less than a minute of it for each paper."


def compared(rows: Sequence[RecordRow]) -> list[Compared]:
    """Return our numbers, in result and fitted rows, that a picture can show next to the paper's."""
    return [
        Compared(f"{row.id} {one.series}".strip(), one.paper, one.reproduced, one.ours, one.series)
        for row in rows
        if row.verdict != IDENTITY and not row.machine
        for one in row.numbers
        if one.paper
    ]


def _summary(rows: Sequence[RecordRow]) -> str:
    found = counts(rows)
    results = ", ".join(f"{found[name]} {name}" for name in RESULTS)
    text = f"{sum(found[name] for name in RESULTS)} results: {results}."
    others = [f"{found[name]} {name}" for name in (IDENTITY, FITTED, MACHINE) if found[name]]
    return f"**{text}** Counted apart: {', '.join(others)}." if others else f"**{text}**"


def _row(row: RecordRow, parts: Sequence[Part]) -> str:
    where = [name for name in _parts_of(row, parts) if name not in row.quantity]
    claim = f"{row.quantity} ({', '.join(where)})" if where else row.quantity
    verdict = f"{row.verdict} †" if row.machine else row.verdict
    return f"| {' | '.join(map(_cell, (row.id, claim, row.paper, row.ours, verdict, row.why)))} |"


def _parts_of(row: RecordRow, parts: Sequence[Part]) -> list[str]:
    """Return the names of the parts that a row compares: those that list the longest beginning of its id."""
    matches = [(len(start), part.name) for part in parts for start in part.rows if row.id.startswith(start)]
    longest = max((length for length, _ in matches), default=0)
    return [name for length, name in matches if length == longest]


def _cell(text: str) -> str:
    """Return a text as a cell of a table; what stands between backquotes stays as it is."""
    pieces = text.replace("|", "\\|").split("`")
    return "`".join(piece if i % 2 else _escaped(piece) for i, piece in enumerate(pieces))


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


_INDEX: Final = """\
# Five papers, claim by claim

topoplace contains the policies of five published systems. `topoplace papers NAME` repeats their experiments and
compares each number that a paper states with ours. The pages list all claims, with a verdict and its reason.

## Verdicts

A verdict follows from our numbers by a rule that stands next to it, and a test shows numbers that fail each rule. Most
simulated numbers are means over ten lists of jobs, and the whole 95 % interval has to satisfy the rule.

| verdict | meaning |
|---|---|
| reproduced | our number is the paper's, within the stated tolerance |
| order only | the alternatives come in the paper's order, but the numbers differ, or the paper states none |
| differs | neither |
| not comparable | the paper has no such number, or our interval reaches across the rule's bound |
| identity | no result: arithmetic on the paper's numbers, a constant or a bound, which could not come out otherwise |
| fitted | no result: our free parameters were chosen for it; the row names them |

Values that depend on the machine, such as times of decisions, are marked †. They are counted apart, as the
verdict may be another on your machine.

## Counts
"""
