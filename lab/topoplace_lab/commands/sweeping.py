"""The common part of the commands that run many simulations: `sweep` and `suite`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from topoplace.cli import options, writing

if TYPE_CHECKING:
    from topoplace_lab.sweeps import Cell, Engine, Outcome, Plan

_MAX_PROCESSES = 1024


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options -o, --workers and --json."""
    parser.add_argument(
        "-o",
        dest="output",
        metavar="DIR",
        type=options.path,
        required=True,
        help="write cells, table and page into this directory; the same command later runs what is missing",
    )
    what = "number of processes that simulate"
    options.add_count(parser, "--workers", _cpus(), what, _MAX_PROCESSES, default_text="one per CPU")
    parser.set_defaults(workers=None)  # to tell whether it is given
    parser.add_argument(
        "--engine",
        choices=("processes", "dask", "ray"),
        default="processes",
        help="where cells run: processes on this machine, or an existing cluster (default: %(default)s)",
    )
    parser.add_argument(
        "--address",
        help="address of Dask's scheduler, such as tcp://10.0.0.1:8786, or of Ray's head, such as 10.0.0.1:6379",
    )
    options.add_json(parser)


def _cpus() -> int:
    return min(os.cpu_count() or 1, _MAX_PROCESSES)


def _engine(arguments: argparse.Namespace) -> Engine | None:
    """Return the engine of --engine and --address; None for processes of this machine."""
    from topoplace_lab import sweeps

    if arguments.engine == "processes":
        if arguments.address is not None:
            raise ValueError("--address is for --engine dask and --engine ray")
        return None
    if not arguments.address:
        raise ValueError(f"--engine {arguments.engine} needs --address, where the cluster is")
    if arguments.workers is not None:
        raise ValueError(f"--workers is for processes; --engine {arguments.engine} has its own")
    made = sweeps.DaskEngine if arguments.engine == "dask" else sweeps.RayEngine
    return made(arguments.address)


class SweepRun:
    """All cells of a plan, finished: loaded from the directory of -o, or run."""

    def __init__(
        self, arguments: argparse.Namespace, plan: Plan, simulate: Callable[[Cell], Outcome]
    ) -> None:
        from topoplace_lab import sweeps

        engine = _engine(arguments)
        self.plan = plan
        self.folder: Path = writing.folder(arguments.output)
        progress = sys.stderr is not None and sys.stderr.isatty()
        self.outcomes = sweeps.run(
            plan,
            simulate,
            self.folder,
            workers=arguments.workers or _cpus(),
            engine=engine,
            progress=progress,
        )

    def write_table(self, name: str) -> Path:
        """Write the table of all cells, and return its path."""
        from topoplace_lab.sweeps import table

        path = self.folder / f"{name}.{table.ending()}"
        table.write_table(self.plan, self.outcomes, path)
        return path
