"""How the GPUs of machines are plugged into the levels of a fabric, and what a pair of ports makes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from topoplace import _checks
from topoplace.errors import TopologyError
from topoplace.topology.links.link import NONE, Link, LinkKind, rounded
from topoplace.topology.links.link_catalogue import nvlink_of
from topoplace.topology.routing import nvswitches

if TYPE_CHECKING:
    from topoplace.topology.fabric import Level
    from topoplace.topology.topology import Topology

PLUGGED = Link(LinkKind.NETWORK, 1, math.inf)
"""Plugged into a network: what the level carries is all that counts."""


Ports = dict[int, tuple[Link, ...]]
"""By the number of a template, how each of its GPUs is plugged in."""


def into(level: Level, templates: Sequence[Topology], template_of: Sequence[int]) -> Ports:
    """The ports of all machines that are in a domain of `level`; {} for a network, where all are alike."""
    if level.kind is LinkKind.NETWORK:
        return {}
    return {number: tuple(_nvlinks(level, templates[number])) for number in members(level, template_of)}


def members(level: Level, template_of: Sequence[int]) -> list[int]:
    """The templates of the machines that are in a domain of `level`, ascending."""
    inside = zip(level.domains, template_of, strict=True)
    return sorted({template for domain, template in inside if domain is not None})


def best(level: Level, ports: Ports, network: float) -> Link:
    """How two GPUs that have all links into `level` are connected."""
    if level.kind is LinkKind.NETWORK:
        return joint(level, PLUGGED, PLUGGED, network)
    pairs = (joint(level, port, port, network) for of_template in ports.values() for port in of_template)
    return max(pairs, key=lambda link: link.gb_per_s, default=NONE)


def _nvlinks(level: Level, machine: Topology) -> Iterator[Link]:
    """All NVLinks of each GPU: those into the switches of its machine, or else what its model has."""
    fastest: dict[int, Link] = {}
    for u, v in combinations(range(machine.num_gpus), 2):
        if (link := machine.link(u, v)).kind is LinkKind.NVSWITCH:
            for end in (u, v):
                fastest[end] = max(link, fastest.get(end, link), key=lambda found: found.gb_per_s)
    fastest = fastest or _into_switches(machine)
    for gpu in machine.gpus:
        yield fastest.get(gpu.index, NONE) if fastest else _nvlinks_of_model(level, gpu.model)


def _into_switches(machine: Topology) -> dict[int, Link]:
    """The NVLinks of each GPU into the switches of its machine, together."""
    switches = nvswitches(machine.num_gpus, machine.components)
    found: dict[int, Link] = {}
    for gpu, other, link in machine.component_links:
        if gpu < machine.num_gpus and other in switches:
            so_far = found.get(gpu, Link(LinkKind.NVSWITCH, 0, 0.0))
            gb_per_s = rounded(so_far.gb_per_s + link.gb_per_s)
            found[gpu] = Link(LinkKind.NVSWITCH, so_far.lanes + link.lanes, gb_per_s)
    return found


def _nvlinks_of_model(level: Level, model: str | None) -> Link:
    if speed := nvlink_of(model) if model else None:
        return Link(LinkKind.NVSWITCH, speed.most_links, speed.gb_per_s * speed.most_links)
    if level.gb_per_s:
        return Link(LinkKind.NVSWITCH, 1, level.gb_per_s)
    raise TopologyError(
        f"level {_checks.shown(level.name)}: the NVLinks of GPU model {model} are not known; give the level gb_per_s"
    )


def joint(level: Level, one: Link, other: Link, network: float) -> Link:
    """How two GPUs that are plugged so into one domain of `level` are connected: as fast as the slower of them."""
    if NONE in (one, other):
        return NONE
    slower = one if one.gb_per_s <= other.gb_per_s else other
    gb_per_s = level.gb_per_s or network
    if level.kind is LinkKind.NVSWITCH:
        gb_per_s = min(slower.gb_per_s, level.gb_per_s or slower.gb_per_s)
    return Link(level.kind, slower.lanes, gb_per_s / level.oversubscription) if gb_per_s else NONE
