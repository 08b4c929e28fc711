"""Reader of JSON from NetQ and NMX: NVLink domains of compute nodes, or the graph of an Ethernet network.

Compute nodes are a list of objects with `Name`, `DomainUUID` and `GpuIDList`. A topology graph has `nodes`, and `links`
between them with their `size`, the number of cables. An entry of `nodes` is a node, or a tier: an object with a list
`compounded_nodes`. Both become a Fabric.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from topoplace import _checks
from topoplace.discovery.text import decode, yaml_tree
from topoplace.discovery.text.yaml_tree import Fields, Items, Value
from topoplace.errors import TopologyError
from topoplace.topology.fabric import Fabric, Level
from topoplace.topology.links.link_kinds import LinkKind
from topoplace_hosts.networks import switch_tree

_RECOGNISED = re.compile(r'"DomainUUID"[ \t]*:|"compounded_(?:links|nodes)"[ \t]*:')
_MAX_CABLES = 100_000


def recognised(text: str) -> bool:
    """Return True if `text` looks like compute nodes or a topology graph of NetQ."""
    return text.lstrip()[:1] in ("[", "{") and _RECOGNISED.search(text) is not None


def parse(data: str | bytes, *, name: str = "netq") -> Fabric:
    """Read the fabric that `data` describes.

    Compute nodes give one level "nvlink_domain"; notes state the number of GPUs and the nodes that are not healthy. A
    topology graph gives levels "leaf", "spine" and so on, by a switch's distance from the nearest machine.
    Raises TopologyError naming the object that is malformed, has a duplicate name, or links to an unknown node.
    """
    text = decode.decoded(data, "NetQ's answer")
    if text.lstrip()[:1] not in ("[", "{"):
        raise TopologyError("NetQ's answer is not JSON: it must begin with [ or {")
    (root,) = yaml_tree.documents(text, "NetQ's answer")
    objects = [yaml_tree.fields(one, "an entry") for one in (root if isinstance(root, Items) else [root])]
    if not objects:
        raise TopologyError("NetQ's answer is empty")
    if all("links" in one and "nodes" in one for one in objects):
        return _graph(objects, name)
    return _compute_nodes(objects, name)


# ---- compute nodes ---------------------------------------------------------------------------------------------


def _compute_nodes(objects: Sequence[Fields], name: str) -> Fabric:
    domains: dict[str, str | None] = {}
    gpus: Counter[int] = Counter()
    sick: list[str] = []
    for i, one in enumerate(objects):
        machine = yaml_tree.scalar(one, "Name")
        if machine is None or "DomainUUID" not in one:
            raise TopologyError(
                f"entry {i} has no {'Name' if machine is None else 'DomainUUID'}: no compute node"
            )
        if machine in domains:
            raise TopologyError(f"entry {i}: compute node {_checks.shown(machine)} appears twice")
        domains[machine] = yaml_tree.scalar(one, "DomainUUID")
        gpus[len(yaml_tree.items(one, "GpuIDList"))] += 1
        if (yaml_tree.scalar(one, "Health") or "HEALTHY") != "HEALTHY":
            sick.append(machine)
    notes = [f"{machines} machines have {count} GPUs." for count, machines in sorted(gpus.items())]
    if sick:
        notes.append(f"Not healthy: {_checks.some(sick, 20)}.")
    level = Level("nvlink_domain", tuple(domains.values()), kind=LinkKind.NVSWITCH)
    return Fabric(tuple(domains), (level,), name, tuple(notes))


# ---- graphs ----------------------------------------------------------------------------------------------------


def _graph(graphs: Sequence[Fields], name: str) -> Fabric:
    called: dict[str, str] = {}
    switches: set[str] = set()
    for graph in graphs:
        for node in _inside(yaml_tree.items(graph, "nodes"), "compounded_nodes"):
            key = _add_node(node, called)
            if yaml_tree.scalar(node, "device_type") == "switch":
                switches.add(key)
    _refuse_twins(called)
    cables = switch_tree.Cables(
        {label: Counter() for key, label in called.items() if key not in switches},
        {label: Counter() for key, label in called.items() if key in switches},
    )
    between: list[str] = []
    for graph in graphs:
        for link in yaml_tree.items(graph, "links"):
            _plug(yaml_tree.fields(link, "a link"), called, switches, cables, between)
    tree = switch_tree.from_cables(cables, what="the graph")
    notes = [f"Links between machines are left out: {_checks.some(between)}."] if between else []
    return switch_tree.fabric(tree, name, [*notes, "The graph tells no speeds."])


def _add_node(node: Fields, called: dict[str, str]) -> str:
    """Record the node's name in `called` under its key, the `id` of the node, and return the key."""
    key, label = yaml_tree.scalar(node, "id"), yaml_tree.scalar(node, "name")
    if key is None or label is None:
        raise TopologyError(f"a node of the graph has no {'id' if key is None else 'name'}")
    if key in called:
        raise TopologyError(f"node {_checks.shown(key)} of the graph appears twice")
    called[key] = label
    return key


def _inside(nodes: Items, key: str) -> Iterator[Fields]:
    """Yield the devices in `nodes`: for a group the devices in its list `key`, for any other node the node itself."""
    for item in nodes:
        node = yaml_tree.fields(item, "a node")
        if key in node:
            yield from (yaml_tree.fields(one, "a node") for one in yaml_tree.items(node, key))
        else:
            yield node


def _refuse_twins(called: dict[str, str]) -> None:
    for label, times in Counter(called.values()).items():
        if times > 1:
            raise TopologyError(f"{times} nodes of the graph have the name {_checks.shown(label)}")


def _plug(
    link: Fields, called: dict[str, str], switches: set[str], cables: switch_tree.Cables, between: list[str]
) -> None:
    """Add the cables of `link` to `cables`; if it joins two machines, name them in `between` instead."""
    ends = [_end(link, key, called) for key in ("src", "target")]
    count = yaml_tree.number(link, "size", 1, _MAX_CABLES) or 1
    for near, far in (ends, ends[::-1]):
        if near in switches and far in switches:
            cables.trunks[called[near]][called[far]] += count
        elif far in switches:
            cables.ports[called[near]][called[far]] += count
        elif near not in switches and near == ends[0]:
            between.append(f"{called[near]} to {called[far]}")


def _end(link: Fields, key: str, called: dict[str, str]) -> str:
    end: Value = yaml_tree.scalar(link, key)
    if end not in called:
        raise TopologyError(f"{key} of a link = {_checks.shown(end)} is not a node of the graph")
    return str(end)
