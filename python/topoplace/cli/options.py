"""Arguments that several commands share, and how wrong ones are reported."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

WRONG_INPUT = 2
_MOST = 1_000_000
_LONGEST_MESSAGE = 400

Run = Callable[[argparse.Namespace], int | None]


class Parser(argparse.ArgumentParser):
    """Reports wrong arguments like all wrong input, in one line."""

    def error(self, message: str) -> NoReturn:
        """Print it and exit."""
        self.exit(WRONG_INPUT, f"{self.prog}: {one_line(message)} (see {self.prog} --help)\n")


def one_line(message: str) -> str:
    """A message as one line of bearable length, whatever the input it quotes."""
    line = " ".join(message.split())
    return line if len(line) <= _LONGEST_MESSAGE else f"{line[: _LONGEST_MESSAGE - 1]}…"


def command(commands: Any, name: str, summary: str, run: Run | None = None) -> argparse.ArgumentParser:
    """A new command among `commands`, done by `run`."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=summary, description=summary)
    parser.set_defaults(run=run)
    return parser


def add_topology(parser: argparse.ArgumentParser) -> None:
    """TOPO and what it takes to read it."""
    parser.add_argument(
        "topology",
        metavar="TOPO",
        help="a built-in machine, a file in any format that `topoplace discover` reads, or - for standard input",
    )
    add_assumptions(parser)


def add_assumptions(parser: argparse.ArgumentParser) -> None:
    """What some formats do not tell."""
    parser.add_argument("--gpu-model", help="model, such as V100, where the text does not tell")
    parser.add_argument(
        "--assume-no-nvlink",
        action="store_true",
        help="where the text hides NVLinks, take it that there are none",
    )
    parser.add_argument(
        "--assume",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other argument of the format's parser, such as node=gpu7, allow_dangling=true, "
        "levels.rack=example.com/rack",
    )


def add_gpus_per_node(parser: argparse.ArgumentParser) -> None:
    """What a log in the Standard Workload Format does not tell."""
    parser.add_argument(
        "--gpus-per-node",
        type=count,
        default=1,
        metavar="N",
        help="that jobs of a log in the Standard Workload Format have (default: 1)",
    )


def add_hosts(parser: argparse.ArgumentParser) -> None:
    """What every machine has besides GPUs."""
    parser.add_argument("--cpus", type=count, metavar="N", help="of each machine (default: no limit)")
    parser.add_argument(
        "--memory-gb",
        type=float,
        metavar="X",
        help="of each machine, 1e9 bytes each: the 22gb of a PBS log are 23.63 (default: no limit)",
    )


def add_policy(parser: argparse.ArgumentParser) -> None:
    """Which policy decides."""
    parser.add_argument("--policy", default="mapa-preserve", help="default: %(default)s")


def add_json(parser: argparse.ArgumentParser) -> None:
    """JSON instead of tables."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_output(parser: argparse.ArgumentParser) -> None:
    """Where pictures go."""
    parser.add_argument(
        "-o", dest="output", metavar="DIR", type=Path, help="write pictures into this directory"
    )


def add_seed(parser: argparse.ArgumentParser, of: str) -> None:
    """The seed `of` something."""
    parser.add_argument("--seed", type=_seed, default=0, help=f"of {of} (default: 0)")


def count(text: str) -> int:
    """The type of an argument that is a number of things."""
    return _whole(text, 1, _MOST)


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
