"""`topoplace policies` lists the policies that --policy takes, built-in ones and those of installed packages."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Iterator
from typing import Any

from topoplace.cli import options, writing


def add(commands: Any) -> None:
    """Add `topoplace policies` and its arguments to the command line."""
    parser = options.command(
        commands,
        "policies",
        "list the policies: built-in ones, and those that installed packages offer",
        _run,
        examples=["topoplace policies"],
    )
    options.add_json(parser)


def _run(arguments: argparse.Namespace) -> None:
    rows = list(_rows())
    if arguments.json:
        writing.as_json(rows)
        return
    from topoplace.drawing import tables

    cells = [(row["policy"], "yes" if row["shares_gpus"] else "-", row["from"], row["what"]) for row in rows]
    tables.show(("policy", "shares GPUs", "from", "what"), cells)


def _rows() -> Iterator[dict[str, Any]]:
    from topoplace import policies

    sharing = policies.names(sharing=True)
    for name in policies.names():
        yield {"policy": name, "shares_gpus": name in sharing, "from": "topoplace", "what": _what(name)}
    for name in policies.installed.names():
        source = ", ".join(policies.installed.packages(name))
        if name in policies.names():
            what = "cannot be used by this name, which a built-in policy has; --policy MODULE:CLASS names it"
        else:
            what = _what(name)
        yield {"policy": name, "shares_gpus": None, "from": source, "what": options.one_line(what)}


def _what(name: str) -> str:
    """Return what a policy does; why not, if it cannot be used."""
    from topoplace import policies

    try:
        return _first_sentence(type(policies.get(name)))
    except ValueError as error:
        return f"cannot be used: {error}"


def _first_sentence(policy: Any) -> str:
    """Return the first sentence of the policy's docstring: up to a period that no bracket holds."""
    text = " ".join((inspect.getdoc(policy) or "").split("\n\n")[0].split())
    for end in re.finditer(r"\.(?= |$)", text):
        if text.count("(", 0, end.start()) == text.count(")", 0, end.start()):
            return text[: end.start()]
    return text
