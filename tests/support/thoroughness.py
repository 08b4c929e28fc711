"""How much a test does: enough for each change, or with `--hypothesis-profile=deep` as much as a night allows.

What only the night tries has the mark `deep`, which `make test` leaves out and `make test-deep` does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

import pytest
from hypothesis import settings

T = TypeVar("T")

THINNED: Final = {
    "test_broken_text_is_refused_at_most": 100,
    "test_every_job_of_the_published_lists": 13,
    "test_every_line_of_every_log": 0,
    "test_long_queues": 0,
    "test_the_option_or_its_file_is_named": 0,
    "test_what_is_no_readable_file_is_refused_in_one_line": 0,
}
"""Tests with many cases, of which a change tries one for each value of each argument, and so many evenly spread."""


def thorough(deep: int, otherwise: int) -> int:
    """`deep` under the profile of that name, and `otherwise` under any other."""
    return deep if settings.get_current_profile_name() == "deep" else otherwise


def for_each_policy() -> settings:
    """How many examples a test sees that is repeated for every policy: they share most of what it tries."""
    return settings(max_examples=thorough(5000, 6))


def share(cases: Sequence[T], turn: int, of: int) -> Sequence[T]:
    """One of `of` equal shares of the cases, which the turn chooses; all of them under the profile `deep`."""
    return cases[turn % of :: of] if thorough(0, 1) else cases


def mark_deep(items: Sequence[pytest.Item]) -> None:
    """Mark the cases of `THINNED` tests that only the night tries."""
    cases: dict[str, list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and item.originalname in THINNED:
            cases.setdefault(item.originalname, []).append(item)
    for name, of_test in cases.items():
        spread = (of_test[len(of_test) * i // THINNED[name]] for i in range(THINNED[name]))
        quick = {*each_value(of_test), *spread}
        for item in of_test:
            if item not in quick:
                item.add_marker("deep")


def each_value(cases: Sequence[pytest.Function]) -> Iterator[pytest.Function]:
    """Yield few cases that have each value of each argument: first those with new values alone, then the others."""
    seen: set[tuple[str, str]] = set()
    for enough in (all, any):
        for case in cases:
            values = {(name, str(value)) for name, value in case.callspec.params.items()}
            if enough(value not in seen for value in values):
                seen |= values
                yield case
