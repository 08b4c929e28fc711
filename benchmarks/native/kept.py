"""What `make bench-native` measured last, kept beside the page: `make bench` alone does not lose it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from duels.duel import Outcome
from duels.page_text import Machine
from timing.measure import Spread

KEPT = Path(__file__).parents[2] / "docs/benchmarks-native.json"


class Native(NamedTuple):
    """Rows beside native programs, and where and when they were measured."""

    date: str
    machine: Machine
    outcomes: Sequence[Outcome]

    @classmethod
    def read(cls, path: Path = KEPT) -> Native | None:
        """Return what a file keeps; None if there is none."""
        if not path.exists():
            return None
        kept = json.loads(path.read_text(encoding="utf-8"))
        return cls(kept["date"], Machine(**kept["machine"]), [outcome_of(row) for row in kept["outcomes"]])

    def write(self, path: Path = KEPT) -> None:
        """Write all of it to a file."""
        rows = [
            {**one._asdict(), "ours": one.ours._asdict(), "ratio": one.ratio and one.ratio._asdict()}
            for one in self.outcomes
        ]
        kept = {"date": self.date, "machine": self.machine._asdict(), "outcomes": rows}
        path.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def outcome_of(row: dict[str, object]) -> Outcome:
    """Return a kept row."""
    outcome = Outcome(**row)  # type: ignore[arg-type]
    spreads = (Spread(**row[key]) if row[key] else None for key in ("ours", "ratio"))  # type: ignore[arg-type]
    ours, ratio = spreads
    assert ours is not None
    return outcome._replace(ours=ours, ratio=ratio)
