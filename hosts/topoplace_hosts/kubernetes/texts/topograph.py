"""Reader of Topograph's cluster models as a Fabric: a tree of switches, and blocks of nodes below its leaves.

The text is YAML (or JSON). `switches` list the switches below them. `blocks` name a switch and list its nodes as host
lists. Annotations of a block whose names end in `/domain` and `/sub-domain` give the accelerated (NVLink) domain of its
nodes. A block may cover part of a domain, and a domain may span many switches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from topoplace import _checks
from topoplace.discovery.text import decode, host_list, yaml_tree
from topoplace.discovery.text.yaml_tree import Fields, Items
from topoplace.errors import TopologyError
from topoplace.topology.fabric import Fabric, Level
from topoplace.topology.links.link_kinds import LinkKind
from topoplace_hosts.networks import switch_tree

_SWITCHES = re.compile(r'^"?switches"?:', re.MULTILINE)
_BLOCKS = re.compile(r'^"?(?:capacity_)?blocks"?:', re.MULTILINE)


def recognised(text: str) -> bool:
    """Return True if `text` looks like a model of Topograph."""
    return _SWITCHES.search(text) is not None and _BLOCKS.search(text) is not None


def parse(data: str | bytes, *, name: str = "topograph") -> Fabric:
    """Read the fabric that the model in `data` describes.

    Levels: "nvlink_subdomain" and "nvlink_domain" if blocks have them, then "leaf", "spine", "core" and so on. Nodes of
    one subdomain are assumed to share NVSwitches; if no block has subdomains, nodes of one NVLink domain are. A switch
    without nodes below it is left out with a note.
    Raises TopologyError naming the line of malformed text, of a block below an unknown switch, and of switches that
    form no tree.
    """
    text = decode.decoded(data, "model")
    documents = [one for one in yaml_tree.documents(text, "a model") if one is not None]
    if len(documents) != 1 or not isinstance(documents[0], Fields):
        raise TopologyError("a model is one document with switches and blocks")
    blocks = list(_blocks(documents[0]))
    if not blocks:
        raise TopologyError("the model has no blocks, which list the nodes")
    switches = _switches(documents[0], blocks)
    empty = _without_nodes(switches)
    tree = switch_tree.from_tree(switches)
    notes = [f"Without nodes: switch {_checks.some(empty, 20)}."] if empty else []
    fabric = switch_tree.fabric(tree, name, [*notes, "Models tell no speeds."])
    inner = [level for level in _domain_levels(blocks, fabric.machines) if any(level.domains)]
    return Fabric(fabric.machines, (*inner, *fabric.levels), name, fabric.notes)


def _without_nodes(switches: Sequence[switch_tree.Switch]) -> list[str]:
    occupied = {switch.name for switch in switches if switch.machines}
    before = 0
    while len(occupied) > before:
        before = len(occupied)
        occupied.update(switch.name for switch in switches if occupied.intersection(switch.switches))
    return [switch.name for switch in switches if switch.name not in occupied]


@dataclass(frozen=True, slots=True)
class _TopologyBlock:
    where: str
    switch: str
    nodes: list[str]
    annotations: Mapping[str, str | None]


def _blocks(model: Fields) -> Iterator[_TopologyBlock]:
    """Yield the blocks, each with its switch, nodes and annotations.

    In older models a switch lists its blocks, and a block's `nvlink` is its NVLink domain.
    """
    left = host_list.MAX_HOSTS
    holder = {
        block: switch for switch, value in _named(model) for block in _names(value, "capacity_blocks", switch)
    }
    for i, item in enumerate([*yaml_tree.items(model, "blocks"), *yaml_tree.items(model, "capacity_blocks")]):
        block = yaml_tree.fields(item, f"block {i}")
        where = yaml_tree.at(block).removesuffix(": ") or f"block {i}"
        switch = yaml_tree.scalar(block, "switch") or holder.get(yaml_tree.scalar(block, "name") or "")
        if switch is None:
            raise TopologyError(f"{where}: a block without a switch")
        nodes: list[str] = []
        for listed in yaml_tree.items(block, "nodes"):
            nodes += host_list.expanded(listed, f"{where}: nodes", limit=left - len(nodes))
        left -= len(nodes)
        annotations = yaml_tree.fields(block.get("annotations"), f"{where}: annotations")
        values = {key: yaml_tree.scalar(annotations, key) for key in annotations}
        yield _TopologyBlock(
            where, switch, nodes, values | {"nvlink/domain": yaml_tree.scalar(block, "nvlink")}
        )


def _switches(model: Fields, blocks: list[_TopologyBlock]) -> list[switch_tree.Switch]:
    """Return the switches that have an entry of their own, then the leaf switches, which parents and blocks name."""
    switches = {switch.name: switch for switch in _described(model)}
    named = {child: parent.where for parent in switches.values() for child in parent.switches}
    for child, where in named.items():
        switches.setdefault(child, switch_tree.Switch(child, where))
    has_tree = bool(switches)
    nodes: dict[str, list[str]] = {}
    for block in blocks:
        if block.switch not in switches and has_tree:
            raise TopologyError(
                f"{block.where}: switch {_checks.shown(block.switch)} is below no switch of the model"
            )
        switches.setdefault(block.switch, switch_tree.Switch(block.switch, block.where))
        nodes.setdefault(block.switch, []).extend(block.nodes)
    for switch, machines in nodes.items():
        switches[switch].machines = machines
    return list(switches.values())


def _described(model: Fields) -> Iterator[switch_tree.Switch]:
    seen: set[str] = set()
    for switch, value in _named(model):
        where = yaml_tree.at(value).removesuffix(": ") or f"switch {_checks.shown(switch)}"
        if switch in seen:
            raise TopologyError(f"{where}: switch {_checks.shown(switch)} appears twice")
        seen.add(switch)
        yield switch_tree.Switch(switch, where, (), _names(value, "switches", switch))


def _named(model: Fields) -> Iterator[tuple[str, Fields]]:
    """Yield the name and the entry of each switch; older models have a list of switches instead of a mapping."""
    switches = model.get("switches")
    if not isinstance(switches, Items):
        for name, value in yaml_tree.fields(switches, "switches").items():
            yield name, yaml_tree.fields(value, f"switch {_checks.shown(name)}")
        return
    for item in switches:
        value = yaml_tree.fields(item, "a switch")
        called = yaml_tree.scalar(value, "name")
        if called is None:
            raise TopologyError(f"{yaml_tree.at(value)}a switch without a name")
        yield called, value


def _names(parent: Fields, key: str, switch: str) -> list[str]:
    found = yaml_tree.items(parent, key)
    for name in found:
        if not isinstance(name, str):
            raise TopologyError(
                f"{yaml_tree.at(parent)}switch {_checks.shown(switch)}: "
                f"{key} has {_checks.shown(name)}, which is not a name"
            )
    return found


def _domain_levels(blocks: list[_TopologyBlock], machines: tuple[str, ...]) -> Iterator[Level]:
    domain_of: dict[str, str | None] = {}
    subdomain_of: dict[str, str | None] = {}
    for block in blocks:
        domain, subdomain = _annotation(block, "/domain"), _annotation(block, "/sub-domain")
        domain_of.update(dict.fromkeys(block.nodes, domain))
        subdomain_of.update(dict.fromkeys(block.nodes, subdomain and f"{domain or ''}/{subdomain}"))
    kinds = LinkKind.NVSWITCH, LinkKind.NETWORK if any(subdomain_of.values()) else LinkKind.NVSWITCH
    domains = {"nvlink_subdomain": subdomain_of, "nvlink_domain": domain_of}
    for (level, found), kind in zip(domains.items(), kinds, strict=True):
        yield Level(level, tuple(found[machine] for machine in machines), kind=kind)


def _annotation(block: _TopologyBlock, ending: str) -> str | None:
    values = [value for key, value in block.annotations.items() if key.endswith(ending) and value]
    if len(values) > 1:
        raise TopologyError(f"{block.where}: two annotations end in {ending}")
    return values[0] if values else None
