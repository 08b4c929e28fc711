"""Command-line arguments that several commands share, and the report of wrong arguments."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NoReturn

from topoplace import DEFAULT_POLICY, _installed
from topoplace._similar_names import did_you_mean, not_one_of

if TYPE_CHECKING:
    from topoplace.engine.policy import Policy

WRONG_INPUT = 2
EXIT_CODES: Final = {
    0: "success",
    1: "a negative answer, such as no placement; the help of each command says which",
    WRONG_INPUT: "wrong input, which one line on standard error names",
    130: "ended by Ctrl-C",
    141: "the reader of the output stopped reading",
}
"""The meaning of the exit codes of all commands."""
GPUS_PER_NODE = 1
_MAX_COUNT = 1_000_000
_MAX_MESSAGE_LENGTH = 400
RATES: Final = "nccl-2.30"
TWO_WORDS = ("show measure", "sweep suite")
"""Commands whose first word is also a command."""

Run = Callable[[argparse.Namespace], int | None]


class _HelpFormatter(argparse.HelpFormatter):
    """Wraps descriptions, keeps the lines of what stands below the options, and groups commands."""

    headings: Mapping[str, str] = {}
    """The title of the group that a command begins."""

    def _format_action(self, action: argparse.Action) -> str:
        title = self.headings.get(action.dest)
        return (f"\n  {title}\n" if title else "") + super()._format_action(action)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


class Once(argparse.Action):
    """An option of one value that may be given once, by one of its names."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        """Store the value; a second one is an error."""
        if getattr(namespace, self.dest) is not None:
            raise argparse.ArgumentError(self, "given twice")
        setattr(namespace, self.dest, values)


class Parser(argparse.ArgumentParser):
    """An argument parser that reports a wrong argument in one line, with a similar name if there is one."""

    examples: tuple[str, ...] = ()
    """Command lines that the help text shows."""
    negative: str = ""
    """The meaning of exit code 1; "" if the command never ends with it."""
    groups: dict[str, tuple[str, ...]]
    """The subcommands, by the title of their group; {} if they are not grouped."""
    replaced: Mapping[str, str] = MappingProxyType({})
    """Commands that were removed, with the command line that does the same."""
    instead: Mapping[str, str] = MappingProxyType({})
    """Options that only other commands have, with the advice for who types them here."""

    def __init__(self, **arguments: Any) -> None:
        arguments.setdefault("formatter_class", _HelpFormatter)
        self.groups = {}
        super().__init__(**arguments)

    def _get_formatter(self) -> argparse.HelpFormatter:
        formatter = super()._get_formatter()
        if isinstance(formatter, _HelpFormatter):
            formatter.headings = {names[0]: title for title, names in self.groups.items()}
        return formatter

    def all_actions(self) -> tuple[argparse.Action, ...]:
        """Return all arguments and options, in their order."""
        return tuple(self._actions)

    def explain(self, examples: Sequence[str], negative: str = "") -> None:
        """Show examples, and what exit code 1 means, below the options of the help text."""
        self.examples, self.negative = tuple(examples), negative
        lines = [
            "examples (their files: topoplace example --all):",
            *(f"  {example}" for example in examples),
        ]
        if negative:
            lines += ["", f"exit code 1: {negative}"]
        self.epilog = "\n".join(lines)

    def parse_known_args(  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> Any:
        """Return the arguments that this parser knows, and refuse all others; a command's name may have two words."""
        given = list(sys.argv[1:] if args is None else args)
        self._refuse_unusable(given)
        if " ".join(given[:2]) in TWO_WORDS:
            given[:2] = [" ".join(given[:2])]
        found, unknown = super().parse_known_args(given, namespace)
        if unknown:
            flag = next((text for text in unknown if text.startswith("-")), unknown[0]).partition("=")[0]
            known = [name for name in self._option_string_actions if name.startswith("--")]
            hint = self.instead.get(flag, did_you_mean(flag, known) if flag.startswith("--") else "")
            self.error(f"unrecognized arguments: {' '.join(unknown)}" + (f"; {hint}" if hint else ""))
        return found, unknown

    def _refuse_unusable(self, given: Sequence[str]) -> None:
        """Refuse an argument that no command line can have and no file can be called, naming the option before it."""
        for before, text in pairwise(("", *given)):
            option = f"{before} " if before.startswith("-") else ""
            if "\0" in text:
                self.error(f"{option}{text}: a NUL character, which no argument can have")
            try:
                os.fsencode(text)
            except UnicodeEncodeError:
                self.error(f"{option}{text}: not valid Unicode")

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        if action.option_strings and arg_strings == [
            "--"
        ]:  # of --option=--, which some Pythons make an empty list
            raise argparse.ArgumentError(action, "'--' is no value")
        return super()._get_values(action, arg_strings)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value in self.replaced:
            raise argparse.ArgumentError(action, f"{value!r} is gone: run `{self.replaced[value]}` instead")
        if action.choices is not None and value not in action.choices:
            if (why := _installed.how_to_get(str(value))) and self.replaced:
                raise argparse.ArgumentError(action, f"{value!r}: {why}")
            raise argparse.ArgumentError(
                action, f"invalid choice: {value!r}, {not_one_of(str(value), map(str, action.choices))}"
            )

    def error(self, message: str) -> NoReturn:
        """Print `message` in one line to standard error, and exit with code 2."""
        self.exit(WRONG_INPUT, f"{self.prog}: {one_line(message)} (see {self.prog} --help)\n")


def one_line(message: str) -> str:
    """Return `message` as one line of at most 400 printable characters: others are escaped, and the rest is cut off."""
    line = " ".join(message.split())
    line = line if line.isprintable() else ascii(line)[1:-1]  # names may be untrusted
    return line if len(line) <= _MAX_MESSAGE_LENGTH else f"{line[: _MAX_MESSAGE_LENGTH - 1]}…"


def command(
    commands: Any,
    name: str,
    summary: str,
    run: Run,
    *,
    examples: Sequence[str],
    negative: str = "",
    instead: Mapping[str, str] = MappingProxyType({}),
) -> argparse.ArgumentParser:
    """Add a command called `name` to the subparsers `commands`, and return its parser.

    run: executes the command. examples: command lines for the help text. negative: what exit code 1 means. instead:
    see `Parser`.
    """
    parser: Parser = commands.add_parser(name, help=summary, description=summary)
    parser.explain(examples, negative)
    parser.instead = instead
    parser.set_defaults(run=run)
    return parser


def group(commands: Any, name: str, summary: str, metavar: str) -> Any:
    """Add a command called `name` to the subparsers `commands`, and return the subparsers of its own commands."""
    parser: Parser = commands.add_parser(name, help=summary, description=summary)
    return parser.add_subparsers(metavar=metavar, required=True)


def add_topology(parser: argparse.ArgumentParser, *, without: str = "") -> None:
    """Add the argument TOPO, which names a topology, and the options about its text format.

    without: help text for a missing TOPO, which is then optional; "" if TOPO is required.
    """
    parser.add_argument(
        "topology",
        metavar="TOPO",
        nargs="?" if without else None,
        help="a built-in machine, a file in any format that `topoplace show` reads, or - for standard input"
        + (without and f" ({without})"),
    )
    add_assumptions(parser)


def add_host_machine(parser: argparse.ArgumentParser, whose: str) -> None:
    """Add the optional argument TOPO for one machine, with the options about its text; see `reading.host_machine`.

    whose: beginning of the help text.
    """
    parser.add_argument(
        "topology",
        metavar="TOPO",
        nargs="?",
        help=f"{whose} machine, as for `topoplace show` (default: this host)",
    )
    add_assumptions(parser)


def add_assumptions(parser: argparse.ArgumentParser) -> None:
    """Add options that supply facts which some topology formats do not contain, such as the GPU model."""
    parser.add_argument(
        "--gpu-model", metavar="MODEL", help="GPU model, such as V100, if the text does not name it"
    )
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
        help="pass any other argument to the format's parser, such as gpu_model=V100, node=gpu7, "
        "allow_dangling=true, levels.rack=example.com/rack",
    )


def add_gpus_per_node(parser: argparse.ArgumentParser) -> None:
    """Add the option --gpus-per-node, for job logs in the Standard Workload Format, which do not contain GPUs."""
    what = "GPUs per node for the jobs of a log in the Standard Workload Format"
    add_count(parser, "--gpus-per-node", GPUS_PER_NODE, what)
    parser.set_defaults(gpus_per_node=None)  # to tell whether it is given


def add_count(
    parser: argparse.ArgumentParser,
    name: str,
    default: int,
    what: str,
    most: int = _MAX_COUNT,
    *,
    default_text: str = "",
) -> None:
    """Add an option called `name` whose value is an integer N of 1 to `most`; `what` is its help text.

    default_text: help text for the default, if that differs between hosts; "" for `default`.
    """
    help_text = f"{what} (default: {default_text or default})"
    parser.add_argument(
        name, type=lambda text: _whole(text, 1, most), default=default, metavar="N", help=help_text
    )


def add_timeout(parser: argparse.ArgumentParser, consequence: str, default_s: float | None = None) -> None:
    """Add the option --timeout; `consequence` is the start of its help text, such as "give up"."""
    what = f"{consequence} after SECONDS" + ("" if default_s is None else f" (default: {default_s:g})")
    parser.add_argument("--timeout", type=_seconds, default=default_s, metavar="SECONDS", help=what)


def add_hosts(parser: argparse.ArgumentParser) -> None:
    """Add the options --cpus and --memory-gb: the CPUs and the memory of each machine."""
    parser.add_argument("--cpus", type=count, metavar="N", help="CPUs of each machine (default: no limit)")
    parser.add_argument(
        "--memory-gb",
        type=float,
        metavar="X",
        help="memory of each machine in GB of 1e9 bytes; 22gb in a PBS log is 23.63 (default: no limit)",
    )


def add_policy(parser: argparse.ArgumentParser, what: str = "policy that decides") -> None:
    """Add the option --policy: the name of the policy that places jobs; `what` is its help text."""
    parser.add_argument("--policy", default=DEFAULT_POLICY, help=f"{what} (default: %(default)s)")


def add_reslice(parser: argparse.ArgumentParser) -> None:
    """Add the option --reslice, after which `reslicing` makes the policy reslice GPUs."""
    parser.add_argument(
        "--reslice",
        action="store_true",
        help="let the policy reslice GPUs, that is change their MIG slices, for a job that fits nowhere else",
    )


def reslicing(policy: Policy) -> Policy:
    """Return the policy as one that may reslice GPUs; ValueError if it cannot."""
    from topoplace.engine.machine_policy import MachinePolicy

    if not isinstance(policy, MachinePolicy):
        raise ValueError(f"--reslice: {policy.name} does not slice GPUs")
    return policy.with_reslicing()


def add_rates(parser: argparse.ArgumentParser) -> None:
    """Add the option --rates, which `reading.rates` reads."""
    parser.add_argument(
        "--rates",
        default=RATES,
        metavar="NAME",
        help="link rates: a library and its version, or a file of `topoplace show measure` "
        f"(default: {RATES})",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option --json, which prints JSON instead of tables."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the option -o for the directory into which pictures are written, or for one picture."""
    parser.add_argument(
        "-o",
        dest="output",
        metavar="DIR",
        type=path,
        help="write pictures into this directory, created if missing, or only the first to a file .png, .svg or .pdf",
    )


def add_seed(parser: argparse.ArgumentParser, of: str) -> None:
    """Add the option --seed for random numbers; `of` is the help text for what they determine."""
    parser.add_argument("--seed", type=_seed, default=0, help=f"seed of {of} (default: 0)")


def path(text: str) -> Path:
    """Return an argument as a path; argparse.ArgumentTypeError for an empty text, which would mean this directory."""
    if not text:
        raise argparse.ArgumentTypeError("'' is not a path; this directory is .")
    return Path(text)


def count(text: str) -> int:
    """Return an argument as an integer of 1 to 1,000,000; argparse.ArgumentTypeError for any other text."""
    return _whole(text, 1, _MAX_COUNT)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{value:g} is not a finite number of at least 0")
    return value


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


def step(text: str) -> tuple[float, float]:
    """Return the seconds and GB of the option --step; ValueError if the text is not two numbers."""
    try:
        compute_s, gigabytes = map(float, text.split(","))
    except ValueError:
        raise ValueError(f"--step: {text!r} is not SECONDS,GB, such as 0.2,0.5") from None
    return compute_s, gigabytes
