"""Lines and branches of the packages that the Python tests execute.

Each folder of tests runs in its own process, and what it executed is kept in build/trust/coverage until the folder
runs again. Give folders to run only these; after a change of the package, run all.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from trust.kept import REPOSITORY, SCRATCH, Bar, Kept, run, share, table

NAME = "coverage"
HELP = "Python: lines and branches, by coverage.py (half an hour of CPU time)"
LEAST = 95.0
FOLDERS = ("python", "lab", "hosts")
RECORDED = SCRATCH / "coverage"
DATA = "data"  # the files of processes begin with this name
# Its interrupts arrive within coverage.py's own lock, too, and wait there for ever.
UNRECORDED = "tests/cluster/test_interrupts.py"
SOME_FAILED = 1  # what pytest returns
COUNTS = ("num_statements", "covered_lines", "num_branches", "covered_branches")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command line says about this part."""
    parser.add_argument("tests", nargs="*", type=Path, help="folders of tests to run; all by default")
    parser.add_argument(
        "--without", nargs="*", default=[], metavar="TESTS", help="leave these out; the page says so"
    )


def measure(given: argparse.Namespace, kept: Kept) -> Kept:
    """Run tests under coverage.py and return the counts of each package."""
    everything = [
        path
        for tests in ("tests", "lab/tests", "hosts/tests")
        for path in sorted((REPOSITORY / tests).iterdir())
        if path.name.startswith("test_") or any(path.glob("**/test_*.py"))
    ]
    if not given.tests:
        shutil.rmtree(RECORDED, ignore_errors=True)
    for path in [path.resolve() for path in given.tests] or everything:
        record(path, given.without)
    return {
        "without": given.without,
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "packages": packages(report()),
    }


def record(tests: Path, without: Sequence[str]) -> None:
    """Run the tests in a file or folder, and record what they execute, in place of what was recorded of them.

    A failure is printed and no more: recording takes time, so that tests which limit times may fail.
    """
    folder = RECORDED / tests.relative_to(REPOSITORY).with_suffix("").as_posix().replace("/", "-")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pytest = ["pytest", "-q", "-n", "0", "--hypothesis-seed=0", "-p", "no:cacheprovider"]
    environment = {**os.environ, "COVERAGE_FILE": str(folder / DATA)}
    ignored = [f"--ignore={name}" for name in (UNRECORDED, *without)]
    run(
        [sys.executable, "-m", "coverage", "run", "-m", *pytest, *ignored, str(tests)],
        environment,
        also_good=SOME_FAILED,
    )


def report() -> Kept:
    """Return coverage.py's report on all that was recorded."""
    whole, made = RECORDED / DATA, RECORDED / "report.json"
    coverage = [sys.executable, "-m", "coverage"]
    folders = [str(path) for path in sorted(RECORDED.iterdir()) if path.is_dir()]
    run([*coverage, "combine", "--keep", "-q", f"--data-file={whole}", *folders])
    run([*coverage, "json", "-q", f"--data-file={whole}", "-o", str(made)])
    return dict(json.loads(made.read_text("utf-8")))


def packages(report: Kept) -> dict[str, list[int]]:
    """Return lines, lines executed, branches and branches taken of each package."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for file, about in report["files"].items():
        folder = next(one for one in FOLDERS if Path(file).is_relative_to(one))
        package = ".".join(Path(file).relative_to(folder).parent.parts[:2])
        found[package].update({name: about["summary"][name] for name in COUNTS})
    return {package: [counts[name] for name in COUNTS] for package, counts in sorted(found.items())}


def total(kept: Kept) -> list[int]:
    """Return the counts of all packages together."""
    return [sum(column) for column in zip(*kept["packages"].values(), strict=True)]


def bars(kept: Kept) -> list[Bar]:
    """Return the line of the first table."""
    _, _, branches, taken = total(kept)
    reached = 100 * taken >= LEAST * branches
    return [Bar("Python branches taken by the tests", f"{LEAST:.0f} %", share(taken, branches), reached)]


def section(kept: Kept) -> str:
    """Return the section of the page."""
    rows = [(f"`{package}`", *row(counts)) for package, counts in kept["packages"].items()]
    left_out = ", ".join(f"`{name}`" for name in kept["without"])
    others = f", and this time {left_out}, so that the figures are lower bounds" if left_out else ""
    return f"""## Python: lines and branches

Measured by coverage.py under Python {kept["python"]}, with one run of the Python tests (`--hypothesis-seed=0`). It
leaves out `{UNRECORDED}`, whose interrupts cannot be recorded{others}.
Programs that a test starts count, unless the test gives them its own environment or kills them. A branch is a way
from one line to another; one that is never taken is a case that no test tries.

Not counted are the compiled module `_core`, blocks under `if TYPE_CHECKING`, which never run, and the bodies `...` of
protocols and overloads.

{table(("package", "lines", "executed", "branches", "taken"), [*rows, ("**all**", *row(total(kept)))])}"""


def row(counts: list[int]) -> tuple[int | str, ...]:
    """Return the cells for lines, their share, branches, their share."""
    lines, executed, branches, taken = counts
    return lines, share(executed, lines), branches, share(taken, branches)
