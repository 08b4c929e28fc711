"""Reader of Volcano's HyperNodes as a Fabric: domains of nodes, and domains of domains, in numbered tiers.

The text is HyperNode objects, or a list of them, in YAML or JSON. A member is a node or another HyperNode. A member
without a type is a node in tier 1, and a HyperNode in any higher tier. Members must be named exactly, because patterns
and labels can only be resolved on the live cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from topoplace import _checks
from topoplace.discovery.networks import switch_tree
from topoplace.discovery.text import decode, yaml_tree
from topoplace.discovery.text.yaml_tree import Fields
from topoplace.errors import TopologyError
from topoplace.topology.fabric import Fabric

_MAX_TIER = 1000
_RECOGNISED = re.compile(
    r'(?:^[ \t]*(?:-[ \t]+)?|[{,][ \t]*)"?kind"?:[ \t]*"?HyperNode(?:List)?"?[ \t\r]*(?:[,}]|$)', re.MULTILINE
)


def recognised(text: str) -> bool:
    """Return True if `text` looks like HyperNodes."""
    return _RECOGNISED.search(text) is not None


def parse(data: str | bytes, *, name: str = "volcano", allow_dangling: bool = False) -> Fabric:
    """Read the fabric that the HyperNodes in `data` describe, with a level "tier1", "tier2" and so on for each tier.

    allow_dangling: leave out members that are HyperNodes missing from the text, with a note, instead of refusing them.
    Raises TopologyError naming the line or the HyperNode. Faults are malformed text, a missing member, a tier that is
    not above those of its members, and HyperNodes that form no tree.
    """
    text = decode.decoded(data, "HyperNodes")
    switches = [_switch(one) for one in yaml_tree.objects(text, "HyperNodes") if _is_hypernode(one)]
    if not switches:
        raise TopologyError("there is no object of kind HyperNode")
    tiers = {switch.rank: f"tier{switch.rank}" for switch in switches if switch.rank is not None}
    tree = switch_tree.from_tree(switches, word="HyperNode", names=tiers, allow_dangling=allow_dangling)
    return switch_tree.fabric(tree, name, ["HyperNodes tell no speeds."])


def _is_hypernode(one: Fields) -> bool:
    return yaml_tree.scalar(one, "kind") in ("HyperNode", "HyperNodeList")


def _switch(one: Fields) -> switch_tree.Switch:
    metadata = yaml_tree.fields(one.get("metadata"), "metadata")
    name = yaml_tree.scalar(metadata, "name") or yaml_tree.scalar(one, "name")
    if name is None:
        raise TopologyError(f"{yaml_tree.at(one)}a HyperNode without a name")
    where = yaml_tree.at(one).removesuffix(": ") or f"HyperNode {_checks.shown(name)}"
    spec = yaml_tree.fields(one.get("spec"), f"{where}: spec")
    tier = yaml_tree.number(spec, "tier", 0, _MAX_TIER)
    if tier is None:
        raise TopologyError(f"{where}: HyperNode {_checks.shown(name)} has no tier")
    found: dict[str, list[str]] = {"Node": [], "HyperNode": []}
    for kind, member in _members(spec, tier, f"HyperNode {_checks.shown(name)}"):
        found[kind].append(member)
    return switch_tree.Switch(name, where, found["Node"], found["HyperNode"], tier)


def _members(spec: Fields, tier: int, owner: str) -> Iterator[tuple[str, str]]:
    """Yield (kind, name) of every member of a HyperNode; the kind is "Node" or "HyperNode"."""
    for item in yaml_tree.items(spec, "members"):
        member = yaml_tree.fields(item, f"a member of {owner}")
        kind = yaml_tree.scalar(member, "type") or ("Node" if tier <= 1 else "HyperNode")
        if kind not in ("Node", "HyperNode"):
            raise TopologyError(
                f"{yaml_tree.at(member)}type = {_checks.shown(kind)} is neither Node nor HyperNode"
            )
        selector = yaml_tree.fields(member.get("selector"), f"selector of a member of {owner}")
        exact = yaml_tree.fields(selector.get("exactMatch"), f"exactMatch of a member of {owner}")
        chosen = yaml_tree.scalar(member, "name") or yaml_tree.scalar(exact, "name")
        if chosen is None:
            how = ", ".join(key for key in selector if key != "exactMatch")
            why = f"is selected by {_checks.shown(how)}, which only the live cluster resolves"
            raise TopologyError(f"{yaml_tree.at(member)}a member of {owner} {why if how else 'has no name'}")
        yield kind, chosen
