"""Read values of decoded JSON, checked one by one, with limits on everything that users may write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, cast

from topoplace import _checks
from topoplace.errors import KubernetesError

_MOST_ITEMS: Final = 1000
_MOST_CHARACTERS: Final = 1024
MOST_DEPTH: Final = 100
"""Limit on the nesting of objects; the API server's own have no more than 30 levels."""
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


def mapping(value: object, what: str) -> Mapping[str, Any]:
    """Return a JSON object, empty if it is missing; KubernetesError for anything else."""
    if value is None:
        return _NOTHING
    if not isinstance(value, dict):
        raise KubernetesError(f"{what} = {_checks.shown(value)} is not an object")
    return cast("dict[str, Any]", value)


class TooDeep(dict[str, Any]):
    """An object that was nested too deep, cut to what names it; no decision uses it."""


def whole(value: object, what: str) -> Mapping[str, Any]:
    """Return an object of the API; KubernetesError for anything else, and for one that is nested too deep."""
    if isinstance(value, TooDeep):
        raise KubernetesError(f"{what} is nested more than {MOST_DEPTH} deep")
    return mapping(value, what)


def check_depth(value: object, what: str) -> None:
    """Raise KubernetesError if a JSON value is nested too deep."""
    level: list[Any] = [value]
    for _ in range(MOST_DEPTH):
        level = [inner for one in level for inner in _inner(one)]
        if not level:
            return
    raise KubernetesError(f"{what} is nested more than {MOST_DEPTH} deep")


def _inner(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return value if isinstance(value, list) else ()  # pyright: ignore[reportUnknownVariableType]


def items(value: object, what: str) -> list[Any]:
    """Return a JSON array of up to 1,000 items, empty if it is missing; KubernetesError for anything else."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise KubernetesError(f"{what} = {_checks.shown(value)} is not an array")
    found: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
    if len(found) > _MOST_ITEMS:
        raise KubernetesError(f"{what} has {len(found)} items, more than {_MOST_ITEMS}")
    return found


def text(value: object, what: str) -> str:
    """Return a string of up to 1,024 characters, "" if it is missing; KubernetesError for anything else."""
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > _MOST_CHARACTERS:
        raise KubernetesError(f"{what} = {_checks.shown(value)} is not a text of up to {_MOST_CHARACTERS}")
    return value


def texts(value: object, what: str) -> tuple[str, ...]:
    """Return an array of strings, empty if it is missing; KubernetesError for anything else."""
    return tuple([text(one, f"{what}[{i}]") for i, one in enumerate(items(value, what))])


def labels(value: object, what: str) -> Mapping[str, str]:
    """Return an object whose values are strings, empty if it is missing; KubernetesError for anything else."""
    found = mapping(value, what)
    if len(found) > _MOST_ITEMS:
        raise KubernetesError(f"{what} has {len(found)} entries, more than {_MOST_ITEMS}")
    return {key: text(one, f"{what}[{_checks.shown(key)}]") for key, one in found.items()}


def integer(value: object, what: str) -> int:
    """Return an integer of 32 bits, 0 if it is missing; KubernetesError for anything else."""
    if value is None:
        return 0
    if type(value) is not int or not -(1 << 31) <= value < 1 << 31:
        raise KubernetesError(f"{what} = {_checks.shown(value)} is not an integer of 32 bits")
    return value
