"""Node labels that name domains of the network: those of managed clouds and of Topograph, and levels by their names.

Keys are distinguished by what follows their last slash, because the tables of kubectl show no more of them. A family of
numbered keys, such as `network-node-layer-1` to `-3` of AWS, is several levels.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from topoplace import _checks
from topoplace.discovery.text import yaml_tree
from topoplace.discovery.text.yaml_tree import Fields
from topoplace.errors import TopologyError
from topoplace_hosts.kubernetes.texts.node_record import NodeRecord

_INNERMOST_FIRST = (
    ("host",),
    ("subblock", "sub_block", "local_block"),
    ("leaf", "leafgroup", "tor"),
    ("rack", "rack_name", "rack_id"),
    ("block", "network_block", "pod", "cell"),
    ("spine",),
    ("superpod", "superspine", "core", "hpc_island", "scalable_unit"),
    ("row", "hall", "datacenter", "data_center", "ppg"),  # ppg: a proximity placement group of Azure
    ("zone",),
    ("region",),
)
_RANK = {name: rank for rank, names in enumerate(_INNERMOST_FIRST) for name in names}
_NOISE = re.compile(r"^(?:gce_)?(?:rdma_|network_|hpc_|physical_)?topology_|^rdma_|^gce_|_id$")
_FAMILIES = (
    (re.compile(r"network-node-layer-([1-9])"), "layer", True),  # AWS: the highest number is next to the node
    (re.compile(r"tier-([0-9]{1,2})"), "tier", False),  # Topograph: tier 0 is next to the node
    (re.compile(r"network-level-([1-9])"), "level", False),
)
_NVLINK_KEYS = re.compile(
    r"(?:network\.topology\.(?:nvidia\.com|kubernetes\.io)/accelerator|accelerator\.topograph\.run/(?:sub-)?domain"
    r"|(?:topology\.k8s\.aws/)?ultraserver-id|ds\.coreweave\.com/nvlink\.domain)"
)
_OF_A_NODE = ("kubernetes.io/hostname", "hostname")
CLIQUE = "nvidia.com/gpu.clique"
NVLINK_DOMAIN = "nvlink_domain"
"""The name of the level of NVLink domains."""
_AKS = "kubernetes.azure.com/"
_OF_A_LEVEL = re.compile(
    r"(?:sub|local)?block|leaf(?:group)?|tor|switch|rail|chassis|cabinet|rack|pod|cell|(?:super)?spine|superpod|island"
    r"|fabric|domain|row|room|floor|hall|datacenter|site|ppg|agentpool|zone|region"
)
"""Matches a word at the end of labels that may name a level."""
_ABOUT_NETWORK = frozenset({"topology", "rdma", "infiniband", "placement"})
_PLAIN_ENDS = ("id", "name", "index", "number")
_NO_DOMAINS = frozenset({"true", "false", "yes", "no"})
TITLE = (
    r"(?:[A-Z-]*(?:BLOCK|RACK|LEAF|SPINE|ZONE|REGION|SUPERPOD)|NETWORK-NODE-LAYER-[1-9]|TIER-[0-9]{1,2}"
    r"|ULTRASERVER-ID)"
)
"""The pattern of the titles of such labels in the tables of kubectl."""


def known(nodes: Sequence[NodeRecord]) -> Mapping[str, str]:
    """Return the label of each level that some of the nodes have, by the level's name, innermost first.

    If two keys name one level, the key that more nodes have counts.
    """
    counts: dict[str, int] = {}
    for node in nodes:
        for key, value in node.labels.items():
            counts[key] = counts.get(key, 0) + bool(value)
    found: dict[str, tuple[tuple[int, int], int, str]] = {}
    for key, count in counts.items():
        if count and (level := _level(key)) is not None:
            name, place = level
            if name not in found or count > found[name][1]:
                found[name] = place, count, key
    ordered = sorted(found.items(), key=lambda item: item[1][0])
    keys = {name: key for name, (_, _, key) in ordered}
    if "zone" in keys and _are_fault_domains(nodes, keys["zone"]):
        return {"fault_domain" if name == "zone" else name: key for name, key in keys.items()}
    return keys


def unread(nodes: Sequence[NodeRecord], read: Collection[str]) -> list[str]:
    """Return the labels that look like levels and separate these nodes differently from the labels in `read`.

    Among labels that separate the nodes alike, only the first is returned.
    """
    values: dict[str, dict[int, str]] = {}
    for place, node in enumerate(nodes):
        for key, value in node.labels.items():
            if value and (key in read or _looks_like_a_level(key)):
                values.setdefault(key, {})[place] = value
    seen = {_parts(values[key]) for key in read if key in values}
    found: list[str] = []
    for key, value_of in values.items():
        if (parts := _parts(value_of)) not in seen and _has_domains(value_of, nodes):
            found.append(key)
            seen.add(parts)
    return found


def _has_domains(value_of: Mapping[int, str], nodes: Sequence[NodeRecord]) -> bool:
    """Return True if a label separates the nodes, and its values are neither their names nor yes and no.

    value_of: the value of the label by the places of the nodes that have it.
    """
    values = set(value_of.values())
    separates = len(values) > 1 or len(value_of) < len(nodes)
    is_a_name = all(
        value in (nodes[place].name, *map(nodes[place].labels.get, _OF_A_NODE))
        for place, value in value_of.items()
    )
    return separates and not values <= _NO_DOMAINS and not is_a_name


def _looks_like_a_level(key: str) -> bool:
    """Return True if a label's key has a word of levels at its end, or one of networks anywhere."""
    if key in _OF_A_NODE or _NVLINK_KEYS.fullmatch(key):
        return False
    words = re.split(r"[-_./]", key.lower())
    while len(words) > 1 and words[-1] in _PLAIN_ENDS:
        words.pop()
    is_named = _level(key) is not None or _OF_A_LEVEL.fullmatch(words[-1]) is not None
    return is_named or not _ABOUT_NETWORK.isdisjoint(words)


def _parts(value_of: Mapping[int, str]) -> tuple[tuple[int, int], ...]:
    """Return each place with a number that is equal where the values are."""
    numbers: dict[str, int] = {}
    return tuple((place, numbers.setdefault(value, len(numbers))) for place, value in value_of.items())


def _are_fault_domains(nodes: Sequence[NodeRecord], key: str) -> bool:
    """Return True if the zones of AKS's nodes are plain numbers, as those of nodes outside Azure's zones are.

    Azure's provider for Kubernetes then gives the fault domain in the label of the zone.
    """
    zones = {node.labels[key] for node in nodes if node.labels.get(key)}
    of_aks = any(label.startswith(_AKS) for node in nodes for label in node.labels)
    return of_aks and all(zone.isascii() and zone.isdigit() for zone in zones)


def names_of(key: str) -> tuple[str, ...]:
    """Return the possible names of a label's level, the most likely one first; "machine" is the level of nodes."""
    if key in _OF_A_NODE:
        return ("machine",)
    if key == CLIQUE or _NVLINK_KEYS.fullmatch(key):
        return (NVLINK_DOMAIN,)
    level, last = _level(key), key.rpartition("/")[2]
    return (key, level[0] if level else _short(last), last)


def nvlink_domain(node: NodeRecord) -> str | None:
    """Return the NVLink domain that a label of Topograph, AWS or CoreWeave names; None if there is none."""
    named = (value for key, value in node.labels.items() if value and _NVLINK_KEYS.fullmatch(key))
    return next(named, None)


def _level(key: str) -> tuple[str, tuple[int, int]] | None:
    """Return a level's name and its place among others, inner ones before; None for any other label."""
    if key in _OF_A_NODE or _NVLINK_KEYS.fullmatch(key):
        return None
    last = re.split(r"[/.]", key)[-1] if "/" not in key else key.rpartition("/")[2]
    for family, name, outermost_first in _FAMILIES:
        if match := family.fullmatch(last):
            number = int(match[1])
            return f"{name}{number}", (_RANK["leaf"], -number if outermost_first else number)
    name = _short(last)
    return (name, (_RANK[name], 0)) if name in _RANK else None


def _short(last: str) -> str:
    """Return the end of a label's key without the words that such keys have besides the level's name."""
    name = last.rpartition(".")[2].replace("-", "_").lower()
    while (shorter := _NOISE.sub("", name)) != name:
        name = shorter
    return name


# ---- Topology objects of Kueue and KAI -----------------------------------------------------------------------------


def is_topology(one: Fields) -> bool:
    """Return True for an object of kind Topology, as Kueue and KAI have them; its group is not checked."""
    return yaml_tree.scalar(one, "kind") == "Topology"


def of_topology(one: Fields) -> dict[str, str]:
    """Return the label of each level of a Topology object, by the level's name, innermost first."""
    spec = yaml_tree.fields(one.get("spec"), f"{yaml_tree.at(one)}spec")
    keys = [key for key in _node_labels(spec) if key not in _OF_A_NODE]
    if not keys:
        raise TopologyError(f"{yaml_tree.at(one)}a Topology without levels above the node")
    return dict(zip(_names(keys[::-1]), keys[::-1], strict=True))


def _node_labels(spec: Fields) -> Iterator[str]:
    for item in yaml_tree.items(spec, "levels"):
        level = yaml_tree.fields(item, "a level")
        label = yaml_tree.scalar(level, "nodeLabel")
        yield _checks.text(label, f"{yaml_tree.at(level)}nodeLabel", TopologyError)


def _names(keys: Sequence[str]) -> list[str]:
    """Return a short name for each key; the keys themselves if short names repeat."""
    names = [level[0] if (level := _level(key)) else key.rpartition("/")[2] for key in keys]
    return names if len(set(names)) == len(names) else list(keys)
