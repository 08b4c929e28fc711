"""The nodes that labels, taints and readiness allow, computed once for nodes that look the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NewType

import numpy as np
from numpy.typing import NDArray

from topoplace.engine.memo import Memo
from topoplace_hosts.kubernetes.objects.node import Node
from topoplace_hosts.kubernetes.objects.pod import Place
from topoplace_hosts.kubernetes.scheduler.predicates import looked_at, why_not

Mask = NDArray[np.bool_]
"""True or False for each row of the table of nodes."""
MachineMask = NewType("MachineMask", NDArray[np.bool_])
"""True or False for each machine of the topology; the rows of other nodes, which come later, are left out."""
_MOST_PLACES = 256
"""Limit on the demands of pods whose masks are kept."""
_MOST_CHANGES = 1 << 16
_MOST_LOOKS = 1 << 14
"""Limit on the combinations of labels and taints whose answers are kept for each demand."""
_MOST_REASONS = 100
_NO_NODE = "no node"


@dataclass(slots=True)
class _Known:
    """What is known about one place: for each row 0 if it is allowed, or the number of the reason why not."""

    codes: NDArray[np.int16]
    seen: int
    """How many changes of nodes the codes have taken in."""
    reasons: list[str] = field(default_factory=lambda: [""])
    code_of: Memo[object, int] = field(default_factory=lambda: Memo(_MOST_LOOKS))
    """The code of nodes that look the same."""


class AllowedRows:
    """The rows of the nodes that meet a pod's demands."""

    def __init__(self, nodes: Sequence[Node | None]) -> None:
        """nodes: the node of each row, None for a row without one; the list may change and grow."""
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
        """Return True for each row whose node meets these demands."""
        return np.equal(self._codes(place).codes, 0)

    def reasons(self, place: Place) -> dict[str, int]:
        """Return the number of nodes that do not meet these demands, by reason."""
        known = self._codes(place)
        counts = np.bincount(known.codes, minlength=len(known.reasons)).tolist()
        return {
            why: count
            for why, count in zip(known.reasons, counts, strict=True)
            if why not in ("", _NO_NODE) and count
        }

    def _codes(self, place: Place) -> _Known:
        """Return what is known about a place, brought up to date."""
        known = self._known.get(place)
        if known is None:
            known = self._known[place] = _Known(np.zeros(0, np.int16), len(self._changes))
        rows: Sequence[int] = self._changes[known.seen :]
        if len(known.codes) < len(self._nodes):
            rows = [*rows, *range(len(known.codes), len(self._nodes))]
            longer = np.zeros(len(self._nodes), np.int16)
            longer[: len(known.codes)] = known.codes
            known.codes = longer
        keys = looked_at(place) if rows else ()
        for row in rows:
            known.codes[row] = self._code(place, self._nodes[row], keys, known)
        known.seen = len(self._changes)
        return known

    @staticmethod
    def _code(place: Place, node: Node | None, keys: Sequence[str] | None, known: _Known) -> int:
        def asked() -> int:
            why = _NO_NODE if node is None else why_not(place, node)
            if why not in known.reasons:
                if len(known.reasons) == _MOST_REASONS:
                    return _MOST_REASONS - 1
                known.reasons.append(why if len(known.reasons) < _MOST_REASONS - 1 else "other reasons")
                return len(known.reasons) - 1
            return known.reasons.index(why)

        if keys is None or node is None:
            return asked()
        look = node.ready, node.taints, *[node.labels.get(key) for key in keys]
        return known.code_of.get_or_build(look, asked)
