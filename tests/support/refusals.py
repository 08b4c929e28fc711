"""Assertions that a parser refuses a damaged text, with a message that says where and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from topoplace import TopologyError


def assert_refused(parse: Callable[[str], object], text: str, old: str, new: str, message: str) -> None:
    """Assert that `parse` refuses `text` with exactly `message` once the first `old` in it is `new`."""
    assert damaged_refusal(parse, text, old, new) == message


def damaged_refusal(parse: Callable[[str], object], text: str, old: str, new: str) -> str:
    """Return the message with which `parse` refuses `text` once the first `old` in it is `new`."""
    assert old in text
    return refusal(parse, text.replace(old, new, 1))


def refusal(parse: Callable[[Any], object], data: str | bytes) -> str:
    """Return the message with which `parse` refuses `data`."""
    with pytest.raises(TopologyError) as caught:
        parse(data)
    return str(caught.value)
