"""What the value of an argument can be, for completion: names, files, directories."""

from __future__ import annotations

from typing import Final, NamedTuple

from topoplace.cli.reference.command_tree import Argument

_FILES: Final = frozenset(
    {"FILE", "FILE.toml", "FILE|NAME", "JOBS", "PROFILE", "SIDES", "SOLUTION", "TIMES", "PROGRAM", "CERT,KEY"}
)
_TOPOLOGIES: Final = frozenset({"TOPO", "A", "B"})
_POLICIES: Final = frozenset({"POLICY", "POLICIES", "PACKAGE.MODULE:CLASS"})


class Values(NamedTuple):
    """What may be typed as a value."""

    names: tuple[str, ...] = ()
    files: bool = False
    directories: bool = False
    is_list: bool = False
    """True if names may be joined by commas."""


class Names(NamedTuple):
    """The names that the library knows."""

    machines: tuple[str, ...]
    policies: tuple[str, ...]
    patterns: tuple[str, ...]


def known_names() -> Names:
    """Return the names of this installation, policies of other packages included."""
    from topoplace import machines, policies
    from topoplace.jobs.job_graph import PATTERNS

    offered = dict.fromkeys((*policies.names(), *policies.installed.names()))
    return Names(machines.names(), tuple(offered), (*PATTERNS, "mesh", "torus"))


def values_of(argument: Argument, names: Names) -> Values:
    """Return what the value of an argument can be; the name of the value tells."""
    if argument.choices:
        return Values(argument.choices)
    if argument.metavar in _TOPOLOGIES:
        return Values(names.machines, files=True)
    if argument.metavar in _POLICIES:
        return Values(names.policies, is_list=argument.metavar == "POLICIES")
    if argument.metavar == "PATTERN":
        return Values(names.patterns)
    return Values(files=argument.metavar in _FILES, directories=argument.metavar == "DIR")
