"""Published peak speeds of accelerators: dense multiplications of matrices of 16-bit numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from topoplace.topology.devices import Gpu

PEAK_TFLOP_PER_S: Final[Mapping[str, float]] = MappingProxyType(
    {
        # NVIDIA's data sheets, half of the figures "with sparsity". Without a form, a model is that of SXM boards.
        "P100": 21.2,
        "P100 PCIE": 18.7,
        "V100": 125.0,
        "V100 PCIE": 112.0,
        "T4": 65.0,
        "A10": 125.0,
        "A30": 165.0,
        "A40": 149.7,
        "A100": 312.0,
        "A800": 312.0,
        "L4": 121.0,
        "L40": 181.0,
        "L40S": 362.0,
        "H100": 989.4,
        "H100 NVL": 835.5,
        "H100 PCIE": 756.5,
        "H800": 989.4,
        "H800 PCIE": 756.5,
        "H20": 148.0,
        "H200": 989.4,
        "H200 NVL": 835.5,
        "GH200": 989.4,
        "B200": 2250.0,
        "B300": 2250.0,
        "GB200": 2500.0,
        "GB300": 2500.0,
        # NVIDIA's architecture papers; GeForce with sums in 32 bits, as training needs them.
        "A5000": 111.1,
        "A6000": 154.8,
        "6000 ADA": 364.2,
        "3090": 71.0,
        "4090": 165.2,
        "5090": 209.5,
        # AMD's data sheets. MI210, MI250 and MI250X: of one of the dies, which are devices of their own.
        "MI50": 26.5,
        "MI60": 29.5,
        "MI100": 184.6,
        "MI210": 181.0,
        "MI250": 181.0,
        "MI250X": 191.5,
        "MI300A": 980.6,
        "MI300X": 1307.4,
        "MI325X": 1307.4,
        "MI350X": 2306.9,
        "MI355X": 2516.6,
        # Google's documents of each chip; v4 also Jouppi et al., ISCA'23.
        "TPU V2": 46.0,
        "TPU V3": 123.0,
        "TPU V4": 275.0,
        "V5E": 197.0,
        "V5P": 459.0,
        "V6E": 918.0,
    }
)
"""Peak in 10¹² operations per second, bfloat16 or float16, whichever is faster; keys are the words of a product name.
"""
USUAL_EFFICIENCY: Final = 0.4
"""Share of its peak that a GPU reaches over a step: Llama 3 405B had 0.38 to 0.43 (arXiv 2407.21783, table 4)."""
_WORDS: Final = tuple((frozenset(name.split()), peak) for name, peak in PEAK_TFLOP_PER_S.items())


@lru_cache(maxsize=1024)
def peak_tflop_per_s(model: str) -> float | None:
    """Return the peak, in 10¹² operations per second, of a product name such as "NVIDIA A100-SXM4-40GB"; None if
    unknown.
    """
    words = set(re.split(r"[^A-Z0-9]+", model.upper()))
    if "LAPTOP" in words:  # of the same name, but slower
        return None
    named = [(len(needed), peak) for needed, peak in _WORDS if needed <= words]
    return max(named)[1] if named else None


def compute_seconds(tflop: float | None, gpus: Iterable[Gpu]) -> float | None:
    """Return the seconds in which the slowest GPU does `tflop` x 10¹² operations, at `USUAL_EFFICIENCY`; None if
    unknown.
    """
    if not tflop:
        return None
    least = min(map(usual_tflop, gpus))
    return tflop / least if least else None


def usual_tflop(gpu: Gpu) -> float:
    """Return the 10¹² operations that a GPU does in a second, at `USUAL_EFFICIENCY`; 0 if unknown."""
    return (peak_tflop_per_s(gpu.model or "") or 0.0) * gpu.fraction * USUAL_EFFICIENCY
