"""The rows of a paper's last full run, kept in `lab/tests/papers/kept/NAME.json`; pages and pictures come from it.

The rows of a quick run are kept, too. Tests repeat this run and compare: whoever changes a row has to run `make
papers`. Rows whose values depend on the machine are kept, but not compared.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from topoplace_lab.papers.claims import PaperClaim
from topoplace_lab.papers.rules import Ranges
from topoplace_lab.simulate.samples import Sample

_DIGITS: Final = 6
"""Significant digits of numbers in the file."""


@dataclass(frozen=True, slots=True)
class Number:
    """One of the numbers that a row compares.

    paper: the paper's number. reproduced: the range that counts as reproduced. ours: mean, and the ends of its
    interval. series: what the number belongs to in its row, such as a policy; "" if it is the only one.
    """

    paper: float
    reproduced: tuple[float, float]
    ours: tuple[float, float, float]
    series: str = ""


@dataclass(frozen=True, slots=True)
class RecordRow:
    """A kept row: the fields of `PaperClaim`, whether it depends on the machine, and its numbers."""

    id: str
    quantity: str
    paper: str
    ours: str
    verdict: str
    why: str
    machine: bool = False
    numbers: tuple[Number, ...] = ()

    @classmethod
    def of(cls, claim: PaperClaim) -> RecordRow:
        """Return the row to keep for a claim."""
        return cls(**claim.to_dict(), machine=claim.machine, numbers=_numbers(claim))

    @property
    def compared(self) -> tuple[str, ...]:
        """Return the texts that must be the same in each run."""
        if self.machine:
            return self.id, self.quantity, self.paper
        return self.id, self.quantity, self.paper, self.ours, self.verdict, self.why


@dataclass(frozen=True, slots=True)
class Record:
    """The results of the last run of a reproduction: its rows, and those of a quick run.

    cpu_minutes: user and system CPU time of the full run. None if there was only a quick run; `rows` are then those of
    the quick run.
    """

    cpu_minutes: float | None
    rows: tuple[RecordRow, ...]
    quick: tuple[RecordRow, ...] = field(repr=False)

    @classmethod
    def of(cls, rows: Iterable[PaperClaim], quick: Iterable[PaperClaim], cpu_minutes: float) -> Record:
        """Return the record of a full and a quick run."""
        return cls(round(cpu_minutes, 1), tuple(map(RecordRow.of, rows)), tuple(map(RecordRow.of, quick)))

    @classmethod
    def of_quick(cls, claims: Iterable[PaperClaim]) -> Record:
        """Return the record of a quick run alone."""
        rows = tuple(map(RecordRow.of, claims))
        return cls(None, rows, rows)

    def write(self, path: Path) -> None:
        """Write the record as JSON, a row a line."""
        parts = [f'{{"cpu_minutes": {json.dumps(self.cpu_minutes)},\n"rows": [', _lines(self.rows)]
        parts += ['],\n"quick": [', _lines(self.quick), "]}\n"]
        path.write_text("".join(parts), encoding="utf-8")


def read(path: Path) -> Record:
    """Read a record that `Record.write` has written."""
    found = json.loads(path.read_text("utf-8"))
    return Record(found["cpu_minutes"], *(tuple(map(_row, found[name])) for name in ("rows", "quick")))


def differences(kept: Iterable[RecordRow], claims: Iterable[PaperClaim]) -> list[str]:
    """Return a sentence for each row that is new, gone or different from the kept one."""
    before = {row.id: row for row in kept}
    now = {claim.id: RecordRow.of(claim) for claim in claims}
    found = [f"{name}: no such row is kept" for name in now.keys() - before.keys()]
    found += [f"{name}: the row is gone" for name in before.keys() - now.keys()]
    for name in before.keys() & now.keys():
        if before[name].compared != now[name].compared:
            found.append(f"{name}: {now[name].compared}, kept is {before[name].compared}")
    return sorted(found)


def _numbers(claim: PaperClaim) -> tuple[Number, ...]:
    """Return the numbers of a claim that stand next to one of the paper's."""
    if not isinstance(claim.rule, Ranges) or claim.rule.reproduced is None:
        return ()
    series = claim.series or ("",) * len(claim.rule.paper)
    limited = zip(claim.rule.paper, claim.rule.reproduced, claim.values, series, strict=False)
    return tuple(
        Number(_rounded(paper), (_rounded(low), _rounded(high)), _ends(value), name)
        for paper, (low, high), value, name in limited
    )


def _ends(value: object) -> tuple[float, float, float]:
    sample = value if isinstance(value, Sample) else Sample((float(value),))  # type: ignore[arg-type]
    return _rounded(sample.mean), _rounded(sample.low), _rounded(sample.high)


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _lines(rows: Sequence[RecordRow]) -> str:
    return "\n" + ",\n".join(json.dumps(_kept(row), ensure_ascii=False) for row in rows) + "\n"


def _kept(row: RecordRow) -> dict[str, Any]:
    """Return the fields of a row that are not their defaults; None stands for infinity, which JSON has not."""
    kept = {each.name: getattr(row, each.name) for each in fields(row)}
    kept["numbers"] = [
        [one.paper, *one.reproduced, *(None if math.isinf(each) else each for each in one.ours), one.series]
        for one in row.numbers
    ]
    return {name: value for name, value in kept.items() if value or name not in ("machine", "numbers")}


def _row(kept: dict[str, Any]) -> RecordRow:
    numbers = (
        Number(paper, (low, high), tuple(math.inf if each is None else each for each in ours), series)  # type: ignore[arg-type]
        for paper, low, high, *ours, series in kept.pop("numbers", ())
    )
    return RecordRow(**kept, numbers=tuple(numbers))
