"""Reader of YAML and JSON text as trees of lists, mappings and texts; lists and mappings know their lines.

Every scalar stays the text it is written as, so that a host called `0x10` or `no` keeps its name; null is None. Anchors
are allowed. Aliases are refused, and so are documents nested deeper than any machine needs and mappings with a
duplicate key.
"""

from __future__ import annotations

import importlib
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, NoReturn

from topoplace import _checks
from topoplace.errors import TopologyError, require_package

MAX_DEPTH = 64
# Denser text than this would take much more memory than its length.
_MIN_CHARACTERS = 3
_CONTAINER = 4
"""Memory of an empty mapping or list, in plain values."""
_ALWAYS_VALUES = 4096

Value = Any
"""None, a str, `Items` or `Fields`."""


class Items(list[Value]):
    """A list of YAML or JSON that knows its line."""

    __slots__ = ("line",)

    line: int
    """The line in which it begins, from 1; absent if lines are unknown (JSON)."""


class Fields(dict[str, Value]):
    """A mapping of YAML or JSON that knows its line, in the order of the text."""

    __slots__ = ("line",)

    line: int
    """The line in which it begins, from 1; absent if lines are unknown (JSON)."""


def documents(text: str, what: str) -> Iterator[Value]:
    """Yield the documents of `text`: one of JSON if it begins with a brace or a bracket, else those of YAML.

    what: the text's name in messages.
    Raise TopologyError naming the line of the first fault, and ModuleNotFoundError if YAML is to be read and PyYAML is
    not installed.
    """
    if text.lstrip()[:1] in ("{", "["):
        yield _json(text, what)
    else:
        yield from _yaml(text, what)


def line_of(value: Value) -> int:
    """Return the line in which `value` begins, 0 if unknown."""
    return getattr(value, "line", 0)


def at(value: Value) -> str:
    """Return "line 7: " for a value that begins in line 7, "" if its line is unknown."""
    line = line_of(value)
    return f"line {line}: " if line else ""


def objects(text: str, what: str) -> Iterator[Fields]:
    """Yield the Kubernetes objects of `text`: each document, or for a list of objects each of its `items`."""
    for document in documents(text, what):
        for one in document if isinstance(document, Items) else [document]:
            if one is None:
                continue
            if not isinstance(one, Fields):
                raise TopologyError(
                    f"{at(one)}{_checks.shown(one)} is not an object of {what}; "
                    "give it as `-o yaml` or `-o json` prints it"
                )
            yield from (fields(item, "an item") for item in items(one, "items")) if "items" in one else [one]


def fields(value: Value, what: str) -> Fields:
    """Return `value` as a mapping; an empty one for None, TopologyError for anything else."""
    if value is None:
        return Fields()
    if not isinstance(value, Fields):
        raise TopologyError(f"{at(value)}{what} = {_checks.shown(value)} is not a mapping")
    return value


def items(parent: Fields, key: str) -> Items:
    """Return the list `parent[key]`; an empty one if there is none, TopologyError if it is not a list."""
    value = parent.get(key)
    if value is None:
        return Items()
    if not isinstance(value, Items):
        raise TopologyError(f"{at(parent)}{key} = {_checks.shown(value)} is not a list")
    return value


def scalar(parent: Fields, key: str) -> str | None:
    """Return the text `parent[key]`; None if it is missing or empty, TopologyError for a list or mapping."""
    value = parent.get(key)
    if value is not None and not isinstance(value, str):
        raise TopologyError(f"{at(parent)}{key} = {_checks.shown(value)} is not a plain value")
    return value or None


def number(parent: Fields, key: str, low: int, high: int) -> int | None:
    """Return the whole number `parent[key]`, None if it is missing; TopologyError for anything not in low..high."""
    text = scalar(parent, key)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18 or not low <= int(text) <= high:
        raise TopologyError(f"{at(parent)}{key} = {_checks.shown(text)} is not a number in {low}..{high}")
    return int(text)


# ---- JSON ------------------------------------------------------------------------------------------------------


def _json(text: str, what: str) -> Value:
    def mapping(pairs: list[tuple[str, Value]]) -> Fields:
        found = Fields(pairs)
        if len(found) < len(pairs):
            twice = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
            raise TopologyError(f"{what}: key {_checks.shown(twice)} appears twice in one object")
        return found

    decoder = json.JSONDecoder(
        object_pairs_hook=mapping, parse_int=str, parse_float=str, parse_constant=str, strict=False
    )
    try:
        return _plain(decoder.decode(text.strip()), what)
    except json.JSONDecodeError as error:
        line = error.lineno + text[: len(text) - len(text.lstrip())].count("\n")
        raise TopologyError(f"line {line}: {what} is not well-formed: {error.msg}") from None
    except RecursionError:
        raise TopologyError(f"{what} is nested deeper than {MAX_DEPTH}") from None


def _plain(root: Value, what: str) -> Value:
    """Return `root` with lists as `Items` and booleans as text; refuse it if it is nested too deep."""
    holder: Items = Items([root])
    left: list[tuple[Items | Fields, int]] = [(holder, 0)]
    while left:
        parent, depth = left.pop()
        if depth > MAX_DEPTH:
            raise TopologyError(f"{what} is nested deeper than {MAX_DEPTH}")
        places: Any = parent.items() if isinstance(parent, Fields) else enumerate(parent)
        for place, value in list(places):
            changed = value
            if isinstance(value, bool):
                changed = "true" if value else "false"
            elif type(value) is list:
                changed = Items(value)  # pyright: ignore[reportUnknownArgumentType]
            if changed is not value:
                parent[place] = changed
            if isinstance(changed, Items | Fields):
                left.append((changed, depth + 1))
    return holder[0]


# ---- YAML ------------------------------------------------------------------------------------------------------


def _yaml(text: str, what: str) -> Iterator[Value]:
    require_package("yaml", f"reading {what}")
    yaml: Any = importlib.import_module("yaml")
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    builder = _YamlBuilder(what, len(text) // _MIN_CHARACTERS + _ALWAYS_VALUES)
    try:
        for event in yaml.parse(text, Loader=loader):
            builder.take(type(event).__name__, event)
            yield from builder.finished()
    except yaml.MarkedYAMLError as error:
        mark: Any = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark else ""
        raise TopologyError(f"{where}{what} is not well-formed: {error.problem}") from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise TopologyError(f"{what} is not well-formed: {_checks.shown(str(error), 100)}") from None


class _YamlBuilder:
    """A builder of trees from the events of a YAML parser, without recursion."""

    def __init__(self, what: str, max_values: int) -> None:
        self._done: list[Value] = []
        self._what = what
        self._left = max_values
        self._open: list[Items | Fields] = []
        self._keys: list[str | None] = []  # of each open mapping, the key whose value comes next

    def take(self, kind: str, event: Any) -> None:
        """Process one event of the parser."""
        if kind == "ScalarEvent":
            null = event.implicit[0] and event.value in ("", "~", "null", "Null", "NULL")
            self._add(None if null else event.value, event)
        elif kind == "MappingStartEvent":
            self._begin(Fields(), event)
        elif kind == "SequenceStartEvent":
            self._begin(Items(), event)
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            self._open.pop()
            self._keys.pop()
        elif kind == "AliasEvent":
            self._refuse(event, f"alias *{event.anchor} is not read; write out what it stands for")

    def finished(self) -> list[Value]:
        """Return a list of the document that the last event completed; [] if it completed none."""
        if self._open or not self._done:
            return []
        done, self._done = self._done, []
        return done

    def _begin(self, container: Items | Fields, event: Any) -> None:
        container.line = event.start_mark.line + 1
        self._left -= _CONTAINER - 1
        self._add(container, event)
        if len(self._open) == MAX_DEPTH:
            self._refuse(event, f"{self._what} is nested deeper than {MAX_DEPTH}")
        self._open.append(container)
        self._keys.append(None)

    def _add(self, value: Value, event: Any) -> None:
        self._left -= 1
        if self._left < 0:
            self._refuse(event, f"{self._what} has too many values for its length")
        if not self._open:
            self._done.append(value)
            return
        parent, key = self._open[-1], self._keys[-1]
        if isinstance(parent, Items):
            parent.append(value)
        elif key is not None:
            parent[key] = value
            self._keys[-1] = None
        else:
            self._keys[-1] = self._checked_key(value, parent, event)

    def _checked_key(self, value: Value, parent: Fields, event: Any) -> str:
        if isinstance(value, Items | Fields):
            self._refuse(event, "a key that is itself a mapping or a list")
        key = value or ""
        if key in parent:
            self._refuse(event, f"key {_checks.shown(key)} appears twice")
        return key

    def _refuse(self, event: Any, why: str) -> NoReturn:
        raise TopologyError(f"line {event.start_mark.line + 1}: {why}")
