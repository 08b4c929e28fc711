"""Entry points that other distributions add: commands, policies, formats, readers of schedulers, modules.

`topoplace-lab` studies placements, `topoplace-hosts` runs them in schedulers; both depend on this package. It knows
only the names that they add, to say which distribution is missing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Used = TypeVar("Used")
_OURS: Final = ("topoplace_lab", "topoplace_hosts")
COMMANDS: Final = "topoplace.commands"
EXAMPLES: Final = "topoplace.examples"
EXPLORE: Final = "topoplace.explore"
FORMATS: Final = "topoplace.formats"
MODULES: Final = "topoplace.modules"
POLICIES: Final = "topoplace.policies"
SNAPSHOTS: Final = "topoplace.snapshots"
SHARING: Final = (
    *("fgd", "least-stranded", "dot-product", "vector-best-fit", "vector-worst-fit"),
    *("gpu-packing", "gpu-clustering", "random-fit", "two-choices"),
)
"""The policies of topoplace-lab that let jobs share GPUs."""
POLICIES_OF_LAB: Final = (
    *SHARING,
    *("kueue-best-fit", "kueue-least-free", "kueue-balanced", "slurm-tree", "slurm-block"),
    *("volcano-binpack", "kubernetes-default", "nvidia-allocator"),
)
"""The policies of topoplace-lab, in the order of lists."""
_BROUGHT_BY: Final = {
    "topoplace-lab": frozenset(
        (
            "capacity",
            "papers",
            "profile",
            "report",
            "show measure",
            "simulate",
            "sweep",
            "sweep suite",
            "trace",
        )
    ).union(POLICIES_OF_LAB),
    "topoplace-hosts": frozenset(("kubernetes", "slurm", "state")),
}
"""The names of commands, policies and modules, by the distribution that adds them."""


def offered_now(group: str) -> Mapping[str, tuple[EntryPoint, ...]]:
    """Return the entry points of a group in all packages that are installed now, by name: those of ours first."""
    from importlib import metadata  # here, as most programs ask for nothing of others

    found: dict[str, tuple[EntryPoint, ...]] = {}
    ours_first = sorted(metadata.entry_points(group=group), key=lambda one: not one.value.startswith(_OURS))
    for one in ours_first:
        found[one.name] = (*found.get(one.name, ()), one)
    return MappingProxyType(found)


# The entry points of a group when it was first asked for: looking takes milliseconds.
entry_points = cache(offered_now)


def loaded(group: str, use: Callable[[Any], Used]) -> Iterator[Used]:
    """Yield what `use` makes of the object of each entry point of a group, in the order of their names.

    What cannot be imported or used is left out, with a warning that names it.
    """
    for _, offered in sorted(entry_points(group).items()):
        try:
            yield load(offered[0], use)
        except ImportError as error:
            warnings.warn(str(error), stacklevel=2)


def load(offered: EntryPoint, use: Callable[[Any], Any] = lambda it: it) -> Any:
    """Return what `use` makes of the object of an entry point; ImportError names one of which that fails."""
    try:
        return use(offered.load())
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        what = f"{offered.value}, which an installed package offers as {offered.name}"
        raise ImportError(f"{what}: {type(error).__name__}: {text_of(error)}") from error


def text_of(error: BaseException) -> str:
    """Return the message of an exception of others, whose own code may fail too."""
    try:
        return str(error)
    except Exception:
        return "an exception that cannot be printed"


def module(name: str, group: str = MODULES) -> Any:
    """Return the module that a distribution adds to `topoplace`, or to `group`, under this name; None if none does."""
    offered = entry_points(group).get(name)
    return load(offered[0]) if offered else None


def how_to_get(name: str) -> str:
    """Return how to install what is called `name`, as the end of a sentence; "" if no distribution of ours adds it."""
    found = [distribution for distribution, names in _BROUGHT_BY.items() if name in names]
    return f"it comes with {found[0]}: pip install {found[0]}" if found else ""
