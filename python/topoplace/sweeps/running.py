"""Run the cells of a plan that are not finished yet."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from topoplace.simulate.processes import Runner
from topoplace.simulate.progress import Progress
from topoplace.sweeps.engines import Engine
from topoplace.sweeps.finished_cells import FinishedCells
from topoplace.sweeps.plan import Cell, Outcome, Plan

CELLS = "cells"
"""The directory of the finished cells, in that of a sweep."""


def run(
    plan: Plan,
    simulate: Callable[[Cell], Outcome],
    folder: Path,
    *,
    workers: int = 1,
    engine: Engine | None = None,
    progress: bool = False,
) -> list[Outcome]:
    """Run the cells that `folder` does not have, and return the outcomes of all, in the order of the plan.

    Each cell is written as soon as it is finished, so a run that was killed goes on where it was.

    simulate: a function of a module, which gives the same outcome for the same cell. folder: created if missing.
    workers: number of processes, see `Runner`. engine: where cells run instead, such as `DaskEngine`.
    progress: show a bar with the time left on standard error.
    ValueError names a file in `folder` that is damaged, or that belongs to another plan.
    """
    runner: Engine = Runner(workers) if engine is None else engine
    finished = FinishedCells(folder / CELLS, plan)
    missing = [index for index in range(len(plan.cells)) if index not in finished.outcomes]
    calls = [(plan.cells[index],) for index in missing]
    bar = Progress(len(plan.cells), enabled=progress, every=1, done=len(finished.outcomes))
    with bar as shown, closing(runner.completed(simulate, calls)) as completed:
        for call, outcome in completed:
            finished.add(missing[call], outcome)
            shown.update(len(finished.outcomes))
    finished.remove_unfinished()
    return [finished.outcomes[index] for index in range(len(plan.cells))]
