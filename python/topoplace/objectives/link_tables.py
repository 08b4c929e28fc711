"""What the scores look up: the bandwidth and class of every link of a topology, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from topoplace import kernels
from topoplace.topology.links.link import NVLINKS, LinkKind

if TYPE_CHECKING:
    from topoplace.objectives.effective import EffectiveBandwidth
    from topoplace.topology.links.link import Link
    from topoplace.topology.topology import Topology

DOUBLE_NVLINK, SINGLE_NVLINK, OTHER_LINK = 0, 1, 2
NUM_LINK_CLASSES: Final = 3

_NVLINKS: Final = NVLINKS | {LinkKind.NVSWITCH, LinkKind.C2C}
# Midpoints between the rows of Table 1 (PCIe 12, single NVLink 20 or 25, double NVLink 50 GB/s).
_SINGLE_FROM_GB_PER_S = (12.0 + 20.0) / 2
_DOUBLE_FROM_GB_PER_S = (25.0 + 50.0) / 2
# Up to here nested lists are faster than arrays for single look-ups, and not too large.
_MAX_LISTED_GPUS: Final = 512


def link_class(topology: Topology) -> NDArray[np.int8]:
    """Class of every pair's link, shape (n, n): 0 double NVLink, 1 single NVLink, 2 PCIe and everything else.

    Two or more NVLinks side by side, and NVSwitch, are "double". Links of unknown kind, xGMI and ICI are classed by
    their bandwidth, split at the midpoints of the paper's Table 1: single from 16 GB/s, double from 37.5 GB/s.
    """
    classes: NDArray[np.int8] = topology.link_matrix(class_of, np.int8)
    return classes


def class_of(link: Link) -> int:
    """The class of one link, as in `link_class`."""
    if link.kind in _NVLINKS:
        return DOUBLE_NVLINK if link.lanes >= 2 or link.kind == LinkKind.NVSWITCH else SINGLE_NVLINK
    if (
        link.kind not in (LinkKind.UNKNOWN, LinkKind.XGMI, LinkKind.ICI)
        or link.gb_per_s < _SINGLE_FROM_GB_PER_S
    ):
        return OTHER_LINK
    return DOUBLE_NVLINK if link.gb_per_s >= _DOUBLE_FROM_GB_PER_S else SINGLE_NVLINK


class LinkTables:
    """Bandwidth and class of every pair of one topology as plain lists, the fastest form for a handful of look-ups.

    `topology.derived(LinkTables)` is the one of a topology, kept for as long as the topology lives.
    """

    __slots__ = ("_count_scores", "_indifferent", "_sums", "bandwidth", "classes", "link_class", "matrix")

    def __init__(self, topology: Topology) -> None:
        self.matrix = topology.bandwidth_matrix()
        self.link_class = link_class(topology)
        small = topology.num_gpus <= _MAX_LISTED_GPUS
        self.bandwidth: Sequence[Sequence[float]] = self.matrix.tolist() if small else list(self.matrix)
        self.classes: Sequence[Sequence[int]] = self.link_class.tolist() if small else list(self.link_class)
        self._count_scores: dict[EffectiveBandwidth, kernels.LinkCountScore] = {}
        self._indifferent: kernels.LinkCountScore | None = None
        self._sums: tuple[tuple[int, ...], dict[int, float], float] = ((), {}, 0.0)

    def remaining(self, free: tuple[int, ...], taken: Sequence[int]) -> float:
        """GB/s among the `free` GPUs without those that are `taken` of them, rounded to three decimals."""
        if self._sums[0] != free:
            among = self.matrix[:, free].sum(axis=1)[list(free)]
            self._sums = (free, dict(zip(free, among.tolist(), strict=True)), float(among.sum()) / 2)
        _, of_gpu, total = self._sums
        inside = float(self.matrix[np.ix_(taken, taken)].sum()) / 2
        return round(total - sum(of_gpu[gpu] for gpu in taken) + inside, 3)

    @property
    def indifferent(self) -> kernels.LinkCountScore:
        """The kernel objective under which every embedding is as good as any other: the tie order alone decides."""
        if self._indifferent is None:
            self._indifferent = kernels.LinkCountScore(
                np.zeros_like(self.link_class), lambda counts: np.zeros(len(counts))
            )
        return self._indifferent

    def count_score(self, model: EffectiveBandwidth) -> kernels.LinkCountScore:
        """The kernel objective "eq. 2 with these coefficients on this topology", one object for all searches."""
        score = self._count_scores.get(model)
        if score is None:
            score = self._count_scores[model] = kernels.LinkCountScore(self.link_class, model)
        return score
