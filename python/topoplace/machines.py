"""Built-in machines, wired as published, under names a user can type: `machines.get("dgx1-v100")`; and tori of TPUs."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from topoplace import _checks
from topoplace._similar_names import did_you_mean
from topoplace.errors import TopologyError
from topoplace.topology.devices import Component, ComponentKind, Gpu, Nic
from topoplace.topology.fabric import Fabric
from topoplace.topology.links.link_kinds import SPEEDS, Link, LinkKind, direct, nvlink_of
from topoplace.topology.topology import Topology

Pair = tuple[int, int, int]

# (u, v, lanes) of every NVLink pair; all other pairs go through the host at PCIe 3.0 x16 speed.
# DGX-1 with V100 (MAPA, fig. 1); with P100 the same pairs have one lane each.
_DGX1 = (
    *((0, 1, 1), (0, 2, 1), (0, 3, 2), (0, 4, 2), (1, 2, 2), (1, 3, 1), (1, 5, 2), (2, 3, 2)),
    *((2, 6, 1), (3, 7, 1), (4, 5, 1), (4, 6, 1), (4, 7, 2), (5, 6, 2), (5, 7, 1), (6, 7, 2)),
)
# MAPA, fig. 17: a 4 x 4 torus. The published code of the paper lacks the pair (0, 4), which such a torus has.
_TORUS2D = (
    *((0, 1, 2), (0, 3, 1), (0, 4, 1), (0, 12, 2), (1, 2, 2), (1, 5, 1), (1, 13, 1), (2, 3, 2)),
    *((2, 6, 1), (2, 14, 1), (3, 7, 1), (3, 15, 2), (4, 5, 2), (4, 7, 1), (4, 8, 1), (5, 6, 2)),
    *((5, 9, 1), (6, 7, 2), (6, 10, 1), (7, 11, 1), (8, 9, 2), (8, 11, 1), (8, 12, 1), (9, 10, 2)),
    *((9, 13, 1), (10, 11, 2), (10, 14, 1), (11, 15, 1), (12, 13, 2), (12, 15, 1), (13, 14, 2), (14, 15, 2)),
)
# MAPA, fig. 17: four cubes of four. (0, 11), (1, 5), (3, 8) and (9, 13) are double, as labelled; the paper's
# published code gives them the speed of one lane.
_CUBEMESH = (
    *((0, 1, 1), (0, 2, 1), (0, 3, 2), (0, 11, 2), (1, 2, 2), (1, 3, 1), (1, 5, 2), (2, 6, 1)),
    *((2, 9, 1), (3, 8, 2), (4, 5, 2), (4, 6, 1), (4, 7, 1), (4, 15, 2), (5, 6, 1), (5, 7, 1)),
    *((6, 7, 2), (6, 13, 1), (7, 12, 2), (8, 9, 1), (8, 10, 2), (8, 11, 1), (9, 10, 2), (9, 11, 1)),
    *((9, 13, 2), (10, 14, 1), (12, 13, 2), (12, 14, 1), (12, 15, 2), (13, 14, 1), (13, 15, 1), (14, 15, 2)),
)
_MINSKY = ((0, 1, 2), (2, 3, 2))
_SUMMIT = ((0, 1, 2), (0, 2, 2), (1, 2, 2), (3, 4, 2), (3, 5, 2), (4, 5, 2))


# AMD's MI250X in groups of four (eight dies), as the Frontier user guide draws it: four links inside a package.
_MI250X = (
    *((0, 1, 4), (0, 2, 1), (0, 6, 2), (1, 3, 1), (1, 5, 1), (2, 3, 4), (2, 4, 2), (3, 7, 1)),
    *((4, 5, 4), (4, 6, 1), (5, 7, 1), (6, 7, 4)),
)
_ALL_PAIRS_OF_8 = tuple((u, v, 1) for u in range(8) for v in range(u + 1, 8))


def _machine(name: str, model: str, kind: LinkKind, sockets: str, pairs: Sequence[Pair]) -> Topology:
    """Build a machine of 16 GB GPUs with direct NVLinks between `pairs`, each (u, v, lanes).

    sockets: a digit per GPU: its socket, or its PCIe root if only roots are known.
    """
    return Topology.from_links(
        len(sockets),
        [direct(u, v, kind, lanes) for u, v, lanes in pairs],
        name=name,
        model=model,
        memory_gb=16.0,
        sockets=[int(digit) for digit in sockets],
    )


def _gpus(model: str, memory_gb: float, sockets: str) -> tuple[Gpu, ...]:
    return tuple(
        Gpu(i, f"GPU{i}", model, socket=int(digit), memory_gb=memory_gb) for i, digit in enumerate(sockets)
    )


def _switched(
    name: str,
    model: str,
    memory_gb: float,
    sockets: str,
    switches: Sequence[Sequence[int]],
    pcie: str,
    trunks: Sequence[Pair] = (),
    nic_gb_per_s: float | None = None,
    gpus_per_nic: int = 1,
) -> Topology:
    """Build a machine whose GPUs are joined by NVSwitches.

    sockets: a digit per GPU, its socket.
    switches: for each switch, the number of NVLinks from each GPU.
    trunks: (a, b, lanes) of NVLinks between two switches.
    nic_gb_per_s: if given, each group of `gpus_per_nic` GPUs has a network adapter below the same PCIe switch, on
    a rail of its own.
    """
    speed = nvlink_of(model)
    assert speed is not None
    n = len(sockets)

    def link(lanes: int) -> Link:
        return Link(speed.kind, lanes, lanes * speed.gb_per_s)

    parts = tuple(Component(ComponentKind.NVSWITCH, f"NVSwitch{i}") for i in range(len(switches)))
    inside = [
        (gpu, n + i, link(lanes)) for i, row in enumerate(switches) for gpu, lanes in enumerate(row) if lanes
    ]
    across = [(n + a, n + b, link(lanes)) for a, b, lanes in trunks]
    gpus = _gpus(model, memory_gb, sockets)
    if gpus_per_nic > 1:
        gpus = tuple(replace(gpu, rail=gpu.index // gpus_per_nic) for gpu in gpus)
    return Topology(
        gpus,
        default=SPEEDS[pcie].achievable_gb_per_s or 0.0,
        name=name,
        nics=_adapters(sockets, nic_gb_per_s, gpus_per_nic) if nic_gb_per_s else (),
        components=parts,
        component_links=(*inside, *across),
    )


def _adapters(sockets: str, gb_per_s: float, gpus_per_nic: int = 1) -> tuple[Nic, ...]:
    """Return an adapter of its own rail for each group of GPUs."""
    rails = range(len(sockets) // gpus_per_nic)
    return tuple(Nic(f"NIC{i}", _own_adapter(i, sockets, gpus_per_nic), gb_per_s, i) for i in rails)


def _own_adapter(rail: int, sockets: str, gpus_per_nic: int) -> tuple[str, ...]:
    near = sockets[rail * gpus_per_nic]
    return tuple(
        "PIX" if gpu // gpus_per_nic == rail else "NODE" if socket == near else "SYS"
        for gpu, socket in enumerate(sockets)
    )


def _linked(
    name: str,
    model: str,
    memory_gb: float,
    sockets: str,
    pcie: str,
    pairs: Sequence[Pair] = (),
    xgmi: str = "xgmi-mi300",
    nic_gb_per_s: float | None = None,
) -> Topology:
    """Build a machine whose GPUs have direct xGMI links between `pairs`, each (u, v, lanes), and else only PCIe.

    sockets: a digit per GPU, its socket.
    nic_gb_per_s: if given, each GPU has a network adapter below the same PCIe switch, on its own rail.
    """
    gb_per_s = SPEEDS[xgmi].gb_per_s
    links = tuple((u, v, Link(LinkKind.XGMI, lanes, lanes * gb_per_s)) for u, v, lanes in pairs)
    default = SPEEDS[pcie].achievable_gb_per_s or 0.0
    nics = _adapters(sockets, nic_gb_per_s) if nic_gb_per_s else ()
    return Topology(_gpus(model, memory_gb, sockets), links, default, name=name, nics=nics)


def _dgx2(name: str) -> Topology:
    """Build sixteen V100 on two boards of six NVSwitches; each switch has eight NVLinks to its peer on the other board.

    Two GPUs share each of the eight adapters for the network between machines.
    """
    boards = [[1] * 8 + [0] * 8] * 6 + [[0] * 8 + [1] * 8] * 6
    trunks = [(i, i + 6, 8) for i in range(6)]
    return _switched(name, "V100", 32.0, "0" * 8 + "1" * 8, boards, "pcie3", trunks, 12.5, 2)


def _nvl72(name: str) -> Topology:
    """Build a rack of eighteen machines (trays) of four GB200 GPUs, which form one NVLink domain.

    Every pair of GPUs has the bandwidth of all eighteen NVLinks of a GPU.
    """
    gb_per_s = SPEEDS["nvlink5"].gb_per_s * 18
    pairs = tuple((u, v, Link(LinkKind.NVSWITCH, 18, gb_per_s)) for u in range(4) for v in range(u + 1, 4))
    default = SPEEDS["pcie5"].achievable_gb_per_s or 0.0
    nics = _adapters("0011", 50.0)
    tray = Topology(_gpus("GB200", 186.0, "0011"), pairs, default, name="gb200-tray", nics=nics)
    rack = Fabric.regular(tuple(f"tray{i:02}" for i in range(18)), {"nvlink_domain": 18})
    rack = rack.with_level("nvlink_domain", kind=LinkKind.NVSWITCH)
    return Topology.cluster(tray, fabric=rack, network=50.0, name=name)


_p100 = functools.partial(_machine, model="P100", kind=LinkKind.NVLINK1)
_v100 = functools.partial(_machine, model="V100", kind=LinkKind.NVLINK2)
_FOUR_ROOTS = "0000111122223333"
_TWO_SOCKETS = "00001111"
_h100 = functools.partial(
    _switched,
    model="H100",
    memory_gb=80.0,
    sockets=_TWO_SOCKETS,
    switches=[[5] * 8, [5] * 8, [4] * 8, [4] * 8],
    pcie="pcie5",
    nic_gb_per_s=50.0,
)
_a100 = functools.partial(
    _switched, model="A100", sockets=_TWO_SOCKETS, switches=[[2] * 8] * 6, pcie="pcie4", nic_gb_per_s=25.0
)

# The source of each machine is next to it; if none is given, it is the vendor's user guide or data sheet.
_CATALOGUE: MappingProxyType[str, Callable[[str], Topology]] = MappingProxyType(
    {
        "minsky": functools.partial(_p100, sockets="0011", pairs=_MINSKY),  # SC'17, fig. 1
        "summit": functools.partial(_v100, sockets="000111", pairs=_SUMMIT),  # MAPA, fig. 1
        "dgx1-p100": functools.partial(
            _p100, sockets=_TWO_SOCKETS, pairs=tuple((u, v, 1) for u, v, _ in _DGX1)
        ),
        "dgx1-v100": functools.partial(_v100, sockets=_TWO_SOCKETS, pairs=_DGX1),
        "torus2d-16": functools.partial(_v100, sockets=_FOUR_ROOTS, pairs=_TORUS2D),
        "cubemesh-16": functools.partial(_v100, sockets=_FOUR_ROOTS, pairs=_CUBEMESH),
        "dgx2": _dgx2,
        "dgx-a100": functools.partial(_a100, memory_gb=80.0),
        "dgx-h100": _h100,
        # HGX B200: each of two NVSwitches has nine NVLinks of each GPU.
        "hgx-b200": functools.partial(
            _switched,
            model="B200",
            memory_gb=180.0,
            sockets=_TWO_SOCKETS,
            switches=[[9] * 8] * 2,
            pcie="pcie5",
            nic_gb_per_s=50.0,
        ),
        "gb200-nvl72": _nvl72,
        # Amazon EC2's instance types: the GPU boards of DGX-1, DGX A100 and DGX H100. A p4d has four adapters of
        # 100 Gb/s (EFA), each below a PCIe switch with two GPUs. A p5 has 32, four beside each GPU, which libraries
        # use together and which are one of 400 Gb/s here.
        "p3.16xlarge": functools.partial(_v100, sockets=_TWO_SOCKETS, pairs=_DGX1),
        "p4d.24xlarge": functools.partial(_a100, memory_gb=40.0, nic_gb_per_s=12.5, gpus_per_nic=2),
        "p5.48xlarge": _h100,
        "mi250x": functools.partial(
            _linked,
            model="MI250X",
            memory_gb=64.0,
            sockets="0" * 8,
            pcie="pcie4",
            pairs=_MI250X,
            xgmi="xgmi-mi200",
        ),
        # Azure's ND MI300X v5: an adapter of 400 Gb/s (InfiniBand) for each GPU.
        "mi300x": functools.partial(
            _linked,
            model="MI300X",
            memory_gb=192.0,
            sockets=_TWO_SOCKETS,
            pcie="pcie5",
            pairs=_ALL_PAIRS_OF_8,
            nic_gb_per_s=50.0,
        ),
        "l40s-8": functools.partial(
            _linked, model="L40S", memory_gb=48.0, sockets=_TWO_SOCKETS, pcie="pcie4"
        ),
        # Jouppi et al., ISCA'23: a cube of 4 x 4 x 4 chips is the smallest slice of TPU v4 that wraps around.
        "tpu-v4-64": lambda name: torus((4, 4, 4), name=name),
    }
)


def names() -> tuple[str, ...]:
    """Return the names of all built-in machines."""
    return tuple(_CATALOGUE)


def get(name: str) -> Topology:
    """Return the machine called `name`; for any other name, TopologyError suggests the closest ones."""
    return _built(_checks.text(name, "name", TopologyError))


@functools.cache
def _built(name: str) -> Topology:
    build = _CATALOGUE.get(name)
    if build is None:
        hint = did_you_mean(name, _CATALOGUE) or f"known: {', '.join(_CATALOGUE)}"
        raise TopologyError(f"name = {_checks.shown(name)} is not a machine; {hint}")
    return build(name)


_MAX_CHIPS = 1 << 14


def torus(
    shape: Sequence[int],
    *,
    model: str = "TPU v4",
    gb_per_s: float = 50.0,
    memory_gb: float | None = 32.0,
    wrap: bool = True,
    host: Sequence[int] = (2, 2, 1),
    name: str | None = None,
) -> Topology:
    """Build a grid of chips in one, two or three dimensions, as TPUs are wired.

    Chips are numbered with the last dimension fastest.

    Args:
        shape: Chips along each dimension.
        gb_per_s: Bandwidth of one link in one direction; TPU v4 has 50 (Jouppi et al., ISCA'23).
        wrap: If True, each dimension of three or more chips closes to a ring.
        host: The number of chips of one machine along each dimension; 2 x 2 x 1 for TPU v4.

    Raises:
        TopologyError: Names a wrong argument.
    """
    sizes = _sizes(shape, "shape")
    count = math.prod(sizes)
    if not 1 <= len(sizes) <= 3 or count > _MAX_CHIPS:
        raise TopologyError(
            f"shape = {_checks.shown(sizes)}: must have 1 to 3 dimensions and at most {_MAX_CHIPS} chips"
        )
    block = (*_sizes(host, "host"), 1, 1)[: len(sizes)]
    _checks.flag(wrap, "wrap", TopologyError)
    number = np.arange(count).reshape(sizes)
    pairs: list[tuple[int, int]] = []
    for axis, size in enumerate(sizes):
        ring = np.moveaxis(number, axis, 0)
        pairs += zip(ring[:-1].ravel().tolist(), ring[1:].ravel().tolist(), strict=True)
        if wrap and size > 2:
            pairs += zip(ring[-1].ravel().tolist(), ring[0].ravel().tolist(), strict=True)
    hosts = np.zeros(sizes, int)
    for axis, (size, step) in enumerate(zip(sizes, block, strict=True)):
        along = np.arange(size) // step
        hosts = hosts * (int(along[-1]) + 1) + np.expand_dims(
            along, tuple(a for a in range(len(sizes)) if a != axis)
        )
    machine_of: list[int] = hosts.ravel().tolist()
    so_far: Counter[int] = Counter()
    local: list[int] = []
    for machine in machine_of:
        local.append(so_far[machine])
        so_far[machine] += 1
    return Topology.from_links(
        count,
        [(u, v, gb_per_s, LinkKind.ICI) for u, v in pairs],
        name=name or f"{model} torus {'x'.join(map(str, sizes))}",
        model=model,
        memory_gb=memory_gb,
        machines=[f"host{machine}" for machine in machine_of],
        names=[f"chip{i}" for i in local],
    )


def _sizes(value: object, what: str) -> list[int]:
    found = _checks.sequence(value, what, TopologyError)
    return [
        _checks.integer(size, f"{what}[{i}]", TopologyError, low=1, high=_MAX_CHIPS)
        for i, size in enumerate(found)
    ]
