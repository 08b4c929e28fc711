"""NVIDIA's MIG slices: their number on each GPU model, and slices in texts without UUIDs."""

from __future__ import annotations

import re
from collections.abc import Sequence

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


def described(number: int, model: str, multiprocessors: int, mib: int, whole_mib: int) -> str:
    """Return a slice in words, such as "MIG0 (3g, 20096 MiB)".

    The number of compute slices follows from the multiprocessors, or else from the share of the GPU's memory, in
    eighths.
    """
    whole = slices_of(model) or 7
    words = re.split(r"[^A-Z0-9]+", model.upper())
    one = next((count for name, count in _MULTIPROCESSORS.items() if name in words), None)
    compute = multiprocessors // one if one else round(mib / (whole_mib or mib or 1) * 8)
    return f"MIG{number} ({min(max(compute, 1), whole)}g, {mib} MiB)"


def note(gpu: str, slices: Sequence[str]) -> str:
    """Return the note on a GPU in MIG mode whose slices have no UUID in the text, so that no process can use them."""
    if not slices:
        return (
            f"{gpu} is in MIG mode without slices, so that no job can use it, and is marked unhealthy: "
            "`nvidia-smi mig` makes slices, `nvidia-smi -mig 0` makes it whole."
        )
    return (
        f"{gpu} is cut into MIG slices, so that no job can have it whole, and is marked unhealthy: "
        f"{', '.join(slices)}; `nvidia-smi -L` gives the slices as devices, with the UUIDs that jobs need."
    )
