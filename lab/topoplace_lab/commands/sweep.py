"""`topoplace sweep` simulates policies × topologies × workloads × loads × seeds, and continues after it is killed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from topoplace.cli import options, writing
from topoplace_lab.commands import sweep_cells, sweeping

if TYPE_CHECKING:
    from topoplace_lab.sweeps import ComparisonRow


def add(commands: Any) -> None:
    """Add `topoplace sweep` and its arguments to the command line."""
    parser = options.command(
        commands,
        "sweep",
        "simulate policies × topologies × workloads × loads × seeds",
        _run,
        examples=["topoplace sweep plan.toml -o results"],
    )
    parser.add_argument(
        "file",
        metavar="FILE.toml",
        type=options.path,
        help="lists of policies, topologies, workloads, loads, seeds; other keys are options of `topoplace simulate`",
    )
    sweeping.add_options(parser)


def _run(arguments: argparse.Namespace) -> None:
    from topoplace.drawing import tables
    from topoplace_lab import sweeps
    from topoplace_lab.commands import sweep_plan
    from topoplace_lab.report import comparison, written_tables

    run = sweeping.SweepRun(arguments, sweep_plan.read(arguments.file), sweep_cells.simulate)
    table = run.write_table("sweep")
    page = run.folder / "sweep.html"
    rows = sweeps.rows_of(run.plan, run.outcomes)
    have_one_queue = all(sweep_cells.has_one_queue(cell) for cell in run.plan.cells)
    sweeps.write_page(arguments.file.stem, rows, page, have_one_queue=have_one_queue)
    if arguments.json:
        writing.as_json([_as_dict(row) for row in rows])
    else:
        for sentence in comparison.conclusions_of(rows, have_one_queue=have_one_queue):
            print(tables.plain(sentence))
        _print(rows, f"{len(run.plan.cells)} cells of plan {run.plan.digest}")
    heads, cells = _table(rows, has_units=False)
    for path in (table, page, *written_tables.write(heads, cells, run.folder, "comparison")):
        writing.wrote(path, beside_json=arguments.json)


def _as_dict(row: ComparisonRow) -> dict[str, Any]:
    figures = {
        name: {"mean": sample.mean, "low": sample.low, "high": sample.high, "seeds": len(sample.values)}
        for name, sample in row.samples.items()
    }
    about = {"policy": row.policy, **row.scenario._asdict(), "refused": row.refused}
    return {**about, "equal_seeds": row.equal_seeds, "figures": figures}


def _table(rows: Sequence[ComparisonRow], *, has_units: bool) -> tuple[Sequence[str], list[tuple[str, ...]]]:
    """Return the heads and the rows of the table of all scenarios; `has_units` as for `cells_of`."""
    from topoplace_lab.report import columns
    from topoplace_lab.sweeps import page

    names = page.compared(rows)
    loads = any(row.scenario.load is not None for row in rows)
    heads = ("topology", "workload", *(("load",) if loads else ()), "policy")
    cells = [
        (
            *map(str, row.scenario[: 3 if loads else 2]),
            row.policy,
            *page.cells_of(row, names, has_units=has_units),
        )
        for row in rows
    ]
    return (*heads, *columns.heads(names, has_units=has_units)), cells


def _print(rows: Sequence[ComparisonRow], title: str) -> None:
    from topoplace.drawing import tables
    from topoplace_lab.report import comparison

    tables.show(*_table(rows, has_units=True), title)
    if any(len(sample.values) > 1 for row in rows for sample in row.samples.values()):
        print("mean over the seeds ± half of its 95 % interval")
    for note in comparison.notes_of(rows):
        print(tables.plain(note))
    for policy, why in dict.fromkeys((row.policy, row.refused) for row in rows if row.refused):
        print(tables.plain(f"{policy} refuses: {why}"))
