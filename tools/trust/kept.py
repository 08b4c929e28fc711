"""What was measured, kept as JSON in measured/: a file for each part, without dates or machines."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

REPOSITORY = Path(__file__).parents[2]
FOLDER = REPOSITORY / "tools/trust/measured"
SCRATCH = REPOSITORY / "build/trust"

Kept = dict[str, Any]


class Bar(NamedTuple):
    """A line of the page's first table: what is measured, the least it should be, what it is."""

    what: str
    demanded: str
    measured: str
    reached: bool


def read(part: str) -> Kept:
    """Return what is kept of a part; empty if it was never measured."""
    path = FOLDER / f"{part}.json"
    return dict(json.loads(path.read_text("utf-8"))) if path.exists() else {}


def write(part: str, kept: Kept) -> None:
    """Keep what was measured of a part."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{part}.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")


def run(command: Sequence[str], environment: Mapping[str, str] | None = None, also_good: int = 0) -> None:
    """Run a command in the repository; end the program unless it returns 0 or `also_good`."""
    code = subprocess.run(command, cwd=REPOSITORY, env=environment, check=False).returncode
    if code not in (0, also_good):
        sys.exit(f"failed, so nothing is kept: {' '.join(command)}")


def share(part: int, whole: int) -> str:
    """Return `part` of `whole` in percent, rounded down so that it promises nothing."""
    return f"{part * 1000 // whole / 10:.1f} %" if whole else "–"


def table(heads: Sequence[str], rows: Sequence[Sequence[str | int]]) -> str:
    """Return a Markdown table."""
    texts = [
        [f"{cell:,}" if isinstance(cell, int) else cell.replace("|", "\\|") for cell in row] for row in rows
    ]
    lines = [list(heads), ["---"] * len(heads), *texts]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
