"""What `--help` says: examples that the command line understands, and what the exit codes mean."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator

import pytest

from command_line import Call
from topoplace import cli
from topoplace.cli.options import EXIT_CODES, Parser


def leaves(parser: argparse.ArgumentParser, path: str = "") -> Iterator[tuple[str, Parser]]:
    """Yield each command that does something, with its parser."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from leaves(below, f"{path} {name}".strip())
            return
    assert isinstance(parser, Parser)
    yield path, parser


COMMANDS = dict(leaves(cli.command_parser()))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_examples_that_are_understood(command: str) -> None:
    examples = COMMANDS[command].examples
    assert examples
    for example in examples:
        words = shlex.split(example.partition(" > ")[0])  # the shell writes files
        assert words[0] == "topoplace"
        assert example.startswith(f"topoplace {command}")
        cli.command_parser().parse_args(words[1:])


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_the_examples_as_they_are(
    call: Call, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    done = call(*command.split(), "--help")
    assert (done.code, done.err) == (0, "")
    for example in COMMANDS[command].examples:
        assert f"\n  {example}\n" in done.out
    negative = COMMANDS[command].negative
    assert (f"\n\nexit code 1: {negative}\n" in done.out) == bool(negative)


@pytest.mark.parametrize("command", ["policies", "show", "place"])
def test_examples_without_files_run(call: Call, command: str) -> None:
    done = call(*shlex.split(COMMANDS[command].examples[0])[1:])
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("place summit --gpus 7", 1),
        ("show minsky --since summit", 1),
        ("show summit --since summit", 0),
        ("place summit --gpus x", 2),
    ],
)
def test_exit_codes_are_as_described(call: Call, command: str, code: int) -> None:
    assert call(*command.split()).code == code
    assert bool(COMMANDS[command.split()[0]].negative)


def test_help_lists_the_exit_codes(call: Call) -> None:
    shown = call("--help").out
    for code, meaning in EXIT_CODES.items():
        assert f"\n  {code:<4} {meaning}\n" in shown
