"""Reader of HiveD's cluster configuration: cell types, and the physical cells made of them.

A cell type has a number of children of another type. A type without children is a GPU, and one type in each chain of
types is the node. Physical cells are trees of these types with addresses. A node's address is its name, a GPU's its
index on the node, anything else's a number. Missing addresses follow from the position. A node may be in several cells,
one for each model of its GPUs.

Cells below a node may be made up to allow finer requests, so they imply no links. All links are of kind UNKNOWN unless
the caller gives a template of the node. Cells above a node are the levels of the fabric.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from topoplace import _checks
from topoplace.discovery.text import decode, yaml_tree
from topoplace.discovery.text.yaml_tree import Fields
from topoplace.errors import TopologyError
from topoplace.topology.assemble import with_host_paths
from topoplace.topology.devices import Gpu
from topoplace.topology.fabric import Fabric, Level
from topoplace.topology.links.link_kinds import PCIE3_X16_GB_PER_S, Link, LinkKind
from topoplace.topology.topology import Topology
from topoplace_hosts.networks import switch_tree

MAX_GPUS = 1 << 20
MAX_NODE_GPUS = 256
_MAX_CHILDREN = 1 << 20
_RECOGNISED = re.compile(r"^[ \t]*physicalCluster:|^[ \t]*cellTypes:", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CellType:
    """A cell type of HiveD: a cell of this type has `children` cells of type `child`."""

    name: str
    child: str
    """The type of the children; a GPU model if no cell type has that name."""
    children: int
    is_node: bool
    """True if a cell of this type holds all GPUs of one model on one node."""
    line: int


def recognised(text: str) -> bool:
    """Return True if `text` looks like a configuration of HiveD."""
    return _RECOGNISED.search(text) is not None


def cell_types(data: str | bytes) -> dict[str, CellType]:
    """Return the cell types of a configuration, by name. Raises TopologyError naming the line."""
    return _cell_types(_cluster(data))


def parse(
    data: str | bytes,
    *,
    template: Mapping[str, Topology] | None = None,
    socket_cells: Collection[str] = (),
    pcie_gb_per_s: float = PCIE3_X16_GB_PER_S,
    name: str = "hived",
) -> Topology:
    """Read all GPUs of the physical cells in `data`, a configuration in YAML, as a cluster.

    template: for a cell type, the topology of nodes of that type; not used for a node with cells of several types.
    socket_cells: the cell types that are CPU sockets.
    pcie_gb_per_s: GB/s assumed inside a node without a template.
    The level just above the nodes is called "cell1", the next "cell2" and so on. Raises TopologyError naming the line
    of malformed text, of cells that contradict their types, and of a GPU that appears twice.
    """
    pcie_gb_per_s = _checks.positive(pcie_gb_per_s, "pcie_gb_per_s", TopologyError)
    cluster = _cluster(data)
    reader = _CellReader(
        _cell_types(cluster), frozenset(_checks.sequence(socket_cells, "socket_cells", TopologyError))
    )
    for i, item in enumerate(yaml_tree.items(cluster, "physicalCells")):
        reader.top(yaml_tree.fields(item, f"physicalCells[{i}]"), i)
    if not reader.nodes:
        raise TopologyError("there are no physicalCells")
    templates = _CellTemplates(template or {}, pcie_gb_per_s)
    machines = {node.name: templates.of(node) for node in reader.nodes.values()}
    return Topology.cluster(machines, fabric=_fabric(tuple(machines), reader.above, name), name=name)


def _cluster(data: str | bytes) -> Fields:
    for document in yaml_tree.documents(decode.decoded(data, "configuration"), "a configuration of HiveD"):
        if isinstance(document, Fields) and ("physicalCluster" in document or "cellTypes" in document):
            return yaml_tree.fields(document.get("physicalCluster", document), "physicalCluster")
    raise TopologyError("there is no physicalCluster")


def _cell_types(cluster: Fields) -> dict[str, CellType]:
    types: dict[str, CellType] = {}
    for name, value in yaml_tree.fields(cluster.get("cellTypes"), "cellTypes").items():
        cell = yaml_tree.fields(value, f"cell type {_checks.shown(name)}")
        child = yaml_tree.scalar(cell, "childCellType")
        count = yaml_tree.number(cell, "childCellNumber", 1, _MAX_CHILDREN)
        if child is None or count is None:
            missing = "childCellType" if child is None else "childCellNumber"
            raise TopologyError(f"{yaml_tree.at(cell)}cell type {_checks.shown(name)} has no {missing}")
        is_node = (yaml_tree.scalar(cell, "isNodeLevel") or "").lower() == "true"
        types[name] = CellType(name, child, count, is_node, yaml_tree.line_of(cell))
    if not types:
        raise TopologyError("there are no cellTypes")
    for cell_type in types.values():
        _check_chain(cell_type, types)
    return types


def _check_chain(cell_type: CellType, types: Mapping[str, CellType]) -> None:
    """Raise TopologyError if a cell type is below itself, or if it and the types below it include two node types."""
    nodes, seen = 0, set[str]()
    step: CellType | None = cell_type
    while step is not None:
        if step.name in seen or len(seen) == yaml_tree.MAX_DEPTH:
            raise TopologyError(
                f"line {cell_type.line}: cell type {_checks.shown(cell_type.name)} is below itself"
            )
        seen.add(step.name)
        nodes += step.is_node
        step = types.get(step.child)
    if nodes > 1:
        raise TopologyError(
            f"line {cell_type.line}: cell type {_checks.shown(cell_type.name)} has {nodes} types of nodes in it"
        )


# ---- physical cells --------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _NodeCells:
    """One node: the types and GPUs of all its cells."""

    name: str
    types: list[str] = field(default_factory=list[str])
    gpus: dict[int, tuple[str, int | None]] = field(default_factory=dict[int, tuple[str, int | None]])
    """(model, socket or None) of each GPU, by the GPU's index on the node."""


class _CellReader:
    """A reader that walks through physical cells from the top down."""

    def __init__(self, types: Mapping[str, CellType], socket_cells: Collection[str]) -> None:
        self.nodes: dict[str, _NodeCells] = {}
        self.above: list[switch_tree.Switch] = []
        self._types = types
        self._sockets = socket_cells
        self._left = MAX_GPUS
        for cell in socket_cells:
            if cell not in types:
                raise TopologyError(f"socket_cells: {_checks.shown(cell)} is not a cell type")

    def top(self, cell: Fields, place: int) -> None:
        """Read `cell`, the entry of physicalCells with index `place`, and all cells below it."""
        name = yaml_tree.scalar(cell, "cellType")
        if name not in self._types:
            raise TopologyError(f"{yaml_tree.at(cell)}cellType = {_checks.shown(name)} is not a cell type")
        label = yaml_tree.scalar(cell, "cellAddress") or str(place)
        self._outside(cell, self._types[str(name)], f"{name}/{label}", yaml_tree.at(cell))

    def _outside(self, cell: Fields, cell_type: CellType, path: str, where: str) -> str | None:
        """Read a cell that is a node or contains nodes; return the name of a node, None for a cell above nodes."""
        if cell_type.is_node:
            return self._node(cell, cell_type, where)
        if cell_type.child not in self._types:
            raise TopologyError(
                f"{where}no type above GPU {_checks.shown(cell_type.child)} has isNodeLevel: true"
            )
        switch = switch_tree.Switch(path, where.removesuffix(": ") or path)
        self.above.append(switch)
        machines: list[str] = []
        switches: list[str] = []
        for i, child in enumerate(_children(cell, cell_type, where)):
            below = f"{path}/{yaml_tree.scalar(child, 'cellAddress') or i}"
            node = self._outside(child, self._types[cell_type.child], below, yaml_tree.at(child) or where)
            if node is None:
                switches.append(below)
            else:
                machines.append(node)
        switch.machines, switch.switches = machines, switches
        return None

    def _node(self, cell: Fields, cell_type: CellType, where: str) -> str:
        name = yaml_tree.scalar(cell, "cellAddress")
        if name is None:
            raise TopologyError(
                f"{where}a {_checks.shown(cell_type.name)} without cellAddress, which names the node"
            )
        node = self.nodes.setdefault(name, _NodeCells(name))
        node.types.append(cell_type.name)
        self._inside(cell, cell_type, node, 0, None)
        return name

    def _inside(
        self, cell: Fields, cell_type: CellType, node: _NodeCells, place: int, socket: int | None
    ) -> None:
        """Read a cell inside a node, and add its GPUs to `node`.

        place: the cell's index among all cells of its type on this node.
        """
        if cell_type.name in self._sockets:
            socket = place if cell_type.is_node else _index(cell, place)
        below = self._types.get(cell_type.child)
        for i, child in enumerate(_children(cell, cell_type, yaml_tree.at(cell))):
            at = place * cell_type.children + i
            if below is not None:
                self._inside(child, below, node, at, socket)
                continue
            index = _index(child, at)
            self._left -= 1
            if index in node.gpus:
                raise TopologyError(
                    f"{yaml_tree.at(child)}GPU {index} of node {_checks.shown(node.name)} appears twice"
                )
            if len(node.gpus) == MAX_NODE_GPUS or not self._left:
                raise TopologyError(
                    f"{yaml_tree.at(child)}more GPUs than {MAX_NODE_GPUS} in a node, or {MAX_GPUS} in all"
                )
            node.gpus[index] = cell_type.child, socket


_NO_FIELDS = Fields()


def _children(cell: Fields, cell_type: CellType, where: str) -> Iterator[Fields]:
    """Return the children of a cell as listed; if none are listed, as many empty cells as the cell's type requires."""
    listed = yaml_tree.items(cell, "cellChildren")
    if listed and len(listed) != cell_type.children:
        raise TopologyError(
            f"{where}{len(listed)} cellChildren, and a {_checks.shown(cell_type.name)} has {cell_type.children}"
        )
    if listed:
        return (yaml_tree.fields(child, f"{where}a child") for child in listed)
    return (_NO_FIELDS for _ in range(cell_type.children))


def _index(cell: Fields, place: int) -> int:
    found = yaml_tree.number(cell, "cellAddress", 0, 65535)
    return place if found is None else found


# ---- machines --------------------------------------------------------------------------------------------------


class _CellTemplates:
    """The topologies of the nodes read so far; equal nodes share one."""

    def __init__(self, template: Mapping[str, Topology], pcie_gb_per_s: float) -> None:
        _checks.instance(template, Mapping, "template", TopologyError)
        self._template = template
        self._pcie_gb_per_s = pcie_gb_per_s
        self._built: dict[tuple[Any, ...], Topology] = {}

    def of(self, node: _NodeCells) -> Topology:
        """Return the topology of `node`: the caller's template, or else one with links of kind UNKNOWN."""
        given = self._template.get(node.types[0]) if len(node.types) == 1 else None
        if given is not None:
            _checks.instance(given, Topology, f"template[{node.types[0]!r}]", TopologyError)
            if given.num_gpus != len(node.gpus):
                raise TopologyError(
                    f"template[{node.types[0]!r}] has {given.num_gpus} GPUs, but node {_checks.shown(node.name)} has "
                    f"{len(node.gpus)}"
                )
            return given
        found = sorted(node.gpus.items())
        key = (*node.types, *found)
        if key not in self._built:
            self._built[key] = self._unknown(found, " + ".join(node.types))
        return self._built[key]

    def _unknown(self, found: Sequence[tuple[int, tuple[str, int | None]]], name: str) -> Topology:
        gpus = [
            Gpu(i, f"GPU{index}", model, socket=socket) for i, (index, (model, socket)) in enumerate(found)
        ]
        link = Link(LinkKind.UNKNOWN, 1, self._pcie_gb_per_s)
        links = [(u, v, link) for v in range(len(gpus)) for u in range(v)]
        notes = ("Cells do not tell how the GPUs of a node are connected.",) if links else ()
        return with_host_paths(Topology(gpus, links, default=self._pcie_gb_per_s, name=name, notes=notes))


def _fabric(machines: tuple[str, ...], above: Sequence[switch_tree.Switch], name: str) -> Fabric:
    if not above:
        return Fabric(machines, (), name)
    heights = {rank: f"cell{rank + 1}" for rank in range(yaml_tree.MAX_DEPTH)}
    tree = switch_tree.from_tree(above, word="cell", names=heights)
    place = {machine: i for i, machine in enumerate(tree.machines)}
    levels: list[Level] = []
    for level in tree.levels:
        domains = tuple(level.domains[place[one]] if one in place else None for one in machines)
        levels.append(replace(level, domains=domains))
    return Fabric(machines, tuple(levels), name, ("Nodes of different top-level cells share no level.",))
