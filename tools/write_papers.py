"""Write docs/papers/: a page for each paper, with the verdict on each claim.

python tools/write_papers.py            run all reproductions (half an hour of CPU time), write records and pages
python tools/write_papers.py mapa sc17  run these only
python tools/write_papers.py --quick    run all in their quick form, a minute each; the pages say so
python tools/write_papers.py --pages    write pages and pictures from the records, in a second
python tools/write_papers.py --check    say whether pages and pictures are those of the records
"""

from __future__ import annotations

import argparse
import importlib
import resource
import sys
import tempfile
from pathlib import Path

from topoplace.experiments.papers import page, record
from topoplace.experiments.papers.record import Record
from topoplace.experiments.report.interval_plot import against_paper
from topoplace.experiments.simulate.processes import Runner

NAMES = ("mapa", "sc17", "tsubame", "gpuaas", "drmaestro")
FOLDER = Path(__file__).parents[1] / "docs/papers"


def main(arguments: list[str]) -> int:
    """Write or compare what the arguments say; return 1 if a file differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("papers", nargs="*", help=f"of {', '.join(NAMES)}; all by default")
    parser.add_argument("--jobs", type=int, default=1, help="simulations that run at the same time")
    parser.add_argument("--quick", action="store_true", help="run the quick form")
    parser.add_argument("--pages", action="store_true", help="run nothing")
    parser.add_argument("--check", action="store_true", help="run and write nothing")
    given = parser.parse_args(arguments)
    if unknown := sorted(set(given.papers) - set(NAMES)):
        parser.error(f"no paper is called {', '.join(unknown)}")
    if given.check:
        return check()
    if not given.pages:
        for name in given.papers or NAMES:
            runner = Runner(given.jobs, progress=sys.stderr.isatty())
            run(name, runner, quick=given.quick).write(FOLDER / f"{name}.json")
    write(FOLDER)
    return 0


def run(name: str, runner: Runner, *, quick: bool = False) -> Record:
    """Run a reproduction in full and in its quick form, or in the latter only; return what that gave."""
    reproduce = importlib.import_module(f"topoplace.experiments.papers.{name}").reproduce
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
    """Write the pages and pictures of the records in docs/papers/ to a folder."""
    papers, records = [], {}
    for name in NAMES:
        coverage = importlib.import_module(f"topoplace.experiments.papers.{name}.coverage")
        paper = page.Paper(name, coverage.TITLE, coverage.INTRODUCTION, coverage.PARTS)
        papers.append(paper)
        records[name] = record.read(FOLDER / f"{name}.json")
        picture = f"{name}.svg"
        against_paper(page.compared(records[name].rows), folder / picture)
        text = page.page(paper, records[name], [picture])
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    (folder / "README.md").write_text(page.index(papers, records), encoding="utf-8")


def check() -> int:
    """Return 1, and name the files, if some in docs/papers/ are not made from the records there."""
    with tempfile.TemporaryDirectory() as made:
        write(Path(made))
        names = sorted(path.name for path in Path(made).iterdir())
        differs = [name for name in names if not _same(Path(made) / name, FOLDER / name)]
    if differs:
        print(
            f"docs/papers: {', '.join(differs)} not current: run python tools/write_papers.py --pages",
            file=sys.stderr,
        )
    return int(bool(differs))


def _same(made: Path, kept: Path) -> bool:
    return kept.exists() and made.read_bytes() == kept.read_bytes()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
