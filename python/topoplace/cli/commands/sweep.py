"""`topoplace sweep` simulates policies × topologies × workloads × loads × seeds, and goes on after it was killed."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from topoplace.cli import options, sweep_cells, writing

if TYPE_CHECKING:
    from topoplace.sweeps import Row

_MAX_PROCESSES = 1024


def add(commands: Any) -> None:
    """Add `topoplace sweep` and its arguments to the command line."""
    parser = options.command(
        commands, "sweep", "simulate policies × topologies × workloads × loads × seeds", _run
    )
    parser.add_argument(
        "file",
        metavar="FILE.toml",
        type=options.path,
        help="lists of policies, topologies, workloads, loads, seeds; other keys are options of `topoplace simulate`",
    )
    parser.add_argument(
        "-o",
        dest="output",
        metavar="DIR",
        type=options.path,
        required=True,
        help="write cells, table and page into this directory; the same command goes on with what is missing",
    )
    workers = min(os.cpu_count() or 1, _MAX_PROCESSES)
    options.add_count(parser, "--workers", workers, "processes that simulate", _MAX_PROCESSES)
    options.add_json(parser)


def _run(arguments: argparse.Namespace) -> None:
    from topoplace import sweeps
    from topoplace.cli import sweep_plan

    folder = writing.folder(arguments.output)
    plan = sweep_plan.read(arguments.file)
    progress = sys.stderr is not None and sys.stderr.isatty()
    outcomes = sweeps.run(plan, sweep_cells.simulate, folder, workers=arguments.workers, progress=progress)
    rows = sweeps.rows_of(plan, outcomes)
    table = folder / f"sweep.{_ending()}"
    sweeps.write_table(plan, outcomes, table)
    page = folder / "sweep.html"
    sweeps.write_page(arguments.file.stem, rows, page)
    if arguments.json:
        writing.as_json([_as_dict(row) for row in rows])
    else:
        _print(rows, f"{len(plan.cells)} cells of plan {plan.digest}")
    for path in (table, page):
        writing.wrote(path, beside_json=arguments.json)


def _ending() -> str:
    from topoplace.errors import require_package

    try:
        require_package("pyarrow.parquet", "the table of a sweep")
    except ImportError:
        return "csv"
    return "parquet"


def _as_dict(row: Row) -> dict[str, Any]:
    figures = {
        name: {"mean": sample.mean, "low": sample.low, "high": sample.high, "seeds": len(sample.values)}
        for name, sample in row.samples.items()
    }
    return {"policy": row.policy, **row.scenario._asdict(), "refused": row.refused, "figures": figures}


def _print(rows: Sequence[Row], title: str) -> None:
    from topoplace.report import measures, tables
    from topoplace.sweeps import page

    names = page.compared(rows)
    loads = any(row.scenario.load is not None for row in rows)
    heads = ("topology", "workload", *(("load",) if loads else ()), "policy")
    cells = [(*row.scenario[: 3 if loads else 2], row.policy, *page.cells_of(row, names)) for row in rows]
    tables.show((*heads, *(measures.MEASURES[name].heading for name in names)), cells, title)
    if any(len(sample.values) > 1 for row in rows for sample in row.samples.values()):
        print("mean over the seeds ± half of its 95 % interval")
    for policy, why in {row.policy: row.refused for row in rows if row.refused}.items():
        print(tables.plain(f"{policy} refuses: {why}"))
