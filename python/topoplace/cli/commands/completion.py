"""`topoplace completion` prints a script with which a shell completes commands, options and names."""

from __future__ import annotations

import argparse
from typing import Any, Final, cast

from topoplace.cli import options
from topoplace.errors import require_package

_SHELLS: Final = ("bash", "fish", "zsh")
_FILES: Final = frozenset(
    {"FILE", "FILE.toml", "FILE|NAME", "JOBS", "PROFILE", "TIMES", "PROGRAM", "CERT,KEY"}
)
_TOPOLOGIES: Final = frozenset({"TOPO", "A", "B"})
_POLICIES: Final = frozenset({"POLICY", "POLICIES", "PACKAGE.MODULE:CLASS"})


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
    require_package("argcomplete", "topoplace completion")
    from argcomplete.shell_integration import shellcode

    print(shellcode(["topoplace"], use_defaults=False, shell=arguments.shell))


def answer(parser: options.Parser) -> None:
    """Write the completions of the word at the cursor for the shell that started this process, and exit."""
    import argcomplete

    completer = cast("Any", _values)  # the library's type is a class, but it calls any function
    argcomplete.autocomplete(
        parser, always_complete_options=False, exclude=options.TWO_WORDS, default_completer=completer
    )


def _values(prefix: str, action: argparse.Action, parser: options.Parser, **_more: object) -> list[str]:
    """Return what the value of an argument may be; the name of the value says which kind it is."""
    from argcomplete.completers import DirectoriesCompleter, FilesCompleter

    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if name in _POLICIES:
        typed = prefix[: prefix.rfind(",") + 1] if name == "POLICIES" else ""
        return [f"{typed}{policy}" for policy in _policies()]
    if name == "PATTERN":
        from topoplace.jobs.job_graph import PATTERNS

        return [*PATTERNS, "mesh", "torus"]
    if name in _TOPOLOGIES:
        from topoplace import machines

        second_words = [two.split()[1] for two in options.TWO_WORDS if parser.prog.endswith(two.split()[0])]
        return [*machines.names(), *second_words, *FilesCompleter()(prefix)]
    if name in _FILES:
        return FilesCompleter()(prefix)
    return [*DirectoriesCompleter()(prefix)] if name == "DIR" else []


def _policies() -> list[str]:
    """Return the names of all policies, those of other packages included."""
    from topoplace import policies

    return [*dict.fromkeys((*policies.names(), *policies.installed.names()))]
