"""Reader of the topology that AMD's kernel driver shows below /sys/class/kfd/kfd/topology.

There is a directory nodes/N per NUMA node and per GPU, with a file `properties` of a name and a number per line. Each
link has such a file in io_links/M. Nodes with cpu_cores_count are processors, nodes with simd_count are GPUs. Links of
type 11 are xGMI and of type 2 PCIe, with bandwidths in MB/s; a weight is a distance, 15 per xGMI link. p2p_links only
repeat the io_links on their way, and are not used: xGMI through other GPUs follows from the direct links. location_id,
the PCI address, may appear twice: a partitioned GPU is several nodes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from topoplace import _checks
from topoplace.discovery.amd import models as amd
from topoplace.discovery.text import tar_archive
from topoplace.errors import TopologyError
from topoplace.topology.devices import Component, ComponentKind, Gpu
from topoplace.topology.links.link_kinds import PCIE3_X16_GB_PER_S, SPEEDS, Link, LinkKind, xgmi_of
from topoplace.topology.makers import Maker
from topoplace.topology.topology import Topology

MAX_NODES = 4096
MAX_FILE_BYTES = 1 << 16

_PATH = re.compile(
    r"(?:(?P<root>.*)/)?nodes/(?P<node>[0-9]{1,5})/(?:(?P<kind>io_links|mem_banks)/(?P<item>[0-9]{1,5})/)?properties"
)
_PROPERTY = re.compile(r"([a-z0-9_]{1,40}) ([0-9]{1,20})")
_XGMI, _PCIE = 11, 2
_GPU_MEMORY = (1, 2)  # the heap types of a GPU's own memory, visible to the processor or not
_MAX_MBPS = 1 << 40

Properties = dict[str, int]


def recognised(data: str | bytes) -> bool:
    """Return True if `data` looks like a tar archive of the driver's tree."""
    return isinstance(data, bytes) and tar_archive.is_tar(data) and b"nodes/" in data[: 1 << 20]


def parse(
    data: bytes | Mapping[str, str | bytes],
    *,
    pcie_gb_per_s: float = PCIE3_X16_GB_PER_S,
    socket_gb_per_s: float | None = None,
    name: str = "kfd",
    machine: str = "machine0",
) -> Topology:
    """Read the topology from the driver's tree, given as an uncompressed tar archive or as its files by path.

    GPUs and NUMA nodes are in the order of the driver's nodes; a GPU's `numa_node` counts NUMA nodes with CPUs. NUMA
    nodes at a weight of at most 15 share a socket. pcie_gb_per_s: GB/s of a PCIe link for which the driver states none.
    socket_gb_per_s: GB/s between NUMA nodes for which the driver states none; None means the catalogue's value for AMD.
    Raise TopologyError naming the file, the line and the value.
    """
    pcie_gb_per_s = _checks.positive(pcie_gb_per_s, "pcie_gb_per_s", TopologyError)
    if socket_gb_per_s is None:
        socket_gb_per_s = SPEEDS["socket-amd"].gb_per_s
    between = _checks.positive(socket_gb_per_s, "socket_gb_per_s", TopologyError)
    gpus, cpus = _nodes(data)
    links, strays = _checked_io_links([*gpus, *cpus])
    place = {node.id: i for i, node in enumerate([*gpus, *cpus])}
    models = {node.id: node.model for node in gpus}
    joined, silent = _links_by_place(links, place, models, pcie_gb_per_s, between)
    near = _near(links, place, len(gpus))
    sockets = _sockets(links, [node.id for node in cpus])
    inside, outside = _parted(joined, len(gpus))
    relayed = tuple(_relayed(inside))
    notes = (
        *strays,
        *silent,
        *amd.relay_notes(len(relayed), len(gpus) * (len(gpus) - 1) // 2),
        *_shared(gpus),
    )
    return Topology(
        tuple(_gpus(gpus, near, sockets, machine)),
        (*inside, *relayed),
        default=pcie_gb_per_s,
        name=name,
        components=tuple(Component(ComponentKind.NUMA_NODE, f"NUMA{i}") for i in range(len(cpus))),
        component_links=outside,
        notes=notes,
    )


# ---- files -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Node:
    """One node of the driver's tree; `links` and `banks` map the path of a file to the properties in it."""

    id: int
    path: str = ""
    properties: Properties = field(default_factory=Properties)
    links: dict[str, Properties] = field(default_factory=dict[str, Properties])
    banks: dict[str, Properties] = field(default_factory=dict[str, Properties])

    @property
    def is_gpu(self) -> bool:
        return self.properties.get("simd_count", 0) > 0

    @property
    def model(self) -> str | None:
        return amd.MODEL_OF_DEVICE.get(self.properties.get("device_id", 0))

    @property
    def address(self) -> str | None:
        """Return the node's PCI address; None if the driver gives none."""
        location, domain = self.properties.get("location_id", 0), self.properties.get("domain", 0)
        if not 0 < location < 1 << 16 or domain >= 1 << 32:
            return None
        return f"{domain:04x}:{location >> 8:02x}:{location >> 3 & 31:02x}.{location & 7}"

    @property
    def memory_gb(self) -> float | None:
        sizes = [b.get("size_in_bytes", 0) for b in self.banks.values() if b.get("heap_type") in _GPU_MEMORY]
        return (sum(sizes) or self.properties.get("local_mem_size", 0)) / 1e9 or None

    @property
    def uuid(self) -> str | None:
        unique = self.properties.get("unique_id", 0)
        return f"GPU-{unique:016x}" if 0 < unique < 1 << 64 else None


def _nodes(data: object) -> tuple[list[_Node], list[_Node]]:
    """Return the nodes that are GPUs, and all other nodes (processors), both by ascending id."""
    tree = _tree(data)
    gpus = [node for node in tree if node.is_gpu]
    if not gpus:
        raise TopologyError(f"no GPU: none of the {len(tree)} nodes has a simd_count above 0")
    return gpus, [node for node in tree if not node.is_gpu]


def _tree(data: object) -> list[_Node]:
    """Return the nodes by ascending id, each with its properties."""
    nodes: dict[int, _Node] = {}
    roots: set[str] = set()
    for path, content in _files(data):
        if match := _PATH.fullmatch(path):
            node = nodes.setdefault(int(match["node"]), _Node(int(match["node"])))
            roots.add(match["root"] or "")
            if len(nodes) > MAX_NODES or len(roots) > 1:
                what = "the trees of two machines" if len(roots) > 1 else f"more than {MAX_NODES} nodes"
                raise TopologyError(f"{_checks.shown(path)}: {what}")
            _add_file(node, match["kind"], path, content)
    missing = [node.id for node in nodes.values() if not node.properties]
    if missing or not nodes:
        raise TopologyError(f"there is no file nodes/{min(missing, default=0)}/properties")
    return [nodes[key] for key in sorted(nodes)]


def _files(data: object) -> Iterator[tuple[str, str | bytes]]:
    if isinstance(data, bytes):
        if not tar_archive.is_tar(data):
            raise TopologyError("data is not an uncompressed tar archive")
        yield from tar_archive.files(data)
    elif isinstance(data, Mapping):
        for path, content in cast("Mapping[object, object]", data).items():
            if not isinstance(path, str) or not isinstance(content, str | bytes):
                raise TopologyError(f"data[{_checks.shown(path)}] is not a path with the text of a file")
            yield path, content
    else:
        raise TopologyError(f"data = {_checks.shown(data)} is neither a tar archive nor files by path")


def _add_file(node: _Node, kind: str | None, path: str, content: str | bytes) -> None:
    properties = _properties(path, content)
    if kind is None:
        if node.properties:
            raise TopologyError(f"{_checks.shown(path)} appears twice")
        node.path, node.properties = path, properties
        return
    items = node.links if kind == "io_links" else node.banks
    if path in items:
        raise TopologyError(f"{_checks.shown(path)} appears twice")
    items[path] = properties


def _properties(path: str, content: str | bytes) -> Properties:
    if len(content) > MAX_FILE_BYTES:
        raise TopologyError(f"{_checks.shown(path)} has more than {MAX_FILE_BYTES} bytes")
    text = content if isinstance(content, str) else content.decode("utf-8", "replace")
    found: Properties = {}
    for number, line in enumerate(text.split("\n"), 1):
        match = _PROPERTY.fullmatch(line.rstrip())
        if match and match[1] not in found:
            found[match[1]] = int(match[2])
        elif line.strip():
            raise TopologyError(
                f"{_checks.shown(path)} line {number}: {_checks.shown(line)} is not a property, or appears twice"
            )
    if not found:
        raise TopologyError(f"{_checks.shown(path)} is empty")
    return found


# ---- links -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _IoLink:
    """One link in the driver's terms: bandwidths in MB/s of one lane and of all, 0 for unknown."""

    kind: int
    weight: int
    least_mb_per_s: int
    most_mb_per_s: int


_LINK_KEYS = ("type", "weight", "min_bandwidth", "max_bandwidth")
Pair = tuple[int, int]
"""The ids of two nodes, the smaller one first."""
Entry = tuple[int, int, Link]
"""(u, v, link) with u < v, where u and v are vertices: first the GPUs, then the NUMA nodes."""


def _checked_io_links(nodes: Sequence[_Node]) -> tuple[dict[Pair, _IoLink], list[str]]:
    """Return the link of every pair of nodes that has one, and a note for each link that cannot be used.

    If both ends describe a link, they must agree. Links may lead to nodes that a container does not show.
    """
    known = {node.id for node in nodes}
    links: dict[Pair, _IoLink] = {}
    strays: list[str] = []
    for node in nodes:
        for path, properties in node.links.items():
            source, target = (_value(properties, key, path) for key in ("node_from", "node_to"))
            if source != node.id:
                strays.append(f"{path} is a link of node {source}, not of node {node.id}: it is not used.")
            elif target not in known:
                strays.append(f"{path} leads to node {target}, which is not there: it is not used.")
            else:
                link = _IoLink(*(_value(properties, key, path) for key in _LINK_KEYS))
                _keep(links, source, target, link, path)
    return links, strays


def _keep(links: dict[Pair, _IoLink], source: int, target: int, link: _IoLink, path: str) -> None:
    if target == source:
        raise TopologyError(f"{path}: node_to = {target} must be another node")
    if links.setdefault((min(source, target), max(source, target)), link) != link:
        raise TopologyError(f"{path}: node {target} describes another link to node {source}")


def _parted(joined: Sequence[Entry], num_gpus: int) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    """Split `joined` into the links between two GPUs and all other links."""
    inside = tuple(link for link in joined if link[1] < num_gpus)
    return inside, tuple(link for link in joined if link[1] >= num_gpus)


def _relayed(inside: Sequence[Entry]) -> Iterator[Entry]:
    """Yield the links of pairs without one in `inside` that xGMI by way of other GPUs joins."""
    known = {pair[:2] for pair in inside}
    for u, v, _, gb_per_s in amd.relays(inside):
        if (u, v) not in known:
            yield u, v, Link(LinkKind.XGMI_RELAYED, 1, gb_per_s)


def _value(properties: Properties, key: str, path: str) -> int:
    value = properties.get(key)
    if value is None or value > _MAX_MBPS:
        raise TopologyError(f"{path}: {key} {'is missing' if value is None else f'= {value} is too large'}")
    return value


def _links_by_place(
    links: Mapping[Pair, _IoLink],
    place: Mapping[int, int],
    models: Mapping[int, str | None],
    pcie_gb_per_s: float,
    between_gb_per_s: float,
) -> tuple[list[Entry], list[str]]:
    """Return every link as an `Entry`, and a note for each kind of link whose speed is assumed.

    place: the vertex of each node, by the node's id.
    models: the model of each node that is a GPU, by the node's id.
    """
    joined: list[Entry] = []
    silent: Counter[str] = Counter()
    for (a, b), found in links.items():
        if a not in models and b not in models:
            link = Link(
                LinkKind.HOST_BRIDGES if found.weight <= amd.NEAR_WEIGHT else LinkKind.SYSTEM,
                1,
                between_gb_per_s,
            )
        elif found.kind == _XGMI:
            speed = xgmi_of(models.get(a) or models.get(b) or "") or amd.SLOWEST_XGMI
            link = Link(LinkKind.XGMI, 1, speed.gb_per_s)
        else:
            link = Link(LinkKind.PCIE if found.kind == _PCIE else LinkKind.UNKNOWN, 1, pcie_gb_per_s)
        if found.most_mb_per_s:
            link = _link_of_speed(found, link.kind)
        else:
            silent[f"of kind {link.kind.value} have no speed: {link.gb_per_s:g} GB/s is assumed."] += 1
        joined.append((min(place[a], place[b]), max(place[a], place[b]), link))
    return joined, [f"{count} links {what}" for what, count in sorted(silent.items())]


def _link_of_speed(found: _IoLink, kind: LinkKind) -> Link:
    """Return a link of `kind` at the speed that the driver gives in `found`."""
    if kind is LinkKind.XGMI:
        return amd.xgmi_link(found.least_mb_per_s, found.most_mb_per_s)
    return Link(kind, 1, found.most_mb_per_s / 1000)


def _near(links: Mapping[Pair, _IoLink], place: Mapping[int, int], num_gpus: int) -> dict[int, int]:
    """Return, by GPU index, the index of the NUMA node with the smallest weight to that GPU; the first of several."""
    best: dict[int, Pair] = {}
    for (a, b), link in links.items():
        gpu, cpu = sorted((place[a], place[b]))
        if gpu < num_gpus <= cpu:
            best[gpu] = min(best.get(gpu, (link.weight, cpu - num_gpus)), (link.weight, cpu - num_gpus))
    return {gpu: cpu for gpu, (_, cpu) in best.items()}


def _sockets(links: Mapping[Pair, _IoLink], cpus: Sequence[int]) -> list[int]:
    """Return the socket, numbered from 0, of each NUMA node in `cpus`; nodes at a weight of at most 15 share one."""
    leader = {cpu: cpu for cpu in cpus}
    for (a, b), link in links.items():
        if a in leader and b in leader and link.weight <= amd.NEAR_WEIGHT:
            low, high = sorted((leader[a], leader[b]))
            if low < high:
                leader.update({cpu: low for cpu, of in leader.items() if of == high})
    number = {of: i for i, of in enumerate(dict.fromkeys(leader.values()))}
    return [number[leader[cpu]] for cpu in cpus]


# ---- GPUs ------------------------------------------------------------------------------------------------------


def _gpus(
    nodes: Sequence[_Node], near: Mapping[int, int], sockets: Sequence[int], machine: str
) -> Iterator[Gpu]:
    """Yield the GPUs; a PCI address or UUID that several GPUs share is left out."""
    addresses = _unique([node.address for node in nodes])
    uuids = _unique([node.uuid for node in nodes])
    for i, node in enumerate(nodes):
        numa_node = near.get(i)
        yield Gpu(
            i,
            f"GPU{i}",
            node.model,
            machine,
            None if numa_node is None else sockets[numa_node],
            node.memory_gb,
            uuid=uuids[i],
            bus_id=addresses[i],
            numa_node=numa_node,
            maker=Maker.AMD.value,
        )


def _shared(nodes: Sequence[_Node]) -> list[str]:
    count = Counter(node.address for node in nodes if node.address)
    shared = sum(number for number in count.values() if number > 1)
    return [f"{shared} GPUs share PCI addresses, as parts of one GPU do: they have none."] if shared else []


def _unique(values: Sequence[str | None]) -> list[str | None]:
    count = Counter(values)
    return [value if count[value] == 1 else None for value in values]
