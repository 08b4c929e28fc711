"""Run times that SC'17's authors published with their code: seconds of 4,000 training iterations, alone and in pairs.

Source: `prof_from_experiments` of github.com/HiEST/gpu-topo-aware at commit 8125c28, rounded to milliseconds. The
machine has two sockets with two P100 each. A name is a neural network and its batch size. In a pair of jobs measured
together, each job with several GPUs had GPUs on both sockets.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Final

from topoplace.jobs.performance_profile import PerformanceProfile
from topoplace.jobs.profile_text import Pair, Solo

NAMES: Final = tuple(
    f"{model}/{batch}" for model in ("bvlc_alexnet", "bvlc_googlenet") for batch in (1, 4, 64, 128)
)
"""Neural networks and batch sizes: the rows of the tables below; in tables of pairs also the columns."""
_SOLO_CLASSES: Final = ((1, "intra-socket"), (2, "intra-socket"), (2, "inter-socket"), (3, "intra-socket"))
_SOLO: Final = (
    (69.165, 127.415, 159.115, 170.36),
    (109.435, 152.285, 187.32, 201.4),
    (967.8, 936.71, 954.5, 977.23),
    (1726.36, 1779.79, 1795.05, 1811.05),
    (112.365, 146.135, 150.265, 174.455),
    (251.195, 299.16, 305.375, 351.975),
    (3228.765, 3401.1, 3387.095, 3880.9),
    (6693.14, 6587.755, 6644.66, 7591.82),
)
_ONE_GPU_BESIDE_ANY: Final = (
    (63.79, 75.03, 65.89, 69.49, 64.45, 71.12, 58.93, 57.67),
    (114.86, 98.61, 119.09, 101.67, 109.95, 115.13, 105.61, 108.95),
    (917.16, 891.37, 937.0, 1018.14, 902.65, 946.84, 929.64, 890.12),
    (1759.61, 1716.55, 1755.32, 1733.76, 1742.3, 1751.81, 1854.04, 1719.49),
)
_TWO_GPUS_BESIDE_TWO: Final = (
    (167.87, 172.08, 158.12, 156.29, 157.87, 154.52, 154.17, 155.74),
    (191.7, 201.4, 196.33, 197.26, 199.47, 185.25, 194.5, 184.51),
    (982.44, 943.58, 1010.9, 1000.97, 967.22, 965.21, 1003.87, 1003.66),
    (1775.3, 1800.36, 1831.87, 1818.04, 1770.09, 1800.01, 1867.89, 1845.88),
    (169.06, 176.1, 162.42, 165.71),
    (306.63, 316.09, 384.87, 377.01),
    (3376.56, 3380.78, 3433.8, 3425.35),
    (6646.92, 6626.92, 6683.13, 6650.81),
)
_THREE_GPUS_BESIDE_ONE: Final = (
    (168.08, 173.05, 170.13, 170.08),
    (198.89, 194.97, 202.08, 204.24),
    (965.13, 965.86, 1003.21, 1023.24),
    (1811.08, 1816.43, 1832.56, 1840.11),
    (175.97, 175.93, 238.18, 227.85),
    (357.09, 364.85, 418.24, 445.35),
    (3886.62, 3889.23, 3903.58),
    (7553.83, 7633.3, 7574.13, 7594.96),
)
_PAIRS: Final = (
    *((1, others, _ONE_GPU_BESIDE_ANY) for others in (1, 2, 3)),
    (2, 2, _TWO_GPUS_BESIDE_TWO),
    (3, 1, _THREE_GPUS_BESIDE_ONE),
)
"""Measured pairs of jobs: GPUs of the first job, GPUs of the second, and the run times of the first in seconds."""


def check_complete(profile: PerformanceProfile) -> None:
    """Raise ValueError if `profile` lacks a run time that the reproduction needs, naming the first one missing."""
    needed = [(name, *place) for name in NAMES for place in _SOLO_CLASSES]
    for name, num_gpus, placement in needed:
        if (name, num_gpus, placement) not in profile.solo:
            raise ValueError(f"profile: no time of {name} on {num_gpus} GPUs alone, {placement}")
    for name, other in product(NAMES[:4], repeat=2):
        if (name, 2, other, 2) not in profile.colocation:
            raise ValueError(f"profile: no time of {name} on 2 GPUs next to {other} on 2")


@cache
def authors_profile() -> PerformanceProfile:
    """Return the run times published with the SC'17 code, of jobs alone and in pairs."""
    return PerformanceProfile(dict(_solo()), dict(_pairs()))


def _solo() -> Iterator[tuple[Solo, float]]:
    for name, row in zip(NAMES, _SOLO, strict=True):
        for (num_gpus, placement), seconds in zip(_SOLO_CLASSES, row, strict=True):
            yield (name, num_gpus, placement), seconds


def _pairs() -> Iterator[tuple[Pair, float]]:
    for num_gpus, other_gpus, table in _PAIRS:
        for name, row in zip(NAMES, table, strict=False):  # on one GPU, only AlexNet was measured
            for other, seconds in zip(NAMES, row, strict=False):  # not every neighbour was measured
                yield (name, num_gpus, other, other_gpus), seconds
