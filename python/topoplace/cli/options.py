"""Arguments that several commands share, and the report of wrong ones."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

WRONG_INPUT = 2
_MAX_COUNT = 1_000_000
_MAX_MESSAGE_LENGTH = 400

Run = Callable[[argparse.Namespace], int | None]


class Parser(argparse.ArgumentParser):
    """An argument parser that reports wrong arguments in one line, like all wrong input."""

    def error(self, message: str) -> NoReturn:
        """Print `message` in one line and exit with code 2."""
        self.exit(WRONG_INPUT, f"{self.prog}: {one_line(message)} (see {self.prog} --help)\n")


def one_line(message: str) -> str:
    """Return `message` in one line of limited length, even if it quotes long input."""
    line = " ".join(message.split())
    return line if len(line) <= _MAX_MESSAGE_LENGTH else f"{line[: _MAX_MESSAGE_LENGTH - 1]}…"


def command(commands: Any, name: str, summary: str, run: Run | None = None) -> argparse.ArgumentParser:
    """Add a command to `commands` that `run` executes, and return its parser."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=summary, description=summary)
    parser.set_defaults(run=run)
    return parser


def add_topology(parser: argparse.ArgumentParser) -> None:
    """Add the argument TOPO and the options that its readers take."""
    parser.add_argument(
        "topology",
        metavar="TOPO",
        help="a built-in machine, a file in any format that `topoplace discover` reads, or - for standard input",
    )
    add_assumptions(parser)


def add_assumptions(parser: argparse.ArgumentParser) -> None:
    """Add options for facts that some formats do not contain."""
    parser.add_argument("--gpu-model", help="GPU model, such as V100, if the text does not name it")
    parser.add_argument(
        "--assume-no-nvlink",
        action="store_true",
        help="assume that there are no NVLinks if the text cannot show them",
    )
    parser.add_argument(
        "--assume",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="pass any other argument to the format's parser, such as node=gpu7, allow_dangling=true, "
        "levels.rack=example.com/rack",
    )


def add_gpus_per_node(parser: argparse.ArgumentParser) -> None:
    """Add the number of GPUs per node, which a log in the Standard Workload Format does not contain."""
    what = "GPUs per node for the jobs of a log in the Standard Workload Format"
    add_count(parser, "--gpus-per-node", 1, what)


def add_count(parser: argparse.ArgumentParser, name: str, default: int, what: str) -> None:
    """Add the option `name`, the number N of what `what` names, 1 or more."""
    help_text = f"{what} (default: {default})"
    parser.add_argument(name, type=count, default=default, metavar="N", help=help_text)


def add_timeout(parser: argparse.ArgumentParser, consequence: str) -> None:
    """Add the time limit; `consequence` says what happens after SECONDS."""
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help=f"{consequence} after SECONDS")


def add_problem_file(parser: argparse.ArgumentParser, name: str, what: str) -> None:
    """Add the argument `name`, a file that contains what `what` names."""
    parser.add_argument(name, metavar="FILE", help=f"{what}, gzipped or not, or - for standard input")


def add_solution_file(parser: argparse.ArgumentParser, metavar: str, what: str) -> None:
    """Add the option -o, the file to write the solution to."""
    parser.add_argument("-o", dest="output", metavar=metavar, type=Path, help=f"write {what}")


def add_hosts(parser: argparse.ArgumentParser) -> None:
    """Add the CPUs and memory of each machine."""
    parser.add_argument("--cpus", type=count, metavar="N", help="CPUs of each machine (default: no limit)")
    parser.add_argument(
        "--memory-gb",
        type=float,
        metavar="X",
        help="memory of each machine in GB of 1e9 bytes; 22gb in a PBS log are 23.63 (default: no limit)",
    )


def add_policy(parser: argparse.ArgumentParser) -> None:
    """Add the policy that decides."""
    parser.add_argument(
        "--policy", default="mapa-preserve", help="policy that decides (default: %(default)s)"
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option to print JSON instead of tables."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the directory for pictures."""
    parser.add_argument(
        "-o", dest="output", metavar="DIR", type=Path, help="write pictures into this directory"
    )


def add_seed(parser: argparse.ArgumentParser, of: str) -> None:
    """Add the seed of what `of` names."""
    parser.add_argument("--seed", type=_seed, default=0, help=f"seed of {of} (default: 0)")


def count(text: str) -> int:
    """Read an argument that counts something: 1 or more."""
    return _whole(text, 1, _MAX_COUNT)


def _seed(text: str) -> int:
    return _whole(text, 0, 2**63)


def _whole(text: str, least: int, most: int) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if value < least:
        raise argparse.ArgumentTypeError(f"{value} is not at least {least}")
    if value > most:
        raise argparse.ArgumentTypeError(f"{value} is more than {most}")
    return value
