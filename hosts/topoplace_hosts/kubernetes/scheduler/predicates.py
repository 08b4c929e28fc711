"""The standard scheduler's conditions on a node, amounts apart: each function returns why a pod may not run there.

Each function sees only what is in its arguments, so its answer holds until the node's labels, taints or readiness
change. Amounts, ports and other pods change all the time; `NodeTable` compares those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from topoplace_hosts.kubernetes.objects.node import Node
from topoplace_hosts.kubernetes.objects.pod import Place
from topoplace_hosts.kubernetes.objects.taints import UNSCHEDULABLE, untolerated

Predicate = Callable[[Place, Node], str]


def is_ready(place: Place, node: Node) -> str:
    """Return "" if condition Ready is True, else the reason."""
    return "" if node.ready else "not ready"


def tolerates(place: Place, node: Node) -> str:
    """Return "" if every taint NoSchedule or NoExecute is tolerated, else the reason; a cordon is a taint."""
    taint = untolerated(node.taints, place.tolerations)
    if taint is None:
        return ""
    return "cordoned" if taint.key == UNSCHEDULABLE else f"taint {taint.key}"


def selected(place: Place, node: Node) -> str:
    """Return "" if the node has all labels of `nodeSelector`, else the reason."""
    return "" if all(one.holds(node.labels.get(one.key)) for one in place.selector) else "nodeSelector"


def is_affine(place: Place, node: Node) -> str:
    """Return "" if all requirements of one term of the required node affinity hold, else the reason."""
    if place.terms is None:
        return ""
    for term in place.terms:
        if all(one.holds(node.labels.get(one.key)) for one in term.labels) and all(
            one.holds(node.name) for one in term.names
        ):
            return ""
    return "node affinity"


PREDICATES: Final[tuple[Predicate, ...]] = (is_ready, tolerates, selected, is_affine)


def why_not(place: Place, node: Node) -> str:
    """Return why pods with these demands may not run on a node; "" if they may."""
    return next((why for predicate in PREDICATES if (why := predicate(place, node))), "")


def looked_at(place: Place) -> Sequence[str] | None:
    """Return the keys of the labels that decide for these demands; None if the node's name decides, too."""
    terms = place.terms or ()
    if any(term.names for term in terms):
        return None
    return sorted({one.key for group in (place.selector, *(term.labels for term in terms)) for one in group})
