"""Volcano's HyperNodes as a Fabric: domains of nodes, and domains of domains, in numbered tiers.

The text is HyperNode objects, or a list of them, in YAML or JSON. A member is a node or another HyperNode; where it
has no type, it is a node in tier 1, and a HyperNode in any higher one. Members are read where they are named; those
that a pattern or a label selects can only be known on the live cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from topoplace import _checks
from topoplace.discovery import _text, _tree, _yaml
from topoplace.discovery._yaml import Fields
from topoplace.errors import TopologyError
from topoplace.fabric import Fabric

_MAX_TIER = 1000
_RECOGNISED = re.compile(
    r'(?:^[ \t]*(?:-[ \t]+)?|[{,][ \t]*)"?kind"?:[ \t]*"?HyperNode(?:List)?"?[ \t\r]*(?:[,}]|$)', re.MULTILINE
)


def recognised(text: str) -> bool:
    """Whether `text` looks like HyperNodes."""
    return _RECOGNISED.search(text) is not None


def parse(data: str | bytes, *, name: str = "volcano", allow_dangling: bool = False) -> Fabric:
    """The fabric that the HyperNodes in `data` describe, with a level "tier1", "tier2" and so on for each tier.

    allow_dangling: members may be HyperNodes that the text does not have; they are left out with a note.
    Raises TopologyError naming the line or the HyperNode: anything malformed, a member that is not there, a tier that
    is not above those of its members, what is no tree.
    """
    text = _text.decoded(data, "HyperNodes")
    switches = [_switch(one) for one in _yaml.objects(text, "HyperNodes") if _is_hypernode(one)]
    if not switches:
        raise TopologyError("there is no object of kind HyperNode")
    tiers = {switch.rank: f"tier{switch.rank}" for switch in switches if switch.rank is not None}
    tree = _tree.from_tree(switches, word="HyperNode", names=tiers, allow_dangling=allow_dangling)
    return _tree.fabric(tree, name, ["HyperNodes tell no speeds."])


def _is_hypernode(one: Fields) -> bool:
    return _yaml.scalar(one, "kind") in ("HyperNode", "HyperNodeList")


def _switch(one: Fields) -> _tree.Switch:
    metadata = _yaml.fields(one.get("metadata"), "metadata")
    name = _yaml.scalar(metadata, "name") or _yaml.scalar(one, "name")
    if name is None:
        raise TopologyError(f"{_yaml.at(one)}a HyperNode without a name")
    where = _yaml.at(one).removesuffix(": ") or f"HyperNode {_checks.shown(name)}"
    spec = _yaml.fields(one.get("spec"), f"{where}: spec")
    tier = _yaml.number(spec, "tier", 0, _MAX_TIER)
    if tier is None:
        raise TopologyError(f"{where}: HyperNode {_checks.shown(name)} has no tier")
    found: dict[str, list[str]] = {"Node": [], "HyperNode": []}
    for kind, member in _members(spec, tier, f"HyperNode {_checks.shown(name)}"):
        found[kind].append(member)
    return _tree.Switch(name, where, found["Node"], found["HyperNode"], tier)


def _members(spec: Fields, tier: int, owner: str) -> Iterator[tuple[str, str]]:
    """The kind and the name of every member."""
    for item in _yaml.items(spec, "members"):
        member = _yaml.fields(item, f"a member of {owner}")
        kind = _yaml.scalar(member, "type") or ("Node" if tier <= 1 else "HyperNode")
        if kind not in ("Node", "HyperNode"):
            raise TopologyError(
                f"{_yaml.at(member)}type = {_checks.shown(kind)} is neither Node nor HyperNode"
            )
        selector = _yaml.fields(member.get("selector"), f"selector of a member of {owner}")
        exact = _yaml.fields(selector.get("exactMatch"), f"exactMatch of a member of {owner}")
        chosen = _yaml.scalar(member, "name") or _yaml.scalar(exact, "name")
        if chosen is None:
            how = ", ".join(key for key in selector if key != "exactMatch")
            why = f"is selected by {_checks.shown(how)}, which only the live cluster resolves"
            raise TopologyError(f"{_yaml.at(member)}a member of {owner} {why if how else 'has no name'}")
        yield kind, chosen
