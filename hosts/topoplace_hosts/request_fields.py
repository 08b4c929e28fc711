"""Fields of a request to topoplace, as JSON that users write: parsed strictly, with limits on size and depth."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from topoplace import _checks
from topoplace.errors import JobGraphError
from topoplace.jobs.groups import SizedGroups, sized_groups
from topoplace.jobs.job_graph import PATTERNS


class RequestError(JobGraphError):
    """A request is invalid; the message names the field and the value, escaped."""


def checked(given: Mapping[str, object]) -> dict[str, Any]:
    """Return the fields of a request after checks; RequestError for an unknown field or a wrong value."""
    if strange := sorted(given.keys() - _FIELDS.keys()):
        raise RequestError(f"{_checks.shown(strange[0])} is not one of {', '.join(_FIELDS)}")
    return {name: _FIELDS[name](value, name) for name, value in given.items()}


def from_json(text: str, what: str) -> dict[str, object]:
    """Return the fields of a flat JSON object; RequestError for anything else.

    what: the name of the text in errors. The caller limits its length.
    """
    try:
        found: object = json.loads(
            text,
            object_pairs_hook=lambda pairs: _flat(pairs, what),
            parse_constant=lambda constant: _no_number(constant, what),
            parse_int=lambda digits: _integer(digits, what),
        )
    except (ValueError, RecursionError) as error:
        if isinstance(error, RequestError):
            raise
        found = None
    if not isinstance(found, dict):
        raise RequestError(f"{what} = {_checks.shown(text)} is not a JSON object")
    return found  # pyright: ignore[reportUnknownVariableType]


def _flat(pairs: list[tuple[str, object]], what: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if isinstance(value, dict | list):
            raise RequestError(f"{what}: {_checks.shown(name)} must be a text, a number, true or false")
        if name in found:
            raise RequestError(f"{what}: {_checks.shown(name)} appears twice")
        found[name] = value
    return found


def _no_number(text: str, what: str) -> float:
    raise RequestError(f"{what}: {text} is not a number")


def _integer(text: str, what: str) -> int:
    if len(text) > 12:
        raise RequestError(f"{what}: an integer has more than 12 digits")
    return int(text)


# ---- the fields ----------------------------------------------------------------------------------------------------


def _pattern(value: object, what: str) -> str:
    return _checks.one_of(value, what, PATTERNS, RequestError)


def _flag(value: object, what: str) -> bool:
    return _checks.flag(value, what, RequestError)


def _share(value: object, what: str) -> float:
    return _checks.real(value, what, RequestError, high=1.0)


def _positive(value: object, what: str) -> float:
    return _checks.positive(value, what, RequestError, high=1e9)


def _name(value: object, what: str) -> str:
    name = _checks.text(value, what, RequestError)
    if len(name) > 64 or not name.isprintable():
        raise RequestError(f"{what} = {_checks.shown(value)} is not a printable name of up to 64 characters")
    return name


def _groups(value: object, what: str) -> tuple[SizedGroups, ...]:
    text = _checks.text(value, what, RequestError)
    try:
        found = tuple(sized_groups(_name(one.strip(), what)) for one in text.split(","))
    except RequestError:
        raise
    except JobGraphError as error:
        raise RequestError(f"{what}: {error}") from None
    for sizes, _ in found:
        if isinstance(sizes, str):
            raise RequestError(f"{what} = {_checks.shown(text)}: {sizes!r} is no size")
    return found


_FIELDS: Final[Mapping[str, Callable[[object, str], Any]]] = MappingProxyType(
    {
        "pattern": _pattern,
        "sensitive": _flag,
        "min_utility": _share,
        "min_bandwidth": _positive,
        "within": _name,
        "prefer": _name,
        "groups": _groups,
        "prefer_groups": _groups,
        "balanced": _name,
        "model": _name,
        "memory_gb": _positive,
    }
)
