"""The links that a drawing shows as lines: between two GPUs, or from a GPU to its switches or its CPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import TYPE_CHECKING, Final

from topoplace.drawing import style
from topoplace.drawing.scene import Line, Point, Scene
from topoplace.topology.devices import ComponentKind
from topoplace.topology.links.link_kinds import PATH_KINDS, Link, LinkKind

if TYPE_CHECKING:
    from topoplace.topology.topology import Topology

_INDIRECT: Final = frozenset(
    {*PATH_KINDS, LinkKind.XGMI_RELAYED, LinkKind.NETWORK, LinkKind.NVSWITCH, LinkKind.NONE}
)
_WORDS: Final = {
    LinkKind.NVLINK: "NVLink",
    LinkKind.NVLINK1: "NVLink 1",
    LinkKind.NVLINK2: "NVLink 2",
    LinkKind.NVLINK3: "NVLink 3",
    LinkKind.NVLINK4: "NVLink 4",
    LinkKind.NVLINK5: "NVLink 5",
    LinkKind.NVSWITCH: "NVLink to switches",
    LinkKind.XGMI: "xGMI",
    LinkKind.PCIE: "PCIe switch",
    LinkKind.PCIE_BRIDGES: "PCIe switches",
    LinkKind.HOST: "PCIe",
    LinkKind.HOST_BRIDGES: "PCIe, between NUMA nodes",
    LinkKind.SYSTEM: "PCIe, between sockets",
    LinkKind.NETWORK: "network",
    LinkKind.UNKNOWN: "link of unknown kind",
}


@dataclass(frozen=True, slots=True)
class SwitchGroup:
    """NVSwitches to which the same GPUs are attached, drawn as one bar."""

    switches: frozenset[int]
    """The switches' vertices in the topology's `component_links`; empty if the topology does not list its switches."""
    links: Mapping[int, Link]
    """The links of each GPU into the switches, taken together."""


def direct_links(topology: Topology) -> Sequence[tuple[int, int, Link]]:
    """Return the links that join two GPUs directly, slowest first, which a drawing shows as lines."""
    found = [entry for entry in topology.links if entry[2].kind not in _INDIRECT]
    return sorted(found, key=lambda entry: entry[2].gb_per_s)


def switch_groups(topology: Topology) -> Sequence[SwitchGroup]:
    """Return the groups of NVSwitches of a machine, and the GPUs' links into them."""
    known = [part.kind is ComponentKind.NVSWITCH for part in topology.components]
    return _by_components(topology) if any(known) else _by_pairs(topology)


def _by_components(topology: Topology) -> Sequence[SwitchGroup]:
    n = topology.num_gpus
    links: dict[int, dict[int, Link]] = {
        n + j: {} for j, part in enumerate(topology.components) if part.kind is ComponentKind.NVSWITCH
    }
    for a, b, link in topology.component_links:
        if a < n and b in links:
            links[b][a] = joined(link, links[b].get(a), link.kind)
    groups: dict[frozenset[int], list[int]] = {}
    for switch, own in links.items():
        groups.setdefault(frozenset(own), []).append(switch)
    found: list[SwitchGroup] = []
    for gpus, switches in groups.items():
        total: dict[int, Link] = {}
        for switch, gpu in product(switches, sorted(gpus)):
            total[gpu] = joined(links[switch][gpu], total.get(gpu), LinkKind.NVSWITCH)
        found.append(SwitchGroup(frozenset(switches), total))
    return sorted((group for group in found if group.links), key=lambda group: min(group.links))


def _by_pairs(topology: Topology) -> Sequence[SwitchGroup]:
    """Return a group for each set of GPUs that reach each other over NVSwitches."""
    first: dict[int, int] = {}
    fastest: dict[int, Link] = {}
    for u, v in combinations(range(topology.num_gpus), 2):
        link = topology.pairs.link(u, v)
        if link.kind is LinkKind.NVSWITCH:
            first[u] = first[v] = first.get(u, u)
            for gpu in (u, v):
                fastest[gpu] = max(link, fastest.get(gpu, link), key=lambda found: found.gb_per_s)
    return [
        SwitchGroup(frozenset(), {gpu: fastest[gpu] for gpu in sorted(first) if first[gpu] == start})
        for start in sorted(set(first.values()))
    ]


def trunks(topology: Topology, groups: Sequence[SwitchGroup]) -> Iterator[tuple[int, int, Link]]:
    """Yield the links between groups of switches; the links of a pair of groups are one."""
    group_of = {switch: i for i, group in enumerate(groups) for switch in group.switches}
    total: dict[tuple[int, int], Link] = {}
    for a, b, link in topology.component_links:
        i, j = group_of.get(a, -1), group_of.get(b, -1)
        if -1 < min(i, j) < max(i, j):
            pair = min(i, j), max(i, j)
            total[pair] = joined(link, total.get(pair), LinkKind.NVSWITCH)
    for (i, j), link in total.items():
        yield i, j, link


def joined(link: Link, other: Link | None, kind: LinkKind) -> Link:
    """Return two parallel links as one of `kind`; `other` may be None."""
    lanes, gb_per_s = (other.lanes, other.gb_per_s) if other else (0, 0.0)
    return Link(kind, link.lanes + lanes, link.gb_per_s + gb_per_s)


def link_classes(link: Link) -> str:
    """Return the classes of a link: its kind, and the class of its speed."""
    return f"link kind-{link.kind.value} speed-{style.speed_class(link.gb_per_s)}"


def words(link: Link) -> str:
    """Return a link in words: its lanes, kind and speed."""
    lanes = f"{link.lanes} × " if link.lanes > 1 else ""
    return f"{lanes}{_WORDS.get(link.kind, link.kind.label)}, {link.gb_per_s:g} GB/s"


class Wiring:
    """The lines of a scene, and the entries of their kinds and speeds in its legend."""

    def __init__(self, scene: Scene) -> None:
        """Store the scene to draw into."""
        self._scene = scene
        self._links: dict[str, set[Link]] = {}
        self._used: set[str] = set()

    def draw(
        self, name: str, link: Link, points: Sequence[Point], *, thin: bool = False, used: str = ""
    ) -> None:
        """Draw the line called `name`, such as "0-3", along two points, or three for a curve.

        thin: True if many lines are close together. used: the classes that highlight a line with data of the job; ""
        for none.
        """
        classes = link_classes(link)
        self._links.setdefault(classes, set()).add(link)
        self._used.update(used.split())
        lines = [Line(points, used)] if used else []
        lines.append(Line(points, "thin" if thin else ""))
        slowest = ", the slowest of the rings" if "slowest" in used.split() else ""
        data = {"link": name, "gb-per-s": f"{link.gb_per_s:g}"}
        self._scene.add(*lines, classes=classes, data=data, title=f"{name}: {words(link)}{slowest}")

    def explain(self) -> None:
        """Add entries for the drawn kinds and speeds to the legend, fastest first."""
        fastest = sorted(self._links.items(), key=lambda item: -max(link.gb_per_s for link in item[1]))
        for classes, links in fastest:
            self._scene.explain(classes, _summary(links), is_line=True)
        if "used" in self._used:
            self._scene.explain("used", "used by the job", is_line=True)
        if "slowest" in self._used:
            self._scene.explain("used slowest", "slowest of its rings", is_line=True)


def _summary(links: set[Link]) -> str:
    """Return links of one kind and speed class in words."""
    if len(links) == 1:
        return words(next(iter(links)))
    speeds = sorted({link.gb_per_s for link in links})
    kind = _WORDS.get(next(iter(links)).kind, next(iter(links)).kind.label)
    span = f"{speeds[0]:g}" if len(speeds) == 1 else f"{speeds[0]:g}–{speeds[-1]:g}"
    return f"{kind}, {span} GB/s"
