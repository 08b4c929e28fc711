"""Reader of `dcgmi dmon`: the bytes that each GPU sends per second over PCIe and NVLink."""

from __future__ import annotations

import re
from typing import Final

FIELDS: Final = (1009, 1011)
"""DCGM's numbers of the fields to request: bytes per second sent over PCIe, and over all NVLinks."""
_ROW: Final = re.compile(r"\s*GPU\s+(\d{1,4})\s+(\S+)\s+(\S+)\s*")


def parse(text: str) -> dict[int, tuple[float, float]]:
    """Return, by GPU, the bytes per second over PCIe and NVLink in its last row; 0 for N/A.

    text: output of `dcgmi dmon -e 1009,1011`. Raise ValueError if it has no row of a GPU, or a value is neither N/A nor
    a number of at least 0.
    """
    rates: dict[int, tuple[float, float]] = {}
    for line, row in enumerate(text.splitlines(), 1):
        if found := _ROW.fullmatch(row):
            rates[int(found[1])] = _rate(found[2], line), _rate(found[3], line)
    if not rates:
        raise ValueError("no row `GPU number rate rate`")
    return rates


def _rate(text: str, line: int) -> float:
    if text == "N/A":
        return 0.0
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 <= rate < 1e18:
        raise ValueError(f"line {line}: {text!r}: must be bytes per second or N/A")
    return rate
