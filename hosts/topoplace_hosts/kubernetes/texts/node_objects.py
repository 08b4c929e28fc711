"""Reader of Kubernetes nodes in any text: objects in YAML or JSON, labels alone, and what `kubectl` prints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from topoplace import _checks
from topoplace.discovery.text import yaml_tree
from topoplace.discovery.text.yaml_tree import Fields
from topoplace.errors import TopologyError
from topoplace_hosts.kubernetes.texts import kubectl_text, level_labels, node_state
from topoplace_hosts.kubernetes.texts.node_record import NodeRecord

_ELLIPSIS = re.compile(r"^[ \t]+\.\.\.[ \t]*\r?$", re.MULTILINE)  # without blanks it ends a document of YAML
_DOTS = re.compile(r"^[ \t]*\.{3,}[ \t]*\r?$", re.MULTILINE)
_RECOGNISED = re.compile(
    r"(?:^[ \t]*(?:-[ \t]+)?|[{,][ \t]*)\"?"
    r"(?:kind\"?:[ \t]*\"?Node(?:List)?\"?[ \t\r]*(?:[,}]|$)|nvidia\\?\.com\\?/(?:gpu|gfd|mig|cuda)|"
    r"nodeLabel\"?:|cloud\.google\.com/gke-|amd\.com/gpu|(?:topology\.k8s\.aws|fabric\.topograph\.run)/)",
    re.MULTILINE,
)
_VENDOR = "nvidia.com/"


def recognised(text: str) -> bool:
    """Return True if `text` looks like Kubernetes nodes, or the labels of one."""
    forms = (_RECOGNISED, kubectl_text.TABLE, kubectl_text.DESCRIBED, kubectl_text.EXCERPT)
    return any(form.search(text) for form in forms)


def read(text: str, notes: list[str], topologies: list[Fields]) -> Iterator[NodeRecord]:
    """Yield the nodes in `text`; add to `notes` what it leaves out, and to `topologies` those of Kueue and KAI.

    Raises TopologyError naming line or node.
    """
    found = kubectl_text.nodes(text)
    text, elided = (_ELLIPSIS if found is None else _DOTS).subn("", text)
    if elided:
        notes.append(f"{elided} lines of the text are '...': what they stand for is not known.")
    if found is None:
        objects = enumerate(yaml_tree.objects(text, "nodes"))
        found = (node for i, one in objects if (node := _node(one, i, topologies)) is not None)
    seen: set[str] = set()
    for node in found:
        if node.name in seen:
            raise TopologyError(f"{node.where}appears twice")
        seen.add(node.name)
        yield node


def _node(one: Fields, i: int, topologies: list[Fields]) -> NodeRecord | None:
    kind = yaml_tree.scalar(one, "kind")
    if level_labels.is_topology(one):
        topologies.append(one)
    if kind not in (None, "Node"):
        return None
    metadata = yaml_tree.fields(one.get("metadata"), "metadata")
    name = yaml_tree.scalar(metadata, "name") or f"machine{i}"
    where = f"{yaml_tree.at(one)}node {_checks.shown(name)}: "
    status = yaml_tree.fields(one.get("status"), f"{where}status")
    capacity, allocatable, labels = (
        _texts(parent.get(key), where + key)
        for parent, key in ((status, "capacity"), (status, "allocatable"), (metadata, "labels"))
    )
    if kind is None and not labels and not capacity:
        labels = _labels_alone(one, where)
        name = labels.get("kubernetes.io/hostname") or name
    spec = yaml_tree.fields(one.get("spec"), f"{where}spec")
    conditions, taints = dict(_conditions(status, where)), tuple(_taints(spec, where))
    closed = node_state.closed(
        unschedulable=(yaml_tree.scalar(spec, "unschedulable") or "").lower() == "true",
        conditions=conditions,
        taints=taints,
    )
    return NodeRecord(
        name, where, labels, capacity, allocatable, closed, conditions=conditions, taints=taints
    )


def _conditions(status: Fields, where: str) -> Iterator[tuple[str, str]]:
    """Yield type and status of each condition."""
    for item in yaml_tree.items(status, "conditions"):
        condition = yaml_tree.fields(item, f"{where}condition")
        kind, found = yaml_tree.scalar(condition, "type"), yaml_tree.scalar(condition, "status")
        if kind and found:
            yield kind, found.capitalize()


def _taints(spec: Fields, where: str) -> Iterator[str]:
    """Yield each taint as `kubectl describe` shows it."""
    for item in yaml_tree.items(spec, "taints"):
        taint = yaml_tree.fields(item, f"{where}taint")
        key, value, effect = (yaml_tree.scalar(taint, part) for part in ("key", "value", "effect"))
        yield (key or "") + (f"={value}" if value else "") + (f":{effect}" if effect else "")


def _labels_alone(one: Fields, where: str) -> Mapping[str, str]:
    """Return the labels of an object that is a node's labels, or has them under `labels`."""
    if any(key.startswith(_VENDOR) for key in one):
        return _texts(one, where + "labels")
    if labels := _texts(one.get("labels"), where + "labels"):
        return labels
    raise TopologyError(f"{yaml_tree.at(one)}an object that is not a Node and has no labels")


def _texts(value: object, what: str) -> Mapping[str, str]:
    found = yaml_tree.fields(value, what)
    for key, text in found.items():
        if text is not None and not isinstance(text, str):
            raise TopologyError(f"{what}: {_checks.shown(key)} = {_checks.shown(text)} is not a plain value")
    return {key: text or "" for key, text in found.items()}
