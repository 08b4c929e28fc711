"""`topoplace completion` prints a script with which a shell completes commands, options and names."""

from __future__ import annotations

import argparse
from typing import Any

from topoplace.cli import options

_SHELLS = ("bash", "fish", "zsh")


def add(commands: Any) -> None:
    """Add `topoplace completion` and its arguments to the command line."""
    parser = options.command(
        commands,
        "completion",
        "print a script with which a shell completes commands, options and names",
        _run,
        examples=[
            "topoplace completion bash > ~/.local/share/bash-completion/completions/topoplace",
            "topoplace completion zsh > ~/.zfunc/_topoplace",
            "topoplace completion fish > ~/.config/fish/completions/topoplace.fish",
        ],
    )
    parser.add_argument("shell", metavar="SHELL", choices=_SHELLS, help=", ".join(_SHELLS))


def _run(arguments: argparse.Namespace) -> None:
    from importlib import import_module

    from topoplace.cli.reference.command_tree import command_tree
    from topoplace.cli.reference.values import known_names

    shell = import_module(f"topoplace.cli.reference.{arguments.shell}")
    print(shell.script(command_tree(arguments.whole), known_names()), end="")
