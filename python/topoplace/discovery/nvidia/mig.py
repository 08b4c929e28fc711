"""How many MIG compute slices each of NVIDIA's GPU models has."""

from __future__ import annotations

import re

# The number of compute slices of a GPU; NVIDIA's MIG user guide.
_SLICES = {
    **dict.fromkeys(
        ("A100", "A800", "H100", "H800", "H200", "H20", "GH200", "B200", "GB200", "B300", "GB300"), 7
    ),
    "A30": 4,
}
_RTX_PRO = re.compile(r"RTX PRO 6000", re.IGNORECASE)
_RTX_PRO_SLICES = 4


def slices_of(model: str) -> int | None:
    """Return the number of MIG compute slices of a GPU with the product name `model`; None if unknown."""
    if _RTX_PRO.search(model):
        return _RTX_PRO_SLICES
    words = re.split(r"[^A-Z0-9]+", model.upper())
    return next((count for name, count in _SLICES.items() if name in words), None)
