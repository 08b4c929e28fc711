"""The GPUs of allocated claims, held in the cluster's state."""

from __future__ import annotations

from collections.abc import Callable

from topoplace_hosts.kubernetes.claims.claim import Claim
from topoplace_hosts.kubernetes.claims.claim_table import ClaimTable
from topoplace_hosts.kubernetes.claims.device import DeviceId
from topoplace_hosts.kubernetes.claims.matching import is_of_gpu_driver

Hold = Callable[[str, str, tuple[int, ...] | None], None]
"""Holds GPUs for a key: the key, the node, and the GPUs' numbers there; None for unknown GPUs."""


class ClaimedGpus:
    """Holds the GPUs of claims in a state, and releases them."""

    def __init__(self, table: ClaimTable, hold: Hold, release: Callable[[str, str], None]) -> None:
        """release: gives back what `hold` took for a key on a node."""
        self._table = table
        self._hold = hold
        self._release = release
        self._nodes: dict[str, tuple[str, ...]] = {}
        self._last: dict[DeviceId, tuple[str, int]] = {}
        """Where a held device was when a slice had it."""

    def renew(self, uid: str, claim: Claim | None) -> None:
        """Hold the GPUs that a claim has now; None for a claim that is gone."""
        for node in self._nodes.pop(uid, ()):
            self._release(_key(uid), node)
        held = claim.allocation.held if claim and claim.allocation else frozenset[DeviceId]()
        by_node: dict[str, list[int] | None] = {}
        for device in sorted(held):
            node, number = self._place(device, claim)
            if node and number is None and is_of_gpu_driver(device):
                by_node[node] = None
            elif node and number is not None:
                numbers = by_node.setdefault(node, [])
                if numbers is not None:
                    numbers.append(number)
        for node, numbers in by_node.items():
            self._hold(_key(uid), node, None if numbers is None else tuple(numbers))
        if by_node:
            self._nodes[uid] = tuple(by_node)

    def _place(self, device: DeviceId, claim: Claim | None) -> tuple[str, int | None]:
        """Return the node of a device, and its number there if it is a GPU of the machine."""
        node = self._table.node_of(device)
        if node:
            number = self._table.on(node).number_of.get(device)
            if number is not None:
                self._last[device] = node, number
            return node, number
        if device in self._last:
            return self._last[device]
        return _pinned(claim), None


def _key(uid: str) -> str:
    return f"claim/{uid}"


def _pinned(claim: Claim | None) -> str:
    """Return the one node on which an allocation can be used; "" if there are more."""
    terms = (claim.allocation.terms if claim and claim.allocation else None) or ()
    names = {name for term in terms for one in term.names if one.operator == "In" for name in one.values}
    return names.pop() if len(names) == 1 else ""
