"""Decode the API server's JSON; objects that tenants nest too deep are cut, all others are complete."""

from __future__ import annotations

import json
import re
from typing import Any, Final, cast

from topoplace_hosts.kubernetes.objects.fields import MOST_DEPTH, TooDeep

_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
_LEFT_OUT: Final = "topoplace left out what is nested here"
_AROUND: Final = 3
"""The depth of an object of the API in a list, or in an event of a watch."""


def decoded(data: bytes) -> Any:
    """Return a JSON value; ValueError for other text.

    Objects that are nested too deep for Python become `TooDeep`.
    """
    try:
        return json.loads(data)
    except RecursionError:
        pass
    found: Any = json.loads(_cut(data))
    if not isinstance(found, dict):
        return found
    answer = cast("dict[str, Any]", found)
    if isinstance(answer.get("items"), list):
        return {**answer, "items": [_marked(one) for one in answer["items"]]}
    if isinstance(answer.get("object"), dict):
        return {**answer, "object": _marked(answer["object"])}
    return _marked(answer)


def _cut(data: bytes) -> bytes:
    """Return JSON in which `_LEFT_OUT` stands in place of what is nested too deep."""
    parts: list[bytes] = []
    depth, kept = 0, 0
    for token in _TOKEN.finditer(data):
        first = data[token.start()]
        if first in b"[{":
            depth += 1
            if depth == MOST_DEPTH + _AROUND:
                parts += [data[kept : token.start()], json.dumps(_LEFT_OUT).encode()]
        elif first in b"]}":
            depth -= 1
            if depth == MOST_DEPTH + _AROUND - 1:
                kept = token.end()
    return b"".join([*parts, data[kept:]])


def _marked(value: Any) -> Any:
    """Return an object as `TooDeep` if something of it was left out."""
    left = [value]
    while left:
        one = left.pop()
        if one == _LEFT_OUT:
            return TooDeep(value)
        if isinstance(one, dict | list):
            left += one.values() if isinstance(one, dict) else one
    return value
