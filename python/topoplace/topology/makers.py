"""The maker of an accelerator: as its text states, or by its model, links, UUID and name."""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING, Final

from topoplace.topology.links.link_kinds import LinkKind, capability_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from topoplace.topology.devices import Gpu
    from topoplace.topology.topology import Topology


class Maker(enum.Enum):
    """A maker of accelerators; it decides how processes see devices and which collective library they use.

    The value is the usual name of the maker or of its accelerators.
    """

    NVIDIA = "NVIDIA"
    AMD = "AMD"
    GOOGLE = "Google"
    INTEL = "Intel"
    GAUDI = "Gaudi"
    ASCEND = "Ascend"
    NEURON = "Neuron"
    MOORE_THREADS = "Moore Threads"
    CAMBRICON = "Cambricon"
    HYGON = "Hygon"
    UNKNOWN = "unknown"


LIBRARY_OF: Final = {
    Maker.NVIDIA: "NCCL",
    Maker.AMD: "RCCL",
    Maker.HYGON: "RCCL",
    Maker.GOOGLE: "XLA",
    Maker.INTEL: "oneCCL",
    Maker.GAUDI: "HCCL",
    Maker.ASCEND: "HCCL",
    Maker.MOORE_THREADS: "MCCL",
    Maker.CAMBRICON: "CNCL",
}
"""The library that joins the accelerators of a maker in collective operations."""
_BY_NAME: Final = {maker.value: maker for maker in Maker}
_NVIDIA_LINKS: Final = (
    LinkKind.NVLINK,
    LinkKind.NVLINK1,
    LinkKind.NVLINK2,
    LinkKind.NVLINK3,
    LinkKind.NVLINK4,
    LinkKind.NVLINK5,
    LinkKind.NVSWITCH,
    LinkKind.C2C,
)
_OF_KIND: Final = {
    LinkKind.XGMI: Maker.AMD,
    LinkKind.XGMI_RELAYED: Maker.AMD,
    LinkKind.ICI: Maker.GOOGLE,
    **dict.fromkeys(_NVIDIA_LINKS, Maker.NVIDIA),
}
# The first form that a model contains tells its maker; each begins where no letter precedes it.
_OF_MODEL: Final = tuple(
    (re.compile(rf"(?<![A-Za-z])(?:{form})", re.IGNORECASE), maker)
    for form, maker in (
        (r"Gaudi|Habana|HL-?[0-9]{3}", Maker.GAUDI),
        (r"Moore[ _-]?Threads|MTT|mthreads", Maker.MOORE_THREADS),
        (r"Hygon|DCU", Maker.HYGON),
        (r"Cambricon|MLU", Maker.CAMBRICON),
        (r"Trainium|Inferentia|Neuron|Trn[0-9]|Inf[0-9]", Maker.NEURON),
        (r"Ascend|NPU|Atlas|910[A-D]?[0-9]?(?![0-9A-Za-z])|310P?(?![0-9A-Za-z])", Maker.ASCEND),
        (r"NVIDIA|Tesla|GeForce|Quadro|TITAN|GRID|RTX|GTX", Maker.NVIDIA),
        (r"AMD|Instinct|Radeon|MI[ -]?[0-9]|Vega|Navi|FirePro|gfx[0-9]", Maker.AMD),
        (r"Google|TPU|v[0-9]+[ep](?![0-9A-Za-z])", Maker.GOOGLE),
        (
            r"Intel|Ponte Vecchio|PVC|Data Center GPU|Arc[ -]|Max[ -]?1[15][05]0|Flex[ -]?1[47]0|i915|xe(?![a-z])",
            Maker.INTEL,
        ),
        (r"G?[ABHKLMPTV][0-9]{1,4}[A-Z]{0,2}(?![0-9A-Za-z])", Maker.NVIDIA),
    )
)
_SEVERAL: Final = 2
_MOST_LOOKED_AT: Final = 64
"""Limit on the GPUs of a machine whose links are examined to find their makers."""
_NVIDIA_UUID: Final = re.compile(r"(?:GPU|MIG)-[0-9a-fA-F]{8}-.*|MIG-GPU-.*")
_OTHER_NAME: Final = re.compile(
    r"(?:Device|NPU|XPU|MLU|GCU|DCU|PPU|HPU|renderD|card|accel|neuron)[ _/-]?[0-9].*"
)
"""A device's name in a tool of a maker other than NVIDIA."""


def maker_of(topology: Topology, gpu: int) -> Maker:
    """Return the maker of a GPU: as the text states, else by its model, links, UUID and name.

    A GPU without a model or any sign of a maker is NVIDIA's: only texts of NVIDIA's tools leave models out.
    """
    device = topology.gpus[gpu]
    if device.maker is not None:
        return _BY_NAME.get(device.maker, Maker.UNKNOWN)
    if (maker := of_model(device.model)) is not None:
        return maker
    neighbours = topology.gpus_of[device.machine]
    kinds = (topology.link(gpu, other).kind for other in neighbours if other != gpu)
    return next((_OF_KIND[kind] for kind in kinds if kind in _OF_KIND), None) or _of_rest(device)


def gpus_by_maker(topology: Topology) -> Mapping[Maker, frozenset[int]]:
    """Return the GPUs of each known maker, the largest number first; {} unless the topology has several makers."""
    of_template = [_makers(one) for one in topology.templates]
    makers = {maker for one in of_template for maker in one} - {Maker.UNKNOWN}
    if len(makers) < _SEVERAL:
        return {}
    found: dict[Maker, list[int]] = {maker: [] for maker in sorted(makers, key=lambda maker: maker.value)}
    each = (maker for template in topology.template_of for maker in of_template[template])
    for gpu, maker in enumerate(each):
        if maker is not Maker.UNKNOWN:
            found[maker].append(gpu)
    by_number = sorted(found.items(), key=lambda item: -len(item[1]))
    return {maker: frozenset(gpus) for maker, gpus in by_number}


def are_mixed(topology: Topology, gpus: Collection[int]) -> bool:
    """Return True if these GPUs are of several makers, whose collective libraries cannot join them."""
    makers = topology.derived(gpus_by_maker).values()
    return sum(not own.isdisjoint(gpus) for own in makers) > 1


def names_several(models: Iterable[str]) -> bool:
    """Return True if these models are of several makers; a job that requires such models may get several makers."""
    return len({of_model(model) for model in models} - {None}) > 1


def _makers(machine: Topology) -> list[Maker]:
    """Return the maker of each GPU; unknown for those of large machines that only links could tell, one by one."""
    told: dict[tuple[str | None, str | None], Maker | None] = {}
    found: list[Maker] = []
    for gpu, device in enumerate(machine.gpus):
        key = device.maker, device.model
        if key not in told:
            is_told = device.maker is not None or of_model(device.model) is not None
            told[key] = maker_of(machine, gpu) if is_told else None
        by_links = maker_of if machine.num_gpus <= _MOST_LOOKED_AT else _unknown
        found.append(told[key] or by_links(machine, gpu))
    return found


def _unknown(topology: Topology, gpu: int) -> Maker:
    return Maker.UNKNOWN


def of_model(model: str | None) -> Maker | None:
    """Return the maker that a model names, in any spelling; None if it names none that is known."""
    if model is None:
        return None
    found = next((maker for form, maker in _OF_MODEL if form.search(model)), None)
    return Maker.NVIDIA if found is None and capability_of(model) else found


def of_resource(name: str) -> str:
    """Return the maker that a resource or driver such as gpu.intel.com is named after; else the name itself."""
    maker = of_model(name)
    return name if maker is None else maker.value


def _of_rest(device: Gpu) -> Maker:
    """Return the maker of a device that neither its model nor its links tell."""
    if _NVIDIA_UUID.fullmatch(device.uuid or "") or device.name.startswith("nvidia") or device.parent:
        return Maker.NVIDIA
    return Maker.UNKNOWN if device.model or _OTHER_NAME.fullmatch(device.name) else Maker.NVIDIA
