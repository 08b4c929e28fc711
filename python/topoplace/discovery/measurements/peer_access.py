"""Reader of the first lines of p2pBandwidthLatencyTest: the GPUs, and the pairs with access to each other's memory.

This reader is for texts that end before the matrices of speeds; others contain measured speeds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import combinations

from topoplace import _checks
from topoplace.discovery.text import decode
from topoplace.errors import TopologyError
from topoplace.topology.devices import Gpu
from topoplace.topology.links.link_kinds import PCIE3_X16_GB_PER_S, Link, LinkKind, model_known
from topoplace.topology.topology import Topology

_PAIR = re.compile(r"\s*Device=([0-9]{1,3}) (CAN|CANNOT) Access Peer Device=([0-9]{1,3})\s*")
_DEVICE = re.compile(
    r"\s*Device: ([0-9]{1,3}), (.{1,100}?), pciBusID: ([0-9a-f]{1,2}), pciDeviceID: ([0-9a-f]{1,2}), "
    r"pciDomainID: ?([0-9a-f]{1,8})\s*"
)
_MAX_GPUS = 128


def recognised(text: str) -> bool:
    """Return True if `text` has a line on access to a peer."""
    return any(_PAIR.fullmatch(line) for _, line in decode.numbered_lines(text[:65536]))


def parse(
    data: str | bytes,
    gpu_model: str | None = None,
    *,
    pcie_gb_per_s: float = PCIE3_X16_GB_PER_S,
    name: str = "peer access",
    machine: str = "machine0",
) -> Topology:
    """Read the GPUs and the pairs with direct access, of kind `LinkKind.UNKNOWN`; others have a path through the host.

    gpu_model: the model of every GPU. pcie_gb_per_s: GB/s assumed for every pair. Raise TopologyError naming the line.
    """
    pcie_gb_per_s = _checks.positive(pcie_gb_per_s, "pcie_gb_per_s", TopologyError)
    gpu_model = None if gpu_model is None else _checks.text(gpu_model, "gpu_model", TopologyError)
    devices: dict[int, re.Match[str]] = {}
    access: dict[tuple[int, int], bool] = {}
    for number, line in decode.numbered_lines(decode.decoded(data, "the access lines")):
        if device := _DEVICE.fullmatch(line):
            devices.setdefault(int(device[1]), device)
        elif pair := _PAIR.fullmatch(line):
            u, v = int(pair[1]), int(pair[3])
            if u == v or max(u, v) >= _MAX_GPUS:
                raise TopologyError(
                    f"line {number}: device {u} and peer {v} are no pair of 0 to {_MAX_GPUS - 1}"
                )
            access[u, v] = pair[2] == "CAN"
    if not access:
        raise TopologyError("no line is like 'Device=0 CAN Access Peer Device=1'")
    count = 1 + max((max(map(max, access)), *devices))
    if count > _MAX_GPUS:
        raise TopologyError(f"device {count - 1} is not in 0..{_MAX_GPUS - 1}")
    gpus = tuple(_gpu(i, devices.get(i), gpu_model, machine) for i in range(count))
    direct = Link(LinkKind.UNKNOWN, 1, pcie_gb_per_s)
    links = tuple((u, v, direct) for u, v in combinations(range(count), 2) if _is_direct(access, u, v))
    notes = tuple(_notes(access, count, pcie_gb_per_s))
    return Topology(gpus, links, default=pcie_gb_per_s, name=name, notes=notes)


def _gpu(i: int, device: re.Match[str] | None, model: str | None, machine: str) -> Gpu:
    if device is None:
        return Gpu(i, f"GPU{i}", model, machine)
    bus_id = f"{int(device[5], 16):04x}:{int(device[3], 16):02x}:{int(device[4], 16):02x}.0"
    return Gpu(i, f"GPU{i}", model or model_known(device[2]) or device[2], machine, bus_id=bus_id)


def _is_direct(access: Mapping[tuple[int, int], bool], u: int, v: int) -> bool:
    """Return True if both GPUs may access each other, as far as the text says."""
    said = [access[pair] for pair in ((u, v), (v, u)) if pair in access]
    return bool(said) and all(said)


def _notes(access: Mapping[tuple[int, int], bool], count: int, pcie_gb_per_s: float) -> Iterator[str]:
    pairs = list(combinations(range(count), 2))
    direct = [f"GPU{u}-GPU{v}" for u, v in pairs if _is_direct(access, u, v)]
    yield f"Direct access is supported for {len(direct)} of {len(pairs)} pairs: {', '.join(direct[:8]) or 'none'}."
    untold = sum((u, v) not in access and (v, u) not in access for u, v in pairs)
    if untold:
        yield f"Of {untold} pairs the text does not state the access; they are taken as without."
    yield f"What connects the pairs, and how fast, is not given: {pcie_gb_per_s:g} GB/s is assumed."
    yield "CUDA numbers GPUs by speed unless CUDA_DEVICE_ORDER=PCI_BUS_ID: `nvidia-smi` may number them otherwise."
