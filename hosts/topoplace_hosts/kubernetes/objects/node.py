"""A node, as far as a scheduler needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from topoplace.errors import KubernetesError
from topoplace_hosts.kubernetes.objects.fields import items, labels, mapping, text, whole
from topoplace_hosts.kubernetes.objects.quantities import amounts
from topoplace_hosts.kubernetes.objects.taints import Taint, taints


@dataclass(frozen=True, slots=True)
class Node:
    """A node, as far as a scheduler needs it."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    """The taints that keep pods away; a cordoned node has one, too."""
    ready: bool
    """True if condition Ready is True and the node is not being deleted."""
    allocatable: Mapping[str, int]
    """Thousandths of each resource, by its name."""


def node(value: object) -> Node:
    """Return a node of the API; KubernetesError names the field that cannot be read."""
    found = whole(value, "node")
    metadata, spec, status = (mapping(found.get(part), part) for part in ("metadata", "spec", "status"))
    name = text(metadata.get("name"), "metadata.name")
    if not name:
        raise KubernetesError("metadata.name: a node has no name")
    return Node(
        name,
        labels(metadata.get("labels"), "metadata.labels"),
        taints(spec, "spec.taints"),
        _is_ready(status) and metadata.get("deletionTimestamp") is None,
        amounts(status.get("allocatable"), "status.allocatable"),
    )


def _is_ready(status: Mapping[str, object]) -> bool:
    conditions = [
        mapping(one, "status.conditions") for one in items(status.get("conditions"), "status.conditions")
    ]
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)
