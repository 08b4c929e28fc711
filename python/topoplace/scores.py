"""The scores of a placement, by name: a dictionary that cannot be changed."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any, NoReturn

from topoplace import _checks

_PLAIN, _TEXT = {float, int}, {str}


class Scores(dict[str, float]):
    """Scores by name, read-only; it equals, and JSON and pickle write it as, a dictionary with the same items."""

    __slots__ = ()

    def _refuse(self: Any, *_values: Any, **_named: Any) -> NoReturn:
        raise TypeError("scores of a placement are read-only; dict(placement.scores) can be changed")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[Scores], tuple[dict[str, float]]]:
        return Scores, (dict(self),)


def checked_scores(given: object, error: _checks.Error) -> Scores:
    """Return `given` as `Scores`; `error` names a key that is no text or a value that is no number."""
    if type(given) is Scores:
        return given
    if not isinstance(given, dict):
        _checks.instance(given, Mapping, "scores", error)
    scores: Mapping[Any, Any] = given  # type: ignore[assignment]
    if set(map(type, scores.values())) <= _PLAIN and set(map(type, scores)) <= _TEXT:
        return Scores(scores)
    names = [_checks.text(name, "a name in scores", error) for name in scores]
    return Scores({name: _number(scores[name], name, error) for name in names})


def _number(value: Any, name: str, error: _checks.Error) -> float:
    if type(value) is int:
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise error(f"scores[{name!r}] = {_checks.shown(value)} is not a number")
    return float(value)
