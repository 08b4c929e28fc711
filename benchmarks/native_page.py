"""Measure our kernels beside programs that pip cannot install, and write their part of docs/benchmarks.md.

python benchmarks/native_page.py           fetch, build, measure, write
python benchmarks/native_page.py --text    only write the page's part from what was measured last

It fetches VF3, RI and the Glasgow Subgraph Solver from GitHub at fixed commits and builds them in build/native, which
takes git, a C++20 compiler and libgmp; TOPOPLACE_NATIVE_SOURCES names another place (see benchmarks/native/sources.py).
METIS and Scotch are called in this process if the system has their libraries (Debian: apt install metis scotch).
"""

from __future__ import annotations

import argparse
import ctypes.util
import datetime
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from duels.duel import Duel, Outcome, fight, outcome
from duels.kernel_duels import GRAPHS, halved
from duels.page_text import this_machine, with_native
from libraries import partition_libraries
from native.kept import Native
from native.solvers import SOLVERS, Solver
from native.subgraph_questions import COUNTED, GROUPS, LISTED, figures, row
from page import PAGE

BUILD = Path(__file__).parents[1] / "build/native"
SECONDS = 2.0
BISECTORS = ("METIS", "Scotch")


def main(arguments: list[str]) -> int:
    """Measure and write; return 1 if a program could not be built."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--text", action="store_true", help="measure nothing")
    missing: list[str] = []
    if not parser.parse_args(arguments).text:
        machine = this_machine()
        programs = dict(built(missing))
        outcomes = [*subgraphs(programs, missing), *splits(missing)]
        packages = {"topoplace": machine.packages["topoplace"], **releases(programs)}
        Native(str(datetime.date.today()), machine._replace(packages=packages), outcomes).write()
    if (kept := Native.read()) is None:
        parser.error("nothing was measured yet")
    PAGE.write_text(with_native(PAGE.read_text(encoding="utf-8"), *kept), encoding="utf-8")
    return int(bool(missing))


def built(missing: list[str]) -> Iterator[tuple[str, tuple[Solver, Path]]]:
    """Yield each solver that can be built, by name, and its program; note the others."""
    BUILD.mkdir(parents=True, exist_ok=True)
    for name, solver in SOLVERS.items():
        print(f"{name}: fetched and built", file=sys.stderr, flush=True)
        try:
            yield name, (solver, solver.built(BUILD))
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            missing.append(name)


def subgraphs(programs: Mapping[str, tuple[Solver, Path]], missing: list[str]) -> Iterator[Outcome]:
    """Yield how our kernels compare with each program, by kind of question."""
    for group in GROUPS:
        print(group.name, file=sys.stderr, flush=True)
        found = [figures(question, group.induced, programs) for question in group.questions()]
        for kernel, how in ((LISTED, "listed"), (COUNTED, "counted")):
            for name in programs:
                duel = Duel(kernel, f"{group.name}: {how}", [name], missing, list)
                yield outcome(duel, [row(one, kernel, name) for one in found])


def splits(missing: list[str]) -> Iterator[Outcome]:
    """Yield how `bipartition` compares with METIS and Scotch."""
    what = f"halves of {', '.join(GRAPHS)}, 3 % imbalance"
    for name in BISECTORS:
        if not partition_libraries.LIBRARIES[name].installed:
            missing.append(name)
            continue
        cases = partial(halved, [name])
        yield fight(Duel("bipartition", f"{what}: time", [name], missing, cases), SECONDS)
        yield fight(Duel("bipartition", f"{what}: cut", [name], missing, cases, by_answer=True), SECONDS)


def releases(programs: Mapping[str, tuple[Solver, Path]]) -> dict[str, str]:
    """Return what was compared with: releases, or the first digits of commits; files of libraries."""
    found = {name: solver.release for name, (solver, _) in programs.items()}
    for name in BISECTORS:
        if library := ctypes.util.find_library(partition_libraries.LIBRARIES[name].system):
            found[name] = f"({library})"
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
