"""Reader of ResourceSlices, in which drivers of Kubernetes list the devices of each node.

The text is ResourceSlice objects, or a list of them, in YAML or JSON (`kubectl get resourceslices -o yaml`). Their
drivers are those of NVIDIA, AMD, Intel, TPUs and others with GPUs, and network drivers such as dra.net. These
attributes are
read: type, product or model, UUID, PCI address, PCIe root, NUMA node, compute capability, health, and memory. Adapters
and GPUs at one PCIe root are PHB to each other, those of one NUMA node NODE, and all others SYS. How GPUs are connected
with each other is not given: their links are of kind UNKNOWN, unless the caller gives a template. Slices of a GPU, such
as type `mig`, are left out with a note.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from topoplace import _checks
from topoplace.discovery.text import decode, yaml_tree
from topoplace.discovery.text.yaml_tree import Fields
from topoplace.errors import TopologyError
from topoplace.topology import makers
from topoplace.topology.assemble import joined, with_host_paths
from topoplace.topology.devices import Gpu, Nic
from topoplace.topology.links.link_kinds import PCIE3_X16_GB_PER_S, Link, LinkKind
from topoplace.topology.topology import Topology

MAX_GPUS = 256
"""Limit on the GPUs of one node; more are refused as a mistake."""
_RECOGNISED = re.compile(
    r'(?:^[ \t]*(?:-[ \t]+)?|[{,][ \t]*)"?kind"?:[ \t]*"?ResourceSlice(?:List)?"?[ \t\r]*(?:[,}]|$)',
    re.MULTILINE,
)
_WHOLE = ("gpu", "amdgpu", "tpu", "npu", "accelerator", "")
"""Types of devices that are whole GPUs; "" stands for a driver without types."""
_OF_GPUS = re.compile(r"(?:^|[.-])(?:gpu|tpu|npu|xpu|gaudi|neuron|accel)", re.IGNORECASE)
_OF_NETWORKS = re.compile(r"(?:^|[.-])(?:net|dranet|nic|rdma|sriov|infiniband)|\bdra\.net\b", re.IGNORECASE)
_OF_A_LEVEL = re.compile(r"(?i:[a-z_-]*(?:fabric|clique|domain|rack|block|island|ring)(?:_?id|_?name)?)")
"""An attribute that may name a domain of the network."""
_ADAPTER = frozenset(("ifName", "rdma", "rdmaDevice", "linkSpeed"))
_CAPABILITY = re.compile(r"([0-9]{1,2})\.([0-9])(?:\.[0-9]+)?")
_QUANTITY = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)([KMGTPE]?)(i?)")
_BUS_ID = re.compile(r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")


@dataclass(frozen=True, slots=True)
class _SliceDevice:
    driver: str
    name: str
    attributes: Mapping[str, str]
    """By the last part of their names, as texts."""
    memory_gb: float | None
    taints: tuple[str, ...] = ()
    """The keys and values of its taints, which keep claims away or evict them."""

    @property
    def kind(self) -> str:
        return self.attributes.get("type", "").lower()

    @property
    def is_adapter(self) -> bool:
        return bool(_OF_NETWORKS.search(self.driver)) or not _ADAPTER.isdisjoint(self.attributes)

    @property
    def is_gpu(self) -> bool:
        return not self.is_adapter and self.kind in _WHOLE and bool(_OF_GPUS.search(self.driver) or self.kind)

    @property
    def root(self) -> str | None:
        return self.attributes.get("pcieRoot")

    @property
    def numa_node(self) -> int | None:
        """Return its NUMA node; drivers write -1 for one that is unknown."""
        found = self.attributes.get("numaNode", self.attributes.get("numa", ""))
        return int(found) if re.fullmatch(r"[0-9]{1,4}", found) else None


class _Slice(NamedTuple):
    node: str
    pool: str
    """Driver and name."""
    generation: int
    pool_size: int
    """The number of slices of the pool; 0 if it is not given."""
    devices: list[_SliceDevice]

    @property
    def key(self) -> tuple[str, str]:
        return self.node, self.pool


def recognised(text: str) -> bool:
    """Return True if `text` looks like ResourceSlices."""
    return _RECOGNISED.search(text) is not None


def parse(
    data: str | bytes,
    *,
    template: Topology | None = None,
    pcie_gb_per_s: float = PCIE3_X16_GB_PER_S,
    name: str = "resource slices",
) -> Topology:
    """Read the nodes in `data` that have GPUs, as machines of a topology.

    template: the topology of a node, with as many GPUs; it replaces what is read of each. pcie_gb_per_s: GB/s assumed
    between the GPUs of a node without a template. Only slices of a pool's newest generation count.
    Raises TopologyError naming the line, the slice or the device.
    """
    pcie_gb_per_s = _checks.positive(pcie_gb_per_s, "pcie_gb_per_s", TopologyError)
    nodes, incomplete = _nodes(decode.decoded(data, "ResourceSlices"))
    machines = {
        node: machine for node, devices in nodes.items() if (machine := _machine(devices, pcie_gb_per_s))
    }
    if not machines:
        raise TopologyError(
            f"no slice lists a GPU: those of {_checks.some(list(nodes)) or 'no node'} do not{_drivers(nodes)}"
        )
    if template is not None:
        _checks.instance(template, Topology, "template", TopologyError)
        for node, machine in machines.items():
            if machine.num_gpus != template.num_gpus:
                raise TopologyError(
                    f"node {_checks.shown(node)}: {machine.num_gpus} GPUs, but its template has {template.num_gpus}"
                )
        machines = dict.fromkeys(machines, template)
    notes = list(_notes(nodes, machines, template is None))
    if incomplete:
        notes.append(f"Pools with missing slices: {_checks.some(incomplete)}.")
    return joined(machines, (), name, notes)


# ---- machines --------------------------------------------------------------------------------------------------


def _machine(devices: Sequence[_SliceDevice], pcie_gb_per_s: float) -> Topology | None:
    """Return the machine of a node with these devices; None if it has no GPU."""
    found = [device for device in devices if device.is_gpu]
    if not found:
        return None
    if len(found) > MAX_GPUS:
        raise TopologyError(f"{len(found)} GPUs are more than {MAX_GPUS} on one node")
    near = _sockets(found)
    gpus = [_gpu(i, device, near[i]) for i, device in enumerate(found)]
    unknown = Link(LinkKind.UNKNOWN, 1, pcie_gb_per_s)
    links = [(u, v, unknown) for v in range(len(gpus)) for u in range(v)]
    nics = [
        Nic(device.attributes.get("ifName") or device.name, tuple(_path(device, gpu) for gpu in found))
        for device in devices
        if device.is_adapter
    ]
    name = gpus[0].model or "GPU"
    return with_host_paths(Topology(gpus, links, default=pcie_gb_per_s, nics=tuple(nics), name=name))


def _gpu(index: int, device: _SliceDevice, socket: int | None) -> Gpu:
    attributes = device.attributes
    model = next((attributes[key] for key in ("productName", "model", "tpuGen") if attributes.get(key)), None)
    address = next((value for value in attributes.values() if _BUS_ID.fullmatch(value)), None)
    capability = _CAPABILITY.fullmatch(attributes.get("cudaComputeCapability", ""))
    return Gpu(
        index,
        f"GPU{index}",
        model,
        socket=socket,
        memory_gb=device.memory_gb,
        uuid=attributes.get("uuid"),
        bus_id=address,
        numa_node=device.numa_node,
        healthy=not device.taints and attributes.get("health", "").lower() not in ("unhealthy", "false"),
        capability=10 * int(capability[1]) + int(capability[2]) if capability else None,
        maker=makers.of_resource(device.driver),
    )


def _sockets(devices: Sequence[_SliceDevice]) -> list[int | None]:
    """Return the number of each device's NUMA node, or of its PCIe root where NUMA nodes are not given."""
    if all(device.numa_node is not None for device in devices):
        return [device.numa_node for device in devices]
    roots = {root: i for i, root in enumerate(dict.fromkeys(device.root for device in devices))}
    shared = len(roots) < len(devices) and None not in roots
    return [roots[device.root] if shared else None for device in devices]


def _path(adapter: _SliceDevice, gpu: _SliceDevice) -> str:
    if adapter.root is not None and adapter.root == gpu.root:
        return "PHB"
    return "NODE" if adapter.numa_node is not None and adapter.numa_node == gpu.numa_node else "SYS"


def _notes(
    nodes: Mapping[str, Sequence[_SliceDevice]], machines: Mapping[str, Topology], links_unknown: bool
) -> Iterator[str]:
    if links_unknown:
        yield "ResourceSlices do not say how the GPUs of a node are connected."
    if without := [node for node in nodes if node not in machines]:
        yield f"Without GPUs, and left out: {_checks.some(without)}."
    placed = [(node, device) for node, devices in nodes.items() for device in devices]
    if tainted := list(_tainted(placed)):
        yield f"GPUs with taints, which are marked unhealthy: {_checks.some(tainted)}."
    yield from _left_out([device for _, device in placed])


def _left_out(devices: Sequence[_SliceDevice]) -> Iterator[str]:
    of_gpus = (key for device in devices if device.is_gpu for key in device.attributes)
    if groups := dict.fromkeys(filter(_OF_A_LEVEL.fullmatch, of_gpus)):
        yield f"Attributes of GPUs that may be levels of the network, and are left out: {_checks.some(groups)}."
    others = (device for device in devices if not (device.is_gpu or device.is_adapter))
    if kinds := dict.fromkeys(f"{device.kind or 'devices'} of {device.driver}" for device in others):
        yield f"Devices that are no whole GPUs, and left out: {_checks.some(kinds)}."


def _drivers(nodes: Mapping[str, Sequence[_SliceDevice]]) -> str:
    """Return which drivers the slices without a GPU are of, as the end of a sentence."""
    names = dict.fromkeys(device.driver for devices in nodes.values() for device in devices)
    return (
        f"; their drivers are {_checks.some(list(names))}, and none of these is known for GPUs"
        if names
        else ""
    )


def _tainted(placed: Iterable[tuple[str, _SliceDevice]]) -> Iterator[str]:
    """Yield each GPU with taints, with its node and the taints."""
    for node, device in placed:
        if device.taints and device.is_gpu:
            yield f"{device.name} of {node} ({', '.join(device.taints)})"


# ---- slices ----------------------------------------------------------------------------------------------------


def _nodes(text: str) -> tuple[dict[str, list[_SliceDevice]], list[str]]:
    """Return the devices of each node, in the order of the text, and the pools with missing slices."""
    slices = [
        found
        for one in yaml_tree.objects(text, "ResourceSlices")
        if yaml_tree.scalar(one, "kind") in ("ResourceSlice", None) and (found := _slice(one)) is not None
    ]
    newest: dict[tuple[str, str], int] = {}
    for one in slices:
        newest[one.key] = max(one.generation, newest.get(one.key, 0))
    current = [one for one in slices if one.generation == newest[one.key]]
    given = Counter(one.key for one in current)
    missing = [
        f"{one.pool} ({given[one.key]} of {one.pool_size})"
        for one in current
        if given[one.key] < one.pool_size
    ]
    nodes: dict[str, list[_SliceDevice]] = {}
    seen: set[tuple[str, str, str]] = set()
    for one in current:
        for device in one.devices:
            key = one.node, device.driver, device.name
            if key in seen:
                raise TopologyError(
                    f"node {_checks.shown(one.node)}: device {_checks.shown(device.name)} appears twice"
                )
            seen.add(key)
            nodes.setdefault(one.node, []).append(device)
    return nodes, list(dict.fromkeys(missing))


def _slice(one: Fields) -> _Slice | None:
    """Return a slice; None for one that has no node."""
    metadata = yaml_tree.fields(one.get("metadata"), "metadata")
    spec = yaml_tree.fields(one.get("spec"), f"{yaml_tree.at(one)}spec")
    pool = yaml_tree.fields(spec.get("pool"), "pool")
    node = yaml_tree.scalar(spec, "nodeName") or _owner(metadata)
    if node is None:
        return None
    driver = yaml_tree.scalar(spec, "driver") or ""
    devices = [
        _device(yaml_tree.fields(item, "a device"), driver) for item in yaml_tree.items(spec, "devices")
    ]
    name = f"{driver}/{yaml_tree.scalar(pool, 'name') or ''}"
    count = yaml_tree.number(pool, "resourceSliceCount", 0, 1 << 62) or 0
    return _Slice(node, name, yaml_tree.number(pool, "generation", 0, 1 << 62) or 0, count, devices)


def _owner(metadata: Fields) -> str | None:
    """Return the node that owns a slice without the field nodeName."""
    for item in yaml_tree.items(metadata, "ownerReferences"):
        owner = yaml_tree.fields(item, "an owner")
        if yaml_tree.scalar(owner, "kind") == "Node":
            return yaml_tree.scalar(owner, "name")
    return None


def _device(one: Fields, driver: str) -> _SliceDevice:
    name = _checks.text(yaml_tree.scalar(one, "name"), f"{yaml_tree.at(one)}name of a device", TopologyError)
    body = yaml_tree.fields(one.get("basic"), "basic") if "basic" in one else one  # v1beta1
    where = f"{yaml_tree.at(one)}device {_checks.shown(name)}: "
    attributes = {
        key.rpartition("/")[2]: _plain(value) or ""
        for key, value in yaml_tree.fields(body.get("attributes"), f"{where}attributes").items()
    }
    capacity = yaml_tree.fields(body.get("capacity"), f"{where}capacity")
    memory = _plain(
        next((value for key, value in capacity.items() if key.rpartition("/")[2] == "memory"), None)
    )
    taints = (yaml_tree.fields(item, f"{where}a taint") for item in yaml_tree.items(body, "taints"))
    keys = (
        f"{yaml_tree.scalar(taint, 'key') or ''}={yaml_tree.scalar(taint, 'value') or ''}".rstrip("=")
        for taint in taints
        if yaml_tree.scalar(taint, "effect") != "None"
    )
    return _SliceDevice(driver, name, attributes, _gigabytes(memory, where), tuple(keys))


def _plain(value: object) -> str | None:
    """Return the text of an attribute, such as of {string: x}, or of a capacity, such as of {value: 40Gi}."""
    found = next(iter(value.values()), None) if isinstance(value, Fields) else value
    return found if isinstance(found, str) else None


def _gigabytes(quantity: str | None, where: str) -> float | None:
    if quantity is None:
        return None
    match = _QUANTITY.fullmatch(quantity)
    if match is None:
        raise TopologyError(f"{where}memory = {_checks.shown(quantity)} is not an amount such as 40Gi")
    power = " KMGTPE".index(match[2] or " ")
    return float(match[1]) * (1024 if match[3] else 1000) ** power / 1e9 or None
