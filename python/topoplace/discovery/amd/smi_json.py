"""Reader of the JSON of `amd-smi topology --json` and `rocm-smi --showtopo… --json` as cells of tables.

amd-smi lists the GPUs: each with its PCI address and a list of links, or in older versions with a mapping per table.
rocm-smi names every pair once, in keys such as "(Topology) Weight between DRM devices 0 and 1".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from topoplace import _checks
from topoplace.discovery.text import yaml_tree
from topoplace.discovery.text.yaml_tree import Fields, Items
from topoplace.errors import TopologyError

_WHAT = "the topology"
_LINKS = {
    "weight": "weight",
    "link_type": "type",
    "bandwidth": "bandwidth",
    "num_hops": "hops",
    "link_status": "access",
}
_OLD = {
    "weight": "weight",
    "link_type": "type",
    "numa_bandwidth": "bandwidth",
    "hops": "hops",
    "link_accessibility": "access",
}
_PAIRS = {"Weight": "weight", "Link type": "type", "Hops": "hops", "Link accessibility": "access"}
_SELF = {"weight": "0", "type": "0", "bandwidth": "N/A", "hops": "0", "access": "True"}

_RECOGNISED = re.compile(
    r'"(?:link_type|link_accessibility|numa_bandwidth|bdf|gpu_[0-9]{1,3}|\(Topology\) [^"]{1,60})"\s*:'
)
_OF_OTHERS = re.compile(r'"(?:link_metrics|xgmi_metric|neuron_device)"\s*:')
"""Keys in the JSON of `amd-smi xgmi`, which counts the traffic of each GPU's links, and of `neuron-ls`."""
_PAIR = re.compile(r"\(Topology\) ([A-Za-z ]+) between DRM devices ([0-9]{1,3}) and ([0-9]{1,3})")
_CARD = re.compile(r"card([0-9]{1,3})")
_OLD_GPU = re.compile(r"gpu_([0-9]{1,3})")

Cell = tuple[str, str, str, str]
"""One cell of a table: subject of the table, GPU of the row, GPU of the column, and content."""
Node = tuple[str, str, str]
"""(GPU, "Node" or "Affinity", number): a NUMA node that rocm-smi states for a GPU."""
Fact = tuple[str, str, str]
"""(GPU, name, value): any other fact that rocm-smi states for a GPU."""


def recognised(text: str) -> bool:
    """Return True if `text` looks like the JSON of amd-smi or rocm-smi."""
    head = text[:65536]
    return text.lstrip()[:1] in ("[", "{") and bool(_RECOGNISED.search(head)) and not _OF_OTHERS.search(head)


def read(text: str) -> tuple[list[Cell], list[Node], list[Fact]]:
    """Return the cells of all tables, by rows, the NUMA nodes, and the other facts about GPUs, all as text."""
    (root,) = yaml_tree.documents(text, _WHAT)
    if isinstance(root, Items):
        return (
            [cell for i, item in enumerate(root) for cell in _row(yaml_tree.fields(item, f"entry {i}"), i)],
            [],
            [],
        )
    root = yaml_tree.fields(root, _WHAT)
    cells = sorted(_pairs(yaml_tree.fields(root.get("system"), "system")), key=lambda cell: _number(cell[1]))
    return cells, list(_nodes(root)), list(_facts(root))


def _row(entry: Fields, i: int) -> Iterator[Cell]:
    if "links" not in entry:
        number = yaml_tree.number(entry, "gpu", 0, 999)
        for table in (table for table in _OLD if table in entry):
            row = yaml_tree.fields(entry[table], table)
            for column in row:
                match = _OLD_GPU.fullmatch(column)
                if number is None or match is None:
                    raise TopologyError(
                        f"entry {i}: {table}: {_checks.shown(column)} is not a GPU, or gpu is missing"
                    )
                yield _OLD[table], f"GPU{number}", f"GPU{int(match[1])}", yaml_tree.scalar(row, column) or ""
        return
    name = _address(entry, f"entry {i}")
    for k, item in enumerate(yaml_tree.items(entry, "links")):
        link = yaml_tree.fields(item, f"entry {i}: link {k}")
        other = _address(link, f"entry {i}: link {k}")
        for key in (key for key in _LINKS if key in link):
            yield _LINKS[key], name, other, yaml_tree.scalar(link, key) or ""


def _address(entry: Fields, where: str) -> str:
    if address := yaml_tree.scalar(entry, "bdf"):
        return address
    raise TopologyError(f"{where} has no bdf, the PCI address of a GPU")


def _pairs(system: Fields) -> Iterator[Cell]:
    for key in system:
        match = _PAIR.fullmatch(key)
        if match is None or match[1] not in _PAIRS:
            continue
        subject, u, v, cell = (
            _PAIRS[match[1]],
            f"GPU{int(match[2])}",
            f"GPU{int(match[3])}",
            yaml_tree.scalar(system, key),
        )
        for row, column in ((u, v), (v, u)):
            yield subject, row, column, cell or ""
            yield subject, row, row, _SELF[subject]


def _nodes(root: Fields) -> Iterator[Node]:
    for card in root:
        if match := _CARD.fullmatch(card):
            values = yaml_tree.fields(root[card], card)
            for word in ("Node", "Affinity"):
                if number := yaml_tree.scalar(values, f"(Topology) Numa {word}"):
                    yield f"GPU{int(match[1])}", word, number


def _facts(root: Fields) -> Iterator[Fact]:
    for card in root:
        if match := _CARD.fullmatch(card):
            values = yaml_tree.fields(root[card], card)
            for name, value in values.items():
                if isinstance(value, str) and not name.startswith("(Topology)"):
                    yield f"GPU{int(match[1])}", name, value


def _number(gpu: str) -> int:
    return int(gpu[3:])
