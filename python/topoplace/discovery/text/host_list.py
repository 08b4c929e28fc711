"""Host lists as Slurm writes them: `node[01-03,11],login` is the hosts node01, node02, node03, node11 and login.

A number in brackets keeps its leading zeros. Several brackets in one name give every combination, the last one counting
fastest. `folded` is the inverse of `expanded`: names come back exactly, in their order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product

from topoplace import _checks
from topoplace.errors import TopologyError

MAX_HOSTS = 1_000_000
"""Limit on the hosts of one list; more are refused as a mistake."""
MAX_NAME = 255
"""Limit on the characters of a host's name."""

_ITEM = re.compile(r"(?:[^,\[\]]++|\[[^\[\]]*+\])++")
_PART = re.compile(r"\[([^\[\]]*)\]|([^\[\]]+)")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")
_UNLISTABLE = re.compile(r"[\s,\[\]]")
_LAST_NUMBER = re.compile(r"(.*?)([0-9]{1,18})([^0-9]*)", re.DOTALL)


def expanded(text: str, what: str = "host list", *, limit: int = MAX_HOSTS) -> list[str]:
    """Return the names that `text` lists, in its order; duplicates are kept.

    what: the list's name in messages. limit: largest number of names. Raise TopologyError naming the item if it is
    empty, has unbalanced brackets, an invalid or descending range, a name that is too long, or too many names.
    """
    _checks.text(text, what, TopologyError)
    names: list[str] = []
    for item in _items(text, what):
        choices: list[list[str]] = []
        count, length = 1, 0
        for match in _PART.finditer(item):
            choices.append(_choices(match, item, what, limit - len(names)))
            count, length = count * len(choices[-1]), length + max(map(len, choices[-1]))
            if count > limit - len(names):
                raise _too_many(item, what, limit)
            if length > MAX_NAME:
                raise TopologyError(
                    f"{what}: {_checks.shown(item)} makes names of more than {MAX_NAME} characters"
                )
        names.extend(map("".join, product(*choices)))
    return names


def folded(names: Iterable[str]) -> str:
    """Return a short list, with at most one bracket per item, that `expanded` turns into exactly these names.

    Neighbours that differ only in their last number share a bracket. Raises TopologyError for a name that no host list
    can hold: empty, too long, or with a comma, bracket or blank.
    """
    runs: list[_NumberRun] = []
    for name in names:
        _checks.text(name, "a name", TopologyError)
        if len(name) > MAX_NAME or _UNLISTABLE.search(name):
            raise TopologyError(f"{_checks.shown(name)} cannot be in a host list")
        if not runs or not runs[-1].takes(name):
            runs.append(_NumberRun(name))
    return ",".join(map(str, runs))


class _NumberRun:
    """Names that differ only in their last number, stored as the ranges to write between one pair of brackets."""

    def __init__(self, name: str) -> None:
        self.prefix, number, self.suffix = _split(name)
        self.ranges = [[number, number]]

    def takes(self, name: str) -> bool:
        """Add `name` at the end and return True, or return False if it does not fit."""
        prefix, number, suffix = _split(name)
        if (prefix, suffix) != (self.prefix, self.suffix) or not number or not self.ranges[0][0]:
            return False
        low, high = self.ranges[-1]
        if number == f"{int(high) + 1:0{len(low)}}":
            self.ranges[-1][1] = number
        else:
            self.ranges.append([number, number])
        return True

    def __str__(self) -> str:
        if self.ranges in ([[low := self.ranges[0][0], low]],):
            return f"{self.prefix}{low}{self.suffix}"
        inside = ",".join(low if low == high else f"{low}-{high}" for low, high in self.ranges)
        return f"{self.prefix}[{inside}]{self.suffix}"


def _split(name: str) -> tuple[str, str, str]:
    """Split `name` into the text before its last number, the number ("" for none), and the text after it."""
    match = _LAST_NUMBER.fullmatch(name)
    return (match[1], match[2], match[3]) if match else (name, "", "")


def _items(text: str, what: str) -> Iterator[str]:
    """Yield the items between the commas outside brackets."""
    place = 0
    while True:
        match = _ITEM.match(text, place)
        if match is None:
            raise TopologyError(f"{what}: {_checks.shown(text[place : place + 40])} must begin with a name")
        if re.search(r"\s", match[0]):
            raise TopologyError(f"{what}: there is a blank in {_checks.shown(match[0])}")
        yield match[0]
        place = match.end()
        if place == len(text):
            return
        if text[place] != ",":
            raise TopologyError(
                f"{what}: the bracket in {_checks.shown(text[place : place + 40])} has no partner"
            )
        place += 1


def _choices(match: re.Match[str], item: str, what: str, limit: int) -> list[str]:
    """Return the texts that one part of an item stands for: itself, or the numbers between its brackets."""
    if match[1] is None:
        return [match[2]]
    numbers: list[str] = []
    for part in match[1].split(","):
        found = _RANGE.fullmatch(part)
        if found is None:
            raise TopologyError(
                f"{what}: {_checks.shown(part)} in {_checks.shown(item)} is not a range of numbers"
            )
        low, high = found[1], found[2] or found[1]
        if int(high) < int(low):
            raise TopologyError(f"{what}: {_checks.shown(part)} in {_checks.shown(item)} runs backwards")
        if int(high) - int(low) >= limit - len(numbers):
            raise _too_many(item, what, limit)
        numbers.extend(f"{number:0{len(low)}}" for number in range(int(low), int(high) + 1))
    return numbers


def _too_many(item: str, what: str, limit: int) -> TopologyError:
    return TopologyError(f"{what}: with {_checks.shown(item)} there are more than {limit} names")
