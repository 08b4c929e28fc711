"""Run the unfinished cells of a plan."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from topoplace._file_lock import FileLock
from topoplace._progress import Progress
from topoplace_lab.report.comparison import Outcome
from topoplace_lab.simulate.processes import Runner
from topoplace_lab.sweeps.engines import Engine
from topoplace_lab.sweeps.finished_cells import FinishedCells
from topoplace_lab.sweeps.plan import Cell, Plan

CELLS: Final = "cells"
"""The name of the directory for finished cells, inside that of a sweep."""
_LOCK: Final = ".lock"


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

    Each cell is written as soon as it is finished, so a killed run continues where it was.

    simulate: a function of a module, which gives the same outcome for the same cell. folder: created if missing.
    workers: number of processes, see `Runner`. engine: where cells run instead, such as `DaskEngine`.
    progress: show a bar with the time left on standard error.
    ValueError names a file in `folder` that is damaged, or that belongs to another plan, and a process that runs a
    sweep in `folder`. A folder that has all cells is only read. A warning says how many cells are simulated again, as
    the code of their policy (`Cell.code`) or of this library has changed.
    """
    runner: Engine = Runner(workers) if engine is None else engine
    folder.mkdir(parents=True, exist_ok=True)
    with _alone_in(folder) as refusal:
        finished = FinishedCells(folder / CELLS, plan)
        missing = [index for index in range(len(plan.cells)) if index not in finished.outcomes]
        if refusal and missing:
            raise ValueError(refusal)
        for whose, count in finished.of_other_code.items():
            again = "1 cell is" if count == 1 else f"{count} cells are"
            warnings.warn(
                f"{folder}: {again} simulated again, as the code of {whose} has changed", stacklevel=2
            )
        calls = [(plan.cells[index],) for index in missing]
        bar = Progress(
            "simulating", fraction=lambda: len(finished.outcomes) / len(plan.cells), enabled=progress
        )
        with bar, closing(runner.completed(simulate, calls)) as completed:
            for call, outcome in completed:
                finished.add(missing[call], outcome)
        if not refusal:
            finished.remove_unfinished()
    return [finished.outcomes[index] for index in range(len(plan.cells))]


@contextmanager
def _alone_in(folder: Path) -> Generator[str]:
    """Keep other sweeps out of `folder` during the `with` block; give "", or why that cannot be."""
    try:
        lock = FileLock(folder / _LOCK)
    except BlockingIOError as error:
        yield f"{folder}: {error.strerror} runs a sweep here; wait for its end, or use another directory"
    except OSError as error:
        yield f"{folder}: cannot be locked ({error.strerror}); use another directory"
    else:
        with closing(lock):
            yield ""
