"""What other distributions add, found as entry points: commands, policies, formats, readers of schedulers, modules.

`topoplace-lab` studies placements, `topoplace-hosts` runs them in schedulers; both depend on this package, and it knows
no more of them than the names that they bring, to say which one is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMANDS: Final = "topoplace.commands"
EXAMPLES: Final = "topoplace.examples"
FORMATS: Final = "topoplace.formats"
MODULES: Final = "topoplace.modules"
POLICIES: Final = "topoplace.policies"
SNAPSHOTS: Final = "topoplace.snapshots"
BROUGHT_BY: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "topoplace-lab": (
            *(
                "capacity",
                "papers",
                "profile",
                "report",
                "simulate",
                "sweep",
                "sweep suite",
                "show measure",
                "trace",
            ),
            *("fgd", "least-stranded", "dot-product", "vector-best-fit", "vector-worst-fit", "gpu-packing"),
            *(
                "gpu-clustering",
                "random-fit",
                "two-choices",
                "kueue-best-fit",
                "kueue-least-free",
                "kueue-balanced",
            ),
            *("slurm-tree", "slurm-block", "volcano-binpack", "kubernetes-default", "nvidia-allocator"),
        ),
        "topoplace-hosts": ("kubernetes", "slurm", "state"),
    }
)
"""The names of commands, policies and modules by the distribution that brings them."""


@cache
def entry_points(group: str) -> Mapping[str, tuple[EntryPoint, ...]]:
    """Return what installed packages offer in a group, by name."""
    from importlib import metadata  # here, as most programs ask for nothing of others

    found: dict[str, tuple[EntryPoint, ...]] = {}
    for one in metadata.entry_points(group=group):
        found[one.name] = (*found.get(one.name, ()), one)
    return MappingProxyType(found)


def loaded(group: str) -> Iterator[Any]:
    """Yield what each entry point of a group stands for, in the order of their names."""
    for _, offered in sorted(entry_points(group).items()):
        yield offered[0].load()


def how_to_get(name: str) -> str:
    """Return how to get what is called `name`, as the end of a sentence; "" if no distribution of ours brings it."""
    found = [distribution for distribution, names in BROUGHT_BY.items() if name in names]
    return f"it comes with {found[0]}: pip install {found[0]}" if found else ""
