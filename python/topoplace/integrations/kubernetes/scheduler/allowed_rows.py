"""Which nodes the labels, taints and readiness allow: asked once for nodes that look the same, and kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from topoplace.engine.memo import Memo
from topoplace.integrations.kubernetes.objects.node import Node
from topoplace.integrations.kubernetes.objects.pod import Place
from topoplace.integrations.kubernetes.scheduler.predicates import looked_at, why_not

Mask = NDArray[np.bool_]
_MOST_PLACES = 256
"""Demands of pods whose masks are kept."""
_MOST_CHANGES = 1 << 16
_MOST_LOOKS = 1 << 14
"""Combinations of labels and taints whose answers are kept for each demand."""


@dataclass(slots=True)
class _Known:
    mask: Mask
    seen: int
    """How many changes of nodes the mask has taken in."""
    answers: Memo[object, bool] = field(default_factory=lambda: Memo(_MOST_LOOKS))


class AllowedRows:
    """For the demands of pods, the rows of the nodes that meet them."""

    def __init__(self, nodes: Sequence[Node | None]) -> None:
        """nodes: the node of each row, None where there is none; it may change and grow."""
        self._nodes = nodes
        self._known: Memo[Place, _Known] = Memo(_MOST_PLACES)
        self._changes: list[int] = []

    def changed(self, row: int) -> None:
        """Note that the node of a row is new, gone, or has other labels, taints or readiness."""
        self._changes.append(row)
        if len(self._changes) > _MOST_CHANGES:
            self._changes.clear()
            self._known.clear()

    def of(self, place: Place) -> Mask:
        """Return True for each row whose node meets these demands; the caller must not change the array."""
        known = self._known.get(place)
        if known is None:
            known = self._known[place] = _Known(np.zeros(0, np.bool_), len(self._changes))
        rows: Sequence[int] = self._changes[known.seen :]
        if len(known.mask) < len(self._nodes):
            rows = [*rows, *range(len(known.mask), len(self._nodes))]
            longer = np.zeros(len(self._nodes), np.bool_)
            longer[: len(known.mask)] = known.mask
            known.mask = longer
        keys = looked_at(place)
        for row in rows:
            known.mask[row] = self._meets(place, self._nodes[row], keys, known.answers)
        known.seen = len(self._changes)
        return known.mask

    @staticmethod
    def _meets(
        place: Place, node: Node | None, keys: Sequence[str] | None, answers: Memo[object, bool]
    ) -> bool:
        if node is None:
            return False
        if keys is None:
            return not why_not(place, node)
        look = node.ready, node.taints, *[node.labels.get(key) for key in keys]
        return answers.get_or_build(look, lambda: not why_not(place, node))
