"""Lines of the C++ library that the C++ tests execute, counted by gcov in its own build (build/coverage)."""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path

from trust.kept import REPOSITORY, SCRATCH, Bar, Kept, run, share, table

NAME = "kernels"
HELP = "C++: lines, by gcov (a quarter of an hour of CPU time)"
LEAST = 95.0
BUILD = REPOSITORY / "build/coverage"
HEADERS = "cpp/include"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command line says about this part."""
    parser.add_argument("--jobs", type=int, default=1, help="files compiled at the same time (1)")


def measure(given: argparse.Namespace, kept: Kept) -> Kept:
    """Build, run the C++ tests and the replays of the fuzz corpus, and return lines and lines executed by folder."""
    for old in BUILD.rglob("*.gcda"):
        old.unlink()
    run(["cmake", "--preset", "coverage", "--log-level=WARNING"])
    run(["cmake", "--build", "--preset", "coverage", f"-j{given.jobs}"])
    run(["ctest", "--preset", "coverage"])
    SCRATCH.mkdir(parents=True, exist_ok=True)
    made = SCRATCH / "kernels.json"
    chosen = [f"--filter={REPOSITORY}/{folder}/" for folder in ("cpp/src", HEADERS)]
    gcovr = [sys.executable, "-m", "gcovr", "--root", str(REPOSITORY), "--merge-lines", *chosen]
    run([*gcovr, "--json-summary", str(made), str(BUILD)])
    return {"folders": folders(json.loads(made.read_text("utf-8")))}


def folders(report: Kept) -> dict[str, list[int]]:
    """Return lines and lines executed of each kernel's folder, the public headers as one."""
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for file in report["files"]:
        parts = Path(file["filename"]).parts
        counts = found[HEADERS if parts[1] == "include" else "/".join(parts[:3])]
        counts[0] += file["line_total"]
        counts[1] += file["line_covered"]
    return dict(sorted(found.items()))


def total(kept: Kept) -> list[int]:
    """Return the counts of all folders together."""
    return [sum(column) for column in zip(*kept["folders"].values(), strict=True)]


def bars(kept: Kept) -> list[Bar]:
    """Return the line of the first table."""
    lines, executed = total(kept)
    reached = 100 * executed >= LEAST * lines
    return [
        Bar(
            "lines of the C++ kernels run by the C++ tests", f"{LEAST:.0f} %", share(executed, lines), reached
        )
    ]


def section(kept: Kept) -> str:
    """Return the section of the page."""
    everything = {**{f"`{name}`": counts for name, counts in kept["folders"].items()}, "**all**": total(kept)}
    rows = [(name, lines, share(executed, lines)) for name, (lines, executed) in everything.items()]
    return f"""## C++: lines

Measured by gcov in a build without optimisation, with the C++ tests alone, the replay of the fuzz corpus among them.
Invariants that debug builds check (`is_consistent`) are off in it; their lines count as not executed. The tests in
Python, which ask the same kernels for more, do not count here. A line of a template counts once, however often it is
compiled.

{table(("folder", "lines", "executed"), rows)}"""
