"""How NVIDIA's GPUs are cut in MIG slices."""

from __future__ import annotations

import re

# Into how many slices of compute a GPU can be cut; NVIDIA's MIG user guide.
_SLICES = {
    **dict.fromkeys(
        ("A100", "A800", "H100", "H800", "H200", "H20", "GH200", "B200", "GB200", "B300", "GB300"), 7
    ),
    "A30": 4,
}
_RTX_PRO = re.compile(r"RTX PRO 6000", re.IGNORECASE)
_RTX_PRO_SLICES = 4


def slices_of(model: str) -> int | None:
    """Into how many slices of compute a GPU of that product name can be cut; None where that is not known."""
    if _RTX_PRO.search(model):
        return _RTX_PRO_SLICES
    words = re.split(r"[^A-Z0-9]+", model.upper())
    return next((count for name, count in _SLICES.items() if name in words), None)
