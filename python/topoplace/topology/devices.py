"""Devices of a topology: GPUs, network adapters and the components between them, and their checks."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from topoplace import _checks
from topoplace.errors import TopologyError
from topoplace.topology.links.link_kinds import PATHS, SPEEDS, LinkKind

UNNAMED: Final = "machine0"
"""The name of a machine whose text does not name it."""


@dataclass(frozen=True, slots=True, repr=False)
class Gpu:
    """One GPU of a topology, or a MIG slice of one."""

    index: int
    """Position in the topology, from 0."""
    name: str
    """Name on its machine, such as "GPU0"."""
    model: str | None = None
    """Product name, such as "V100"; None if unknown."""
    machine: str = UNNAMED
    """Name of its machine."""
    socket: int | None = None
    """The CPU socket (or PCIe root) to which the GPU is attached; None if unknown."""
    memory_gb: float | None = None
    """Memory in GB; None if unknown."""
    uuid: str | None = None
    """Globally unique name in the vendor's tools, such as "GPU-5d5b..."; None if unknown."""
    bus_id: str | None = None
    """PCI address on its machine, such as "0000:07:00.0", or None; virtual machines repeat addresses."""
    numa_node: int | None = None
    """The NUMA node to which the GPU is attached, in its machine's numbering; None if unknown."""
    cpus: str | None = None
    """The CPUs near the GPU in Linux notation, such as "0-23,48-71"; None if unknown."""
    healthy: bool = True
    """False for a GPU that must not get jobs: in a `Cluster`, it is out of service."""
    parent: str | None = None
    """For a MIG slice, the name of its GPU on the machine; None for a GPU."""
    fraction: float = 1.0
    """Share of the compute of a whole GPU: 1 for a GPU, 3/7 for a slice of 3 of 7."""
    rail: int | None = None
    """The rail of the network to which the GPU is attached; None means its index on its machine."""
    capability: int | None = None
    """CUDA compute capability, times ten (80 for 8.0); None if unknown."""
    maker: str | None = None
    """Maker, such as "AMD", if the text states it besides the model; else None."""

    def __repr__(self) -> str:
        """Show the fields that differ from their defaults."""
        known = [
            f"{key}={value!r}" for key in _GPU_FIELDS if (value := getattr(self, key)) != _GPU_FIELDS[key]
        ]
        return f"Gpu({', '.join(known)})"


_GPU_FIELDS = {field.name: field.default for field in fields(Gpu)}


@dataclass(frozen=True, slots=True)
class Nic:
    """A network adapter and its path to every GPU."""

    name: str
    paths: tuple[str, ...]
    """(n,) one path class per GPU, as in `nvidia-smi topo -m`: PIX, PXB, PHB, NODE or SYS, from near to far."""
    gb_per_s: float | None = None
    """GB/s of all its ports together in one direction; None if unknown."""
    rail: int | None = None
    """The rail of the network to which the adapter is attached; None if unknown."""


class ComponentKind(enum.Enum):
    """A kind of component that forwards traffic inside a machine; the value is its name in JSON."""

    SOCKET = "socket"
    """A CPU package with its host bridges."""
    NUMA_NODE = "numa_node"
    """The CPUs of one NUMA node with their host bridges."""
    PCIE_SWITCH = "pcie_switch"
    """A PCIe switch or bridge below a host bridge."""
    NVSWITCH = "nvswitch"
    """A switch of NVLinks."""


@dataclass(frozen=True, slots=True)
class Component:
    """A part of a machine, other than a GPU, through which traffic between GPUs passes."""

    kind: ComponentKind
    name: str
    """Name, unique in its topology."""
    cpu: str | None = None
    """For a socket or NUMA node, the make of its CPUs: a key of `topoplace.links.SPEEDS` such as "socket-amd", or None.
    """


CPUS = tuple(name for name in SPEEDS if name.startswith("socket-"))
"""The makes of CPUs that a component may have."""
PATH_CLASSES = tuple(PATHS)
MISSING_GPU = "A GPU is missing: "
"""Beginning of a note on a GPU that the machine has, or had, and that the tool does not describe."""
GPU_KEYS = tuple(field.name for field in fields(Gpu) if field.name != "index")
"""The fields of a GPU, without its index, that can be written; the first five always are."""
NIC_KEYS = tuple(field.name for field in fields(Nic))
"""The fields of a network adapter that can be written; the first two always are."""
_ALWAYS = object()
"""Stands for the default of a field that is always written: no value equals it."""
_GPU_WRITTEN = [(key, _ALWAYS if key in GPU_KEYS[:5] else _GPU_FIELDS[key]) for key in GPU_KEYS]
_NIC_WRITTEN = [
    (field.name, _ALWAYS if field.name in NIC_KEYS[:2] else field.default) for field in fields(Nic)
]
_MAX_NUMBER = 1 << 16
_UUID = re.compile(r"[^\s\x00-\x1f\x7f$`\"'\\;&|<>(){}]+")
_CPU_LIST = re.compile(r"[0-9]{1,6}(-[0-9]{1,6})?(,[0-9]{1,6}(-[0-9]{1,6})?)*")


def written_device(device: Gpu | Nic) -> dict[str, Any]:
    """Return the fields of `device` that are written to JSON: those always present, and those not at their defaults."""
    written = _GPU_WRITTEN if isinstance(device, Gpu) else _NIC_WRITTEN
    return {key: value for key, default in written if (value := getattr(device, key)) != default}


def checked_gpus(gpus: Iterable[object], limit: int) -> tuple[Gpu, ...]:
    """Return `gpus` with every field checked; there must be 1 to `limit`, and each index must be the position.

    On one machine, no two GPUs may have the same name or UUID. Raise TopologyError for the first fault, as do the other
    functions `checked_…`.
    """
    found = _checks.sequence(gpus, "gpus", TopologyError)
    if not 1 <= len(found) <= limit:
        raise TopologyError(f"gpus has {len(found)} entries; a topology has 1..{limit}")
    checked = tuple(_checked_gpu(gpu, i) for i, gpu in enumerate(found))
    _refuse_repeated(checked, "name")
    _refuse_repeated(checked, "uuid")
    return checked


def _refuse_repeated(gpus: Sequence[Gpu], key: str) -> None:
    """Raise TopologyError if two GPUs of one machine have the same `key`, "name" or "uuid"; None may repeat."""
    first: dict[tuple[str, str], int] = {}
    for gpu in gpus:
        value = getattr(gpu, key)
        if value is not None and (other := first.setdefault((gpu.machine, value), gpu.index)) != gpu.index:
            raise TopologyError(
                f"gpus[{gpu.index}].{key} = {_checks.shown(value)} is that of gpus[{other}] too, "
                f"on machine {_checks.shown(gpu.machine)}"
            )


def _checked_gpu(gpu: object, i: int) -> Gpu:
    where = f"gpus[{i}]"
    if not isinstance(gpu, Gpu):
        raise TopologyError(f"{where} = {_checks.shown(gpu)} is not a Gpu")
    if isinstance(gpu.index, bool) or gpu.index != i:
        raise TopologyError(f"{where}.index = {_checks.shown(gpu.index)} is not {i}")
    for key in ("name", "machine"):
        _checks.text(getattr(gpu, key), f"{where}.{key}", TopologyError)
    for key in ("model", "uuid", "bus_id", "cpus", "parent", "maker"):
        if getattr(gpu, key) is not None:
            _checks.text(getattr(gpu, key), f"{where}.{key}", TopologyError)
    if gpu.uuid is not None and not _UUID.fullmatch(gpu.uuid):
        raise TopologyError(f"{where}.uuid = {_checks.shown(gpu.uuid)} is not a UUID such as GPU-8a5...")
    if gpu.cpus is not None and not _CPU_LIST.fullmatch(gpu.cpus):
        raise TopologyError(f'{where}.cpus = {_checks.shown(gpu.cpus)} is not a list like "0-23,48-71"')
    _checks.flag(gpu.healthy, f"{where}.healthy", TopologyError)
    memory_gb = gpu.memory_gb
    if memory_gb is not None:
        memory_gb = _checks.positive(memory_gb, f"{where}.memory_gb", TopologyError)
    return Gpu(
        i,
        gpu.name,
        gpu.model,
        gpu.machine,
        _number(gpu.socket, f"{where}.socket"),
        memory_gb,
        gpu.uuid,
        gpu.bus_id,
        _number(gpu.numa_node, f"{where}.numa_node"),
        gpu.cpus,
        gpu.healthy,
        gpu.parent,
        _checks.positive(gpu.fraction, f"{where}.fraction", TopologyError, high=1.0),
        _number(gpu.rail, f"{where}.rail"),
        _number(gpu.capability, f"{where}.capability"),
        gpu.maker,
    )


def _number(value: object, what: str) -> int | None:
    """Return `value`, such as the number of a socket or rail, checked to be in range; None stays None."""
    return None if value is None else _checks.integer(value, what, TopologyError, low=0, high=_MAX_NUMBER)


def path_kind(a: Gpu, b: Gpu) -> LinkKind:
    """Return the kind of the path over CPUs between two GPUs of a machine, by their sockets and NUMA nodes.

    NUMA nodes count as sockets if a socket is unknown; HOST if both GPUs are near the same CPUs, or if that is unknown.
    """
    apart = a.numa_node is not None and b.numa_node is not None and a.numa_node != b.numa_node
    if a.socket is None or b.socket is None:
        return LinkKind.SYSTEM if apart else LinkKind.HOST
    if a.socket != b.socket:
        return LinkKind.SYSTEM
    return LinkKind.HOST_BRIDGES if apart else LinkKind.HOST


def checked_nics(nics: Iterable[object], num_gpus: int) -> tuple[Nic, ...]:
    """Return `nics`, each with a unique name and a known path class for each of `num_gpus` GPUs."""
    checked: dict[str, Nic] = {}
    for i, nic in enumerate(_checks.sequence(nics, "nics", TopologyError)):
        where = f"nics[{i}]"
        if not isinstance(nic, Nic):
            raise TopologyError(f"{where} = {_checks.shown(nic)} is not a Nic")
        name = _checks.text(nic.name, f"{where}.name", TopologyError)
        paths = _checks.sequence(nic.paths, f"{where}.paths", TopologyError)
        if name in checked:
            raise TopologyError(f"{where}.name = {name!r} appears twice")
        if len(paths) != num_gpus:
            raise TopologyError(f"{where}.paths has {len(paths)} entries for {num_gpus} GPUs")
        for j, path in enumerate(paths):
            if path not in PATH_CLASSES:
                raise TopologyError(
                    f"{where}.paths[{j}] = {_checks.shown(path)} is none of {', '.join(PATH_CLASSES)}"
                )
        gb_per_s = (
            None
            if nic.gb_per_s is None
            else _checks.positive(nic.gb_per_s, f"{where}.gb_per_s", TopologyError)
        )
        checked[name] = Nic(name, paths, gb_per_s, _number(nic.rail, f"{where}.rail"))
    return tuple(checked.values())


def checked_components(components: Iterable[object]) -> tuple[Component, ...]:
    """Return `components`, each with a unique name."""
    checked: dict[str, Component] = {}
    for i, component in enumerate(_checks.sequence(components, "components", TopologyError)):
        where = f"components[{i}]"
        if not isinstance(component, Component):
            raise TopologyError(f"{where} = {_checks.shown(component)} is not a Component")
        _checks.instance(component.kind, ComponentKind, f"{where}.kind", TopologyError)
        name = _checks.text(component.name, f"{where}.name", TopologyError)
        if name in checked:
            raise TopologyError(f"{where}.name = {_checks.shown(name)} appears twice")
        if component.cpu is not None:
            _checks.one_of(component.cpu, f"{where}.cpu", CPUS, TopologyError)
        checked[name] = component
    return tuple(checked.values())


def checked_partitions(partitions: Iterable[object], num_gpus: int) -> tuple[tuple[int, ...], ...]:
    """Return `partitions` as sorted tuples of ascending GPUs; duplicates are refused."""
    checked: set[tuple[int, ...]] = set()
    for i, partition in enumerate(_checks.sequence(partitions, "partitions", TopologyError)):
        where = f"partitions[{i}]"
        listed = _checks.sequence(partition, where, TopologyError)
        gpus = tuple(
            sorted(
                _checks.integer(gpu, f"{where}[{j}]", TopologyError, low=0, high=num_gpus - 1)
                for j, gpu in enumerate(listed)
            )
        )
        if not gpus or len(set(gpus)) < len(gpus):
            raise TopologyError(f"{where} = {_checks.shown(gpus)} is not a set of GPUs")
        if gpus in checked:
            raise TopologyError(f"{where} = {_checks.shown(gpus)} appears twice")
        checked.add(gpus)
    return tuple(sorted(checked))
