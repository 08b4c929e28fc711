"""Policies that other installed packages offer, as entry points of the group `topoplace.policies`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from topoplace import _checks

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from topoplace.engine.policy import Policy

GROUP = "topoplace.policies"


def names() -> tuple[str, ...]:
    """Return the names of all policies that installed packages offer, in alphabetical order."""
    return tuple(sorted(_offered()))


def find(name: str) -> Callable[..., Policy] | None:
    """Return the class of the policy that an installed package offers by this name; None if none does.

    ValueError if several packages offer it, or if the package cannot be imported or has no such class.
    """
    offered = _offered().get(name, [])
    if not offered:
        return None
    shown = f"name = {_checks.shown(name)}"
    values = sorted({one.value for one in offered})
    if len(values) > 1:
        raise ValueError(
            f"{shown}: offered by several packages: {', '.join(values)}; name one of these instead"
        )
    try:
        found: object = offered[0].load()
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"{shown}: its package offers {values[0]}: {error}") from None
    if not callable(found):
        raise ValueError(f"{shown}: its package offers {values[0]}, which is not a class")
    return cast("Callable[..., Policy]", found)


def _offered() -> dict[str, list[EntryPoint]]:
    from importlib.metadata import entry_points  # here, as most programs name built-in policies only

    found: dict[str, list[EntryPoint]] = {}
    for one in entry_points(group=GROUP):
        found.setdefault(one.name, []).append(one)
    return found
