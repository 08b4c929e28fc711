"""Run the reproductions of papers and keep their records, of which the site makes a page for each paper.

python tools/write_papers.py            run all reproductions (half an hour of CPU time)
python tools/write_papers.py mapa sc17  run these only
python tools/write_papers.py --quick    run all in their quick form, a minute each; the pages say so
"""

from __future__ import annotations

import argparse
import importlib
import resource
import sys
from pathlib import Path

from paper_pages import coverage, page, record
from paper_pages.interval_plot import against_paper
from paper_pages.record import Record

from topoplace_lab.simulate.processes import Runner

NAMES = ("mapa", "sc17", "tsubame", "gpuaas", "drmaestro")
FOLDER = Path(__file__).parents[1] / "lab/tests/papers/kept"


def main(arguments: list[str]) -> None:
    """Run what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("papers", nargs="*", help=f"of {', '.join(NAMES)}; all by default")
    parser.add_argument("--jobs", type=int, default=1, help="simulations that run at the same time")
    parser.add_argument("--quick", action="store_true", help="run the quick form")
    given = parser.parse_args(arguments)
    if unknown := sorted(set(given.papers) - set(NAMES)):
        parser.error(f"no paper is called {', '.join(unknown)}")
    for name in given.papers or NAMES:
        runner = Runner(given.jobs, progress=sys.stderr.isatty())
        run(name, runner, quick=given.quick).write(FOLDER / f"{name}.json")


def run(name: str, runner: Runner, *, quick: bool = False) -> Record:
    """Run a reproduction in full and in its quick form, or in the latter only; return what that gave."""
    reproduce = importlib.import_module(f"topoplace_lab.papers.{name}").reproduce
    if quick:
        return Record.of_quick(reproduce(quick=True, runner=runner))
    began = _cpu_seconds()
    rows = reproduce(runner=runner)
    spent = _cpu_seconds() - began
    return Record.of(rows, reproduce(quick=True, runner=runner), spent / 60)


def _cpu_seconds() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def write(folder: Path) -> None:
    """Write the pages and pictures of the records to a folder."""
    papers, records = [], {}
    for name in NAMES:
        paper = coverage.of_paper(name)
        papers.append(paper)
        records[name] = record.read(FOLDER / f"{name}.json")
        picture = f"{name}.svg"
        against_paper(page.compared(records[name].rows), folder / picture)
        text = page.page(paper, records[name], [picture])
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    (folder / "README.md").write_text(page.index(papers, records), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
