"""Run the cells of `topoplace sweep`: each is a `topoplace simulate` with the cell's options."""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from topoplace.cli import options
from topoplace_lab.commands import study

if TYPE_CHECKING:
    from topoplace_lab.sweeps import Cell, Outcome


class CellParser(options.Parser):
    """A parser of the options of a cell; ValueError for wrong ones."""

    def error(self, message: str) -> NoReturn:
        """Raise ValueError with the message, without the option's name at its start."""
        raise ValueError(message.partition(": ")[2] if message.startswith("argument ") else message)


@functools.cache
def parser() -> argparse.ArgumentParser:
    """Return the parser of `topoplace simulate` for topologies and jobs."""
    found = CellParser(add_help=False, allow_abbrev=False)
    options.add_topology(found)
    study.add_workload(found)
    return found


def simulate(cell: Cell) -> Outcome:
    """Return the figures of a cell, as in `Result.summary`; or the reason if its policy can run none of the jobs."""
    from topoplace_lab.simulate.metrics import none_ran

    load = () if cell.scenario.load is None else (f"--load={cell.scenario.load!r}",)
    runs = study_of((*cell.options["arguments"], *load, f"--seed={cell.seed}"))
    result = runs.attempt(cell.options["policy"], **cell.options["given"])
    return result if isinstance(result, str) else none_ran([result]) or result.summary()


def has_one_queue(cell: Cell) -> bool:
    """Return True if the policies of a cell's scenario have one queue."""
    return _queue_of(cell.options["arguments"]) == "one"


@functools.cache
def _queue_of(arguments: tuple[str, ...]) -> str:
    return study.queue_of(parser().parse_args(arguments))


@functools.lru_cache(maxsize=1)
def study_of(arguments: tuple[str, ...]) -> study.Study:
    """Return the topology and jobs of a cell; the last answer is kept, as the next cell often needs it again."""
    with (
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
    ):  # reported when the plan was read
        warnings.simplefilter("ignore")
        return study_with(arguments)


def study_with(arguments: Sequence[str]) -> study.Study:
    """Return the topology and jobs that these arguments name."""
    return study.Study(parser().parse_args(arguments), progress=False)
