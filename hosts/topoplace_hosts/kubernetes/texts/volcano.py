"""Reader of Volcano's HyperNodes as a Fabric: domains of nodes, and domains of domains, in numbered tiers.

The text is HyperNode objects, or a list of them, in YAML or JSON. A member is a node or another HyperNode. A member
without a type is a node in tier 1, and a HyperNode in any higher tier. Members are named exactly, or chosen by labels
or by a pattern of names (`labelMatch`, `regexMatch`) among the Node objects of the same text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from topoplace import _checks
from topoplace.discovery.text import decode, yaml_tree
from topoplace.discovery.text.yaml_tree import Fields
from topoplace.errors import TopologyError
from topoplace.topology.fabric import Fabric
from topoplace_hosts.networks import switch_tree

_MAX_TIER = 1000
_RECOGNISED = re.compile(
    r'(?:^[ \t]*(?:-[ \t]+)?|[{,][ \t]*)"?kind"?:[ \t]*"?HyperNode(?:List)?"?[ \t\r]*(?:[,}]|$)', re.MULTILINE
)


_MAX_PATTERN = 256
_UNBOUNDED = re.compile(r"(?<!\\)[*+]|(?<!\\)\{[0-9]*,\}")
_REPEATED_GROUP = re.compile(r"\)[*+?{]|\(\?|\\[1-9]")
_MOST_UNBOUNDED = 2
"""Limit on unbounded repetitions in a pattern: with more, a search could take far too long."""

Labels = Mapping[str, Mapping[str, str]]
"""The labels of nodes, by name."""


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
    objects = list(yaml_tree.objects(text, "HyperNodes"))
    hypernodes = [one for one in objects if _is_hypernode(one)]
    if not hypernodes:
        raise TopologyError("there is no object of kind HyperNode")
    nodes = dict(_labels_of_nodes(objects))
    names = [_name(one) for one in hypernodes]
    switches = [_switch(one, nodes, names) for one in hypernodes]
    tiers = {switch.rank: f"tier{switch.rank}" for switch in switches if switch.rank is not None}
    tree = switch_tree.from_tree(switches, word="HyperNode", names=tiers, allow_dangling=allow_dangling)
    return switch_tree.fabric(tree, name, ["HyperNodes tell no speeds."])


def _is_hypernode(one: Fields) -> bool:
    return yaml_tree.scalar(one, "kind") in ("HyperNode", "HyperNodeList")


def _name(one: Fields) -> str:
    metadata = yaml_tree.fields(one.get("metadata"), "metadata")
    name = yaml_tree.scalar(metadata, "name") or yaml_tree.scalar(one, "name")
    if name is None:
        raise TopologyError(f"{yaml_tree.at(one)}a HyperNode without a name")
    return name


def _labels_of_nodes(objects: Sequence[Fields]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield name and labels of each Node object."""
    for one in objects:
        if yaml_tree.scalar(one, "kind") == "Node":
            metadata = yaml_tree.fields(one.get("metadata"), "metadata")
            labels = yaml_tree.fields(metadata.get("labels"), "labels")
            plain = {key: value for key, value in labels.items() if isinstance(value, str)}
            yield yaml_tree.scalar(metadata, "name") or "", plain


def _switch(one: Fields, nodes: Labels, names: Sequence[str]) -> switch_tree.Switch:
    name = _name(one)
    where = yaml_tree.at(one).removesuffix(": ") or f"HyperNode {_checks.shown(name)}"
    spec = yaml_tree.fields(one.get("spec"), f"{where}: spec")
    tier = yaml_tree.number(spec, "tier", 0, _MAX_TIER)
    if tier is None:
        raise TopologyError(f"{where}: HyperNode {_checks.shown(name)} has no tier")
    found: dict[str, dict[str, None]] = {"Node": {}, "HyperNode": {}}
    owner = f"HyperNode {_checks.shown(name)}"
    for item in yaml_tree.items(spec, "members"):
        member = yaml_tree.fields(item, f"a member of {owner}")
        kind = yaml_tree.scalar(member, "type") or ("Node" if tier <= 1 else "HyperNode")
        if kind not in found:
            raise TopologyError(
                f"{yaml_tree.at(member)}type = {_checks.shown(kind)} is neither Node nor HyperNode"
            )
        others = list(nodes) if kind == "Node" else [other for other in names if other != name]
        found[kind].update(dict.fromkeys(_chosen(member, owner, kind, nodes, others)))
    return switch_tree.Switch(name, where, list(found["Node"]), list(found["HyperNode"]), tier)


def _chosen(member: Fields, owner: str, kind: str, nodes: Labels, names: Sequence[str]) -> Sequence[str]:
    """Return the names that a member chooses; TopologyError if the text does not have those that it could choose."""
    selector = yaml_tree.fields(member.get("selector"), f"selector of a member of {owner}")
    exact = yaml_tree.fields(selector.get("exactMatch"), f"exactMatch of a member of {owner}")
    if chosen := yaml_tree.scalar(member, "name") or yaml_tree.scalar(exact, "name"):
        return [chosen]
    how = ", ".join(key for key in selector if key != "exactMatch")
    where = f"{yaml_tree.at(member)}a member of {owner}"
    if not how:
        raise TopologyError(f"{where} has no name")
    if how not in ("labelMatch", "regexMatch") or not names or (how == "labelMatch" and kind != "Node"):
        raise TopologyError(
            f"{where} is selected by {_checks.shown(how)}, which only the live cluster resolves; add to the text what "
            "`kubectl get nodes -o yaml` prints"
        )
    found = (
        [name for name in names if _has_labels(selector, nodes[name], where)]
        if how == "labelMatch"
        else _matching(selector, names, where)
    )
    if not found:
        raise TopologyError(f"{where} is selected by {how}, which none of {_checks.some(names)} has")
    return found


def _matching(selector: Fields, names: Sequence[str], where: str) -> Sequence[str]:
    """Return the names in which the pattern of a selector is found."""
    match = yaml_tree.fields(selector.get("regexMatch"), f"{where}: regexMatch")
    pattern = yaml_tree.scalar(match, "pattern") or ""
    simple = len(pattern) <= _MAX_PATTERN and len(_UNBOUNDED.findall(pattern)) <= _MOST_UNBOUNDED
    if not pattern or not simple or _REPEATED_GROUP.search(pattern):
        raise TopologyError(
            f"{where}: pattern = {_checks.shown(pattern)} is empty, or repeats a group, or repeats more than "
            f"{_MOST_UNBOUNDED} times without a limit; name its members"
        )
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise TopologyError(f"{where}: pattern = {_checks.shown(pattern)}: {error}") from None
    return [name for name in names if compiled.search(name)]


def _has_labels(selector: Fields, labels: Mapping[str, str], where: str) -> bool:
    """Return True if a node's labels meet all of a selector."""
    match = yaml_tree.fields(selector.get("labelMatch"), f"{where}: labelMatch")
    equal = yaml_tree.fields(match.get("matchLabels"), f"{where}: matchLabels")
    expressions = [
        yaml_tree.fields(item, f"{where}: an expression")
        for item in yaml_tree.items(match, "matchExpressions")
    ]
    if not equal and not expressions:
        raise TopologyError(f"{where}: labelMatch has neither matchLabels nor matchExpressions")
    return all(labels.get(key) == (value or "") for key, value in equal.items()) and all(
        _holds(one, labels, where) for one in expressions
    )


def _holds(expression: Fields, labels: Mapping[str, str], where: str) -> bool:
    key, operator = yaml_tree.scalar(expression, "key") or "", yaml_tree.scalar(expression, "operator")
    values = yaml_tree.items(expression, "values")
    if operator in ("In", "NotIn"):
        return (key in labels and labels[key] in values) == (operator == "In")
    if operator in ("Exists", "DoesNotExist"):
        return (key in labels) == (operator == "Exists")
    raise TopologyError(
        f"{where}: operator = {_checks.shown(operator)} is not In, NotIn, Exists or DoesNotExist"
    )
