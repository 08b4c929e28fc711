"""Reader of NVIDIA's management library, NVML, through the module `pynvml` of nvidia-ml-py.

The reader returns model, UUID, PCI address, memory and near CPUs of every GPU, its active NVLinks with their other
ends, and its MIG slices. A GPU whose memory has rows that could not be repaired is unhealthy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from topoplace import _checks
from topoplace.discovery.nvidia.mig import slices_of
from topoplace.discovery.text.cpu_list import bits_of, list_of_mask
from topoplace.errors import TopologyError
from topoplace.topology.assemble import with_host_paths
from topoplace.topology.devices import MISSING_GPU, Component, ComponentKind, Gpu
from topoplace.topology.links.link_kinds import (
    PATH_KINDS,
    PCIE3_X16_GB_PER_S,
    SPEEDS,
    Link,
    LinkKind,
    nvlink_of,
    nvlink_of_capability,
    path,
)
from topoplace.topology.topology import Topology

_CPU_WORDS, _NODE_WORDS, _WORD_BITS = 64, 16, 64
_MAX_LINKS = 18
_USUAL_SLICES = 7
_USUAL_LANE = 25.0
"""GB/s of one NVLink of an unknown generation."""
_REMOTE_GPU, _REMOTE_SWITCH = 0, 2  # nvmlIntNvLinkDeviceType_t
# nvmlGpuTopologyLevel_t: 0 is two GPUs of one board.
_PATH_OF_LEVEL = {0: LinkKind.PCIE, **dict(zip((10, 20, 30, 40, 50), PATH_KINDS, strict=True))}


@dataclass(frozen=True)
class _Device:
    """A whole GPU, with its MIG slices, as NVML describes it."""

    handle: Any
    gpu: Gpu
    lane: Link
    lane_is_known: bool
    """False if the speed of `lane` is assumed."""
    pcie_gb_per_s: float | None
    remote: Counter[tuple[int, str]]
    """The number of active NVLinks, by (NVML's type, PCI address) of the device at the other end."""
    slices: tuple[Gpu, ...]


def topology_of(library: Any, *, machine: str = "machine0") -> Topology:
    """Return the topology of the host that `library`, an initialised `pynvml` or equivalent, describes.

    NVLinks have the nominal speed of their generation; if it is unknown, 25 GB/s, a note, and a mark in
    `Topology.assumed`. PCIe paths have the speed of the slowest known slot of a GPU, or 12 GB/s if none is known; a
    note says if some are unknown. The MIG slices of a GPU replace the GPU, and reach all other GPUs through the host.
    Raise TopologyError if there is no GPU.
    """
    ask = _Questions(library)
    count = library.nvmlDeviceGetCount()
    devices, lost = ask.devices(count, machine)
    if not devices:
        raise TopologyError(lost[0] if lost else "no GPU: the library counts 0")
    gpus, first = _placed(devices)
    speeds = [device.pcie_gb_per_s for device in devices]
    default = min((speed for speed in speeds if speed), default=PCIE3_X16_GB_PER_S)
    notes = [] if all(speeds) else [f"The PCIe speed of some GPUs is not given: {default:g} GB/s is assumed."]
    assumed = tuple(_assumed(devices, notes))
    switches, uplinks = _switches(devices, first, len(gpus))
    switched = {gpu for gpu, _, _ in uplinks}
    links: dict[tuple[int, int], Link] = {}
    for i, j, link in (
        *ask.paths(devices, default),
        *_direct(devices, notes),
    ):  # a direct link replaces the path
        if {i, j} <= first.keys() and not {first[i], first[j]} <= switched:
            links[first[i], first[j]] = link
    topology = Topology(
        tuple(gpus),
        tuple((u, v, link) for (u, v), link in links.items()),
        default,
        name="nvml",
        components=tuple(Component(ComponentKind.NVSWITCH, f"NVSwitch {address}") for address in switches),
        component_links=tuple(uplinks),
        notes=(*lost, *notes),
        assumed=assumed,
    )
    return with_host_paths(topology)


def _assumed(devices: Sequence[_Device], notes: list[str]) -> Iterator[LinkKind]:
    """Yield the kind of NVLinks if the speed of some is assumed, and note the models of their GPUs."""
    unknown = {device.gpu.model or "" for device in devices if device.remote and not device.lane_is_known}
    if unknown:
        models = ", ".join(sorted(unknown))
        notes.append(f"The speed of NVLinks of {models} is not known: {_USUAL_LANE:g} GB/s is assumed.")
        yield LinkKind.NVLINK


def _placed(devices: Sequence[_Device]) -> tuple[list[Gpu], dict[int, int]]:
    """Return all GPUs and slices in one list, and by number of a GPU without slices its index in that list."""
    gpus: list[Gpu] = []
    first: dict[int, int] = {}
    for i, device in enumerate(devices):
        if not device.slices:
            first[i] = len(gpus)
        gpus += device.slices or (device.gpu,)
    sockets = {cpus: i for i, cpus in enumerate(dict.fromkeys(gpu.cpus for gpu in gpus))}
    known = None not in sockets
    numbered = enumerate(gpus)
    return [replace(gpu, index=i, socket=sockets[gpu.cpus] if known else None) for i, gpu in numbered], first


def _switches(
    devices: Sequence[_Device], first: Mapping[int, int], num_gpus: int
) -> tuple[list[str], list[tuple[int, int, Link]]]:
    """Return the PCI addresses of the NVSwitches, and (GPU, vertex of the switch, link) for the NVLinks into them."""
    addresses = sorted(
        {address for device in devices for kind, address in device.remote if kind == _REMOTE_SWITCH}
    )
    return addresses, [
        (first[i], num_gpus + addresses.index(address), _lanes(device, count))
        for i, device in enumerate(devices)
        for (kind, address), count in device.remote.items()
        if kind == _REMOTE_SWITCH and i in first
    ]


def _direct(devices: Sequence[_Device], notes: list[str]) -> Iterator[tuple[int, int, Link]]:
    """Yield (i, j, link) for each pair of GPUs with NVLinks; if they report different numbers, the smaller counts."""
    for (i, first), (j, second) in combinations(enumerate(devices), 2):
        there = first.remote[_REMOTE_GPU, second.gpu.bus_id or ""]
        back = second.remote[_REMOTE_GPU, first.gpu.bus_id or ""]
        if there != back:
            notes.append(
                f"GPU{i} tells {there} NVLinks to GPU{j}, and that tells {back}: the fewer are counted."
            )
        if both := min(there, back):
            yield i, j, _lanes(first, both)


def _lanes(device: _Device, count: int) -> Link:
    return Link(device.lane.kind, count, count * device.lane.gb_per_s)


class _Questions:
    """Queries to NVML; a query that the driver does not support returns None."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def _try(self, function: str, *arguments: Any) -> Any:
        try:
            return getattr(self._library, function)(*arguments)
        except (self._library.NVMLError, AttributeError):
            return None

    def devices(self, count: int, machine: str) -> tuple[list[_Device], list[str]]:
        """Return the GPUs that answer, and a note on each of the others, which the driver has lost."""
        found: list[_Device] = []
        lost: list[str] = []
        for i in range(count):
            try:
                found.append(self.device(i, machine))
            except self._library.NVMLError as error:
                lost.append(f"{MISSING_GPU}GPU{i}, of which the driver says {_checks.shown(str(error))}.")
        return found, lost

    def device(self, i: int, machine: str) -> _Device:
        library = self._library
        handle = library.nvmlDeviceGetHandleByIndex(i)
        model = _text(library.nvmlDeviceGetName(handle))
        nodes = bits_of(_mask(self._try("nvmlDeviceGetMemoryAffinity", handle, _NODE_WORDS, 0)))
        remapped = self._try("nvmlDeviceGetRemappedRows", handle)
        memory = self._try("nvmlDeviceGetMemoryInfo", handle)
        gpu = Gpu(
            i,
            f"GPU{i}",
            model,
            machine,
            memory_gb=memory.total / 1e9 if memory and memory.total else None,
            uuid=_text(library.nvmlDeviceGetUUID(handle)),
            bus_id=_text(library.nvmlDeviceGetPciInfo(handle).busId),
            numa_node=nodes[0] if len(nodes) == 1 else None,
            cpus=list_of_mask(_mask(self._try("nvmlDeviceGetCpuAffinity", handle, _CPU_WORDS))),
            healthy=not (remapped and remapped[3]),
        )
        capability = self._try("nvmlDeviceGetCudaComputeCapability", handle)
        speed = nvlink_of(model) or (
            nvlink_of_capability(10 * capability[0] + capability[1]) if capability else None
        )
        lane = Link(speed.kind, 1, speed.gb_per_s) if speed else Link(LinkKind.NVLINK, 1, _USUAL_LANE)
        generation = self._try("nvmlDeviceGetMaxPcieLinkGeneration", handle)
        width = self._try("nvmlDeviceGetMaxPcieLinkWidth", handle)
        pcie = SPEEDS.get(f"pcie{generation}")
        slot = pcie.gb_per_s * width / 16 if pcie and width else None
        slices = tuple(self._slices(handle, gpu, slices_of(model) or _USUAL_SLICES))
        return _Device(handle, gpu, lane, speed is not None, slot, Counter(self._remote(handle)), slices)

    def _remote(self, handle: Any) -> Iterator[tuple[int, str]]:
        for link in range(_MAX_LINKS):
            if self._try("nvmlDeviceGetNvLinkState", handle, link) == 1:
                kind = self._try("nvmlDeviceGetNvLinkRemoteDeviceType", handle, link)
                remote = self._try("nvmlDeviceGetNvLinkRemotePciInfo", handle, link)
                if kind is not None and remote is not None:
                    yield kind, _text(remote.busId)

    def _slices(self, handle: Any, gpu: Gpu, parts: int) -> Iterator[Gpu]:
        mode = self._try("nvmlDeviceGetMigMode", handle)
        if not mode or mode[0] != 1:
            return
        for i in range(self._try("nvmlDeviceGetMaxMigDeviceCount", handle) or 0):
            part = self._try("nvmlDeviceGetMigDeviceHandleByIndex", handle, i)
            shape = self._try("nvmlDeviceGetAttributes", part) if part is not None else None
            if shape:
                yield replace(
                    gpu,
                    name=f"{gpu.name}/MIG{i}",
                    uuid=_text(self._library.nvmlDeviceGetUUID(part)),
                    parent=gpu.name,
                    fraction=min(shape.gpuInstanceSliceCount / parts, 1.0),
                    memory_gb=shape.memorySizeMB * (1 << 20) / 1e9,
                )

    def paths(self, devices: Sequence[_Device], gb_per_s: float) -> Iterator[tuple[int, int, Link]]:
        """Yield (i, j, link) for the PCIe path of each pair of GPUs that NVML knows; `gb_per_s` is that of PCIe."""
        for j, second in enumerate(devices):
            for i, first in enumerate(devices[:j]):
                level = self._try("nvmlDeviceGetTopologyCommonAncestor", first.handle, second.handle)
                if level in _PATH_OF_LEVEL:
                    yield i, j, path(_PATH_OF_LEVEL[level], gb_per_s)


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _mask(words: Sequence[int] | None) -> int:
    """Return 64-bit words, lowest first, combined to one number; 0 for None."""
    return sum(word << _WORD_BITS * i for i, word in enumerate(words or ()))
