"""The rows of a text of jobs: how many became jobs, how many were skipped and why, and which fields are not used."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

_WHERE: Final = re.compile(r"^(line [0-9]+|jobs?\[?[^:]*): ")
_SHOWN: Final = 3
"""Limit on the reasons, and on the bad rows, that one line shows in full."""
_KEPT: Final = 1000
"""Limit on the messages about bad rows that a report keeps."""


@dataclass(frozen=True, slots=True)
class RowReport:
    """The rows of a text that was read as a workload."""

    rows: int
    """Number of rows with content, without headers and comments."""
    jobs: int
    """Number of jobs in the workload."""
    skipped: Mapping[str, int] = field(default_factory=dict[str, int])
    """Number of rows that became no job, by reason."""
    unused: tuple[str, ...] = ()
    """Names of fields that the text has and the workload does not."""
    bad: tuple[str, ...] = ()
    """The fault of each skipped bad row, with its line number; only the first 1,000."""
    assumed: tuple[str, ...] = ()
    """Facts about jobs that neither the text nor an option states, and the assumption made instead."""

    def __str__(self) -> str:
        """Return one line that says all of this."""
        parts = [f"{self.rows} rows, {self.jobs} jobs"]
        if self.skipped:
            ordered = sorted(self.skipped.items(), key=lambda entry: (-entry[1], entry[0]))
            shown = [f"{count} {reason}" for reason, count in ordered[:_SHOWN]]
            others = sum(count for _, count in ordered[_SHOWN:])
            parts.append(
                "skipped: " + ", ".join([*shown, *([f"{others} for other reasons"] if others else [])])
            )
        if self.bad:
            where = dict.fromkeys(found[1] if (found := _WHERE.match(text)) else text for text in self.bad)
            parts.append("bad: " + ", ".join(list(where)[:_SHOWN]) + ", …" * (len(where) > _SHOWN))
        if self.unused:
            parts.append(f"fields not used: {', '.join(self.unused)}")
        if self.assumed:
            parts.append(f"assumed: {', '.join(self.assumed)}")
        return "; ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a dictionary that JSON can represent."""
        return {
            "rows": self.rows,
            "jobs": self.jobs,
            "skipped": dict(self.skipped),
            "unused": list(self.unused),
            "bad": list(self.bad),
            "assumed": list(self.assumed),
        }


class RowCounter:
    """Counts rows while they are read, and skips bad ones if asked to."""

    def __init__(self, *, skip_bad_rows: bool = False) -> None:
        self.skip_bad_rows = skip_bad_rows
        self.rows = 0
        self._skipped: Counter[str] = Counter()
        self._unused: dict[str, None] = {}
        self._bad: list[str] = []

    @contextmanager
    def row(self) -> Generator[None]:
        """Count a row and read it in this block; a ValueError in it skips the row if bad rows are skipped."""
        self.rows += 1
        with self.guarded():
            yield

    @contextmanager
    def guarded(self) -> Generator[None]:
        """Continue with a row that was counted before; a ValueError in the block skips it if bad rows are skipped."""
        try:
            yield
        except ValueError as error:
            if not self.skip_bad_rows:
                raise
            self.skip(f"bad ({_WHERE.sub('', str(error))})")
            if len(self._bad) < _KEPT:
                self._bad.append(str(error))

    def skip(self, reason: str) -> None:
        """Note that the row, which `row` has counted, becomes no job."""
        self._skipped[reason] += 1

    def ignore(self, fields: Iterable[str]) -> None:
        """Note fields that are not used."""
        self._unused.update(dict.fromkeys(fields))

    def report(self, jobs: int, assumed: Iterable[str] = ()) -> RowReport:
        """Return the report of all rows so far, of which `jobs` became jobs.

        assumed: the assumptions about facts that the text does not state.
        """
        unused = tuple(sorted(self._unused))
        return RowReport(self.rows, jobs, dict(self._skipped), unused, tuple(self._bad), tuple(assumed))
