"""Reader of the NVLinks, xGMI links and C2C links of GPUs in a NCCL or RCCL topology file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from topoplace import _checks
from topoplace.discovery.nccl.pci_tree import PciDevice, unread
from topoplace.discovery.text import xml_tree
from topoplace.discovery.text.xml_tree import Element
from topoplace.errors import TopologyError
from topoplace.topology.links.link_kinds import (
    NONE,
    Link,
    LinkKind,
    LinkSpeed,
    nvlink_of,
    nvlink_of_capability,
    xgmi_of,
    xgmi_of_architecture,
)

_LINKS = ("nvlink", "xgmi")
_NVSWITCH_CLASS = "0x068000"
_CPU_CLASS = "0x068001"
_NAMELESS_SWITCH = "fffffff:"  # NCCL writes this for a switch it cannot see

_MAX_LINKS = 1024
_MAX_MBYTES = 10_000_000


@dataclass(frozen=True, slots=True)
class PlacedGpu:
    """A GPU with its position in the PCI tree."""

    device: PciDevice
    name: str
    element: Element | None
    """Its XML element `gpu`; None in a skeleton, a file without such elements."""


@dataclass(slots=True)
class Wires:
    """All links of the GPUs of one host, by target: another GPU, an NVSwitch, the GPU's CPU, or the GPU itself."""

    pairs: list[tuple[int, int, Link]] = field(default_factory=list[tuple[int, int, Link]])
    switches: dict[str, dict[int, Link]] = field(default_factory=dict[str, dict[int, Link]])
    """The link from each GPU into each NVSwitch, by the switch's bus id and the GPU's index."""
    cpus: dict[int, Link] = field(default_factory=dict[int, Link])
    """The link from a GPU to its own CPU, by the GPU's index."""
    loops: list[int] = field(default_factory=list[int])
    """The GPUs with links to themselves."""
    notes: list[str] = field(default_factory=list[str])

    def to_cpu(self, gpu: int, link: Link) -> None:
        """Store `link` from the GPU to its CPU, unless a faster one is stored already."""
        self.cpus[gpu] = faster(self.cpus.get(gpu), link)


@dataclass(frozen=True, slots=True)
class Lanes:
    """The caller's arguments about the speed of an NVLink or xGMI link."""

    model: str | None
    gb_per_s: float | None

    def of(self, gpu: Element, tag: str) -> LinkSpeed:
        """Return kind and speed of the links of `gpu` with the XML tag `tag`, "nvlink" or "xgmi".

        Raise TopologyError if neither the file nor an argument of the caller states the speed.
        """
        known = self._known(gpu, tag)
        if self.gb_per_s is not None:
            kind = known.kind if known else LinkKind.XGMI if tag == "xgmi" else LinkKind.NVLINK
            return LinkSpeed(kind, self.gb_per_s, None, "direct", known.most_links if known else _MAX_LINKS)
        if known is None:
            of = f"gpu_model = {_checks.shown(self.model)}" if self.model else _generation(gpu)
            raise TopologyError(
                f"line {gpu.line}: no speed is known of {tag} of {of}; lane_gb_per_s= gives that of one link"
            )
        return known

    def _known(self, gpu: Element, tag: str) -> LinkSpeed | None:
        if self.model:
            return xgmi_of(self.model) if tag == "xgmi" else nvlink_of(self.model)
        if tag == "xgmi":
            return xgmi_of_architecture(gpu.get("gcn").split(":")[0])
        return nvlink_of_capability(xml_tree.integer(gpu, "sm", high=1 << 16)) if gpu.get("sm") else None


def _generation(gpu: Element) -> str:
    key = "gcn" if gpu.get("gcn") else "sm"
    return f"{key} {_checks.shown(gpu.get(key))}"


def read(gpus: Sequence[PlacedGpu], lanes: Lanes) -> Wires:
    """Return the links of all GPUs; TopologyError unless both ends of a link between GPUs list it."""
    wires = Wires()
    index = {gpu.device.name: i for i, gpu in enumerate(gpus)}
    direct: dict[tuple[int, int], _Bundle] = {}
    for i, gpu in enumerate(gpus):
        if gpu.element is None:
            continue
        for bundle in _bundles(gpu.element, lanes):
            if bundle.target in index:
                direct[i, index[bundle.target]] = bundle
            else:
                _lead_out(wires, i, gpu, bundle)
        for c2c in gpu.element.children_of("c2c"):
            wires.to_cpu(i, _c2c(c2c))
    wires.pairs.extend(_both_ways(direct, gpus, wires))
    wires.notes += _lonely(wires, gpus)
    elements = (child for gpu in gpus if gpu.element for child in gpu.element.children)
    wires.notes += unread(Counter(child.tag for child in elements if child.tag not in (*_LINKS, "c2c")))
    return wires


@dataclass(slots=True)
class _Bundle:
    """All links from one GPU to one target."""

    target: str
    tclass: str
    line: int
    link: Link


def _bundles(gpu: Element, lanes: Lanes) -> list[_Bundle]:
    bundles: dict[str, _Bundle] = {}
    total = 0
    for element in gpu.children:
        if element.tag not in _LINKS:
            continue
        target = element.get("target").lower()
        if not 1 <= len(target) <= 32:
            raise TopologyError(
                f"line {element.line}: {element.tag} target = {_checks.shown(target)} is not a bus id"
            )
        speed = lanes.of(gpu, element.tag)
        count = xml_tree.integer(element, "count", low=1, high=_MAX_LINKS)
        total += count
        if total > (speed.most_links if element.tag == "nvlink" else _MAX_LINKS):
            raise TopologyError(
                f"line {element.line}: {total} links, more than the {speed.most_links} of such a GPU"
            )
        before = bundles[target].link.lanes if target in bundles else 0
        link = Link(speed.kind, before + count, (before + count) * speed.gb_per_s)
        bundles[target] = _Bundle(target, element.get("tclass").lower(), element.line, link)
    return list(bundles.values())


def _lead_out(wires: Wires, i: int, gpu: PlacedGpu, bundle: _Bundle) -> None:
    """Add to `wires` the links of GPU `i` to a target that is not a GPU of the file: CPU, NVSwitch, or unknown."""
    if bundle.tclass == _CPU_CLASS:
        wires.to_cpu(i, bundle.link)
    elif bundle.tclass == _NVSWITCH_CLASS or bundle.target.startswith(_NAMELESS_SWITCH):
        wires.switches.setdefault(bundle.target, {})[i] = bundle.link
    else:
        wires.notes.append(
            f"Links from {gpu.name} to {bundle.target} ({bundle.link.lanes}) are not counted: that is not in the file."
        )


def _lonely(wires: Wires, gpus: Sequence[PlacedGpu]) -> Iterator[str]:
    """Yield notes about GPUs that share no NVSwitch with another GPU, if any GPUs of the file share one."""
    if any(len(ends) > 1 for ends in wires.switches.values()):
        for target, ends in wires.switches.items():
            for i, link in ends.items() if len(ends) == 1 else ():
                yield f"Links from {gpus[i].name} to {target} ({link.lanes}) lead to no other GPU of the file."
        on_switch = {i for ends in wires.switches.values() for i in ends}
        for i in sorted({*range(len(gpus))} - on_switch):
            yield f"{gpus[i].name} has no links to a switch, as others have."


def faster(one: Link | None, other: Link) -> Link:
    """Return the faster of two links, or `other` if `one` is None."""
    return one if one and one.gb_per_s > other.gb_per_s else other


def _c2c(element: Element) -> Link:
    """Return the C2C links in `element` as one link; the file gives the MB/s of one of them and their number."""
    count = xml_tree.integer(element, "count", low=1, high=_MAX_LINKS)
    return Link(
        LinkKind.C2C, count, count * xml_tree.integer(element, "bw", low=1, high=_MAX_MBYTES) / 1000.0
    )


def _both_ways(
    direct: Mapping[tuple[int, int], _Bundle], gpus: Sequence[PlacedGpu], wires: Wires
) -> Iterator[tuple[int, int, Link]]:
    for (u, v), bundle in direct.items():
        link = bundle.link
        if u == v:
            wires.loops.append(u)
            wires.notes.append(
                f"Links from {gpus[u].name} to itself ({link.lanes}, line {bundle.line}) are not counted: "
                "where they lead is not known."
            )
            continue
        back = direct[v, u].link if (v, u) in direct else NONE
        if back.lanes != link.lanes:
            raise TopologyError(
                f"line {bundle.line}: {link.lanes} links from {gpus[u].name} to {gpus[v].name}, "
                f"but {back.lanes} back"
            )
        if u < v:
            yield u, v, link if link.gb_per_s <= back.gb_per_s else back
