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


# Multiprocessors of a slice 1g; larger slices have at least as many for each of theirs. NVIDIA's MIG user guide.
_MULTIPROCESSORS = {
    **dict.fromkeys(("A100", "A800", "A30"), 14),
    **dict.fromkeys(("H100", "H800", "H200"), 16),
}


def share_of(model: str, multiprocessors: int, memory_share: float) -> float:
    """Return the share of a GPU's compute that a slice is, by its multiprocessors, or else by its share of the memory.

    memory_share: of the GPU's memory, which comes in eighths.
    """
    whole = slices_of(model) or 7
    words = re.split(r"[^A-Z0-9]+", model.upper())
    one = next((count for name, count in _MULTIPROCESSORS.items() if name in words), None)
    compute = multiprocessors // one if one else round(memory_share * 8)
    return min(max(compute, 1), whole) / whole
