"""The meaning of a node's conditions and taints: the node gets no pods, or an agent found something to note.

A node gets no pods if it is not ready, is cordoned or has no network, also where only a taint of Kubernetes says so.
No other condition or taint closes a node, such as those of node-problem-detector or of agents for GPUs. Kubernetes
still gives the node pods, or those that tolerate the taint. Such conditions and taints are noted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from topoplace import _checks
from topoplace_hosts.kubernetes.texts.node_devices import ACCELERATOR
from topoplace_hosts.kubernetes.texts.node_record import NodeRecord

_READY, _NO_NETWORK = "Ready", "NetworkUnavailable"
_TRUE_IS_WELL = re.compile(
    r"(?<!Not)(?:Ready|Healthy|Available|Active|Registered|Succeeded|Passed|Voter|O[Kk])$"
)
"""The ends of conditions that are True on a healthy node; all others are False there."""
_CLOSING_TAINT = re.compile(
    r"node\.(?:kubernetes\.io/(?:not-ready|unreachable|unschedulable|network-unavailable|out-of-service)"
    r"|cloudprovider\.kubernetes\.io/(?:shutdown|uninitialized))"
    r"(?:=.*)?:(?:NoSchedule|NoExecute)"
)
_TAINT = re.compile(r"([^=:]*)(?:=([^:]*))?(?::.*)?")
_FOR_GPUS = re.compile(r"gpus?", re.IGNORECASE)
_MOST_SHOWN = 20


def closed(*, unschedulable: bool, conditions: Mapping[str, str], taints: Iterable[str]) -> str:
    """Return why Kubernetes gives a node in this state no pods; "" if it gives it some."""
    if unschedulable:
        return "Unschedulable: true"
    for kind, well in ((_READY, "True"), (_NO_NETWORK, "False")):
        status = conditions.get(kind, well)
        if status != well and (kind == _READY or status == "True"):
            return f"{kind}: {status}"
    return next(filter(_CLOSING_TAINT.fullmatch, taints), "")


def notes(nodes: Sequence[NodeRecord]) -> Iterator[str]:
    """Yield notes on the conditions and taints that close no node, each with the nodes that have it."""
    if found := _with_nodes(nodes, _problems):
        yield f"Conditions that nodes report, and that close none: {found}."
    if found := _with_nodes(nodes, _reservations):
        yield f"Taints of nodes, which get only pods that tolerate them: {found}."


def _with_nodes(nodes: Iterable[NodeRecord], said: Callable[[NodeRecord], Iterator[str]]) -> str:
    """Return what is `said` of nodes, each with their names; "" if it is nothing."""
    names: dict[str, list[str]] = {}
    for node in nodes:
        for what in said(node):
            names.setdefault(what, []).append(node.name)
    shown = [
        f"{_checks.shown(what, 100).strip(chr(39))} ({_checks.some(having)})"
        for what, having in islice(names.items(), _MOST_SHOWN)
    ]
    more = len(names) - len(shown)
    return "; ".join([*shown, f"{more} more"] if more else shown)


def _problems(node: NodeRecord) -> Iterator[str]:
    """Yield the conditions of `node` that are not as on a node that is well, but the one that closes it.

    A kubelet that answers no longer leaves all its conditions unknown.
    """
    is_silent = node.conditions.get(_READY) == "Unknown"
    for kind, status in node.conditions.items():
        well = "True" if _TRUE_IS_WELL.search(kind) else "False"
        problem = f"{kind}: {status}"
        if status != well and problem != node.closed and not (is_silent and status == "Unknown"):
            yield problem


def _reservations(node: NodeRecord) -> Iterator[str]:
    """Yield the taints of `node` but those that close it, and the usual ones that keep its GPUs for jobs with GPUs."""
    for taint in node.taints:
        key, value = taint, ""
        if match := _TAINT.fullmatch(taint):
            key, value = match[1], match[2] or ""
        for_gpus = ACCELERATOR.fullmatch(key) or _FOR_GPUS.fullmatch(key) or _FOR_GPUS.fullmatch(value)
        if not for_gpus and not _CLOSING_TAINT.fullmatch(taint):
            yield taint
