"""What every real sample says: one module per family of formats, each with `EXPECTED` by file name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Expected:
    """The right reading of one sample."""

    says: str
    """What it says, or why it is refused, as a line of the table."""
    check: Callable[[bytes], None]
    """Reads the sample and asserts all of that."""
