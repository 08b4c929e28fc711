"""What was measured for the page of benchmarks, kept as JSON: times and answers, and the machine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from duels.duel import Outcome
from duels.page_text import Machine, page
from duels.policy_times import Times
from timing.measure import Spread

KEPT = Path(__file__).with_name("kept.json")


class Record(NamedTuple):
    """A measurement. note: what the reader of these figures has to know beside the machine."""

    machine: Machine
    outcomes: Sequence[Outcome]
    times: Sequence[Times]
    note: str = ""

    def write(self, path: Path) -> None:
        """Write the record, a row a line."""
        parts = (
            json.dumps(self.machine._asdict()),
            _lines(one._asdict() for one in self.outcomes),
            _lines(one._asdict() for one in self.times),
            json.dumps(self.note),
        )
        fields = (f'"{name}": {part}' for name, part in zip(self._fields, parts, strict=True))
        path.write_text("{" + ",\n".join(fields) + "}\n", "utf-8")

    def page(self) -> str:
        """Return the page."""
        return page(self.machine, self.outcomes, self.times) + (f"\n{self.note}\n" if self.note else "")


def read(path: Path = KEPT) -> Record:
    """Read a record that `Record.write` has written."""
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    outcomes = [
        Outcome(**{**row, "ours": Spread(*row["ours"]), "ratio": row["ratio"] and Spread(*row["ratio"])})
        for row in found["outcomes"]
    ]
    times = [
        Times(row["policy"], row["num_gpus"], Spread(*row["microseconds"]), Spread(*row["ratio"]))
        for row in found["times"]
    ]
    return Record(Machine(**found["machine"]), outcomes, times, found["note"])


def _lines(rows: Iterable[dict[str, Any]]) -> str:
    return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]"
