"""Ports, the links by which a GPU is attached to a level of a fabric, and the link between two ports."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from topoplace import _checks
from topoplace.errors import TopologyError
from topoplace.topology.links.link_kinds import NONE, Link, LinkKind, nvlink_of, rounded
from topoplace.topology.routing import nvswitches

if TYPE_CHECKING:
    from topoplace.topology.fabric import Level
    from topoplace.topology.topology import Topology

PLUGGED = Link(LinkKind.NETWORK, 1, math.inf)
"""The port of every GPU into a network level. It never limits a path: only the level's own speed counts."""


Ports = dict[int, tuple[Link, ...]]
"""By template number, the port of each GPU of the template into one level."""


def ports_into(level: Level, templates: Sequence[Topology], template_of: Sequence[int]) -> Ports:
    """Return the ports of all templates with machines in a domain of `level`; {} for a network, where all are equal.

    Raise TopologyError if the NVLinks of a GPU model are unknown, and neither its machine nor the level states their
    speed.
    """
    if level.kind is LinkKind.NETWORK:
        return {}
    return {number: tuple(_nvlinks(level, templates[number])) for number in members(level, template_of)}


def members(level: Level, template_of: Sequence[int]) -> list[int]:
    """Return the numbers of the templates of all machines that are in a domain of `level`, ascending."""
    inside = zip(level.domains, template_of, strict=True)
    return sorted({template for domain, template in inside if domain is not None})


def best(level: Level, ports: Ports, network: float) -> Link:
    """Return the link between two GPUs that both have the fastest port into `level`; kind NONE without a port or a
    speed.

    network: GB/s of a level without its own speed.
    """
    if level.kind is LinkKind.NETWORK:
        return link_between(level, PLUGGED, PLUGGED, network)
    pairs = (
        link_between(level, port, port, network) for of_template in ports.values() for port in of_template
    )
    return max(pairs, key=lambda link: link.gb_per_s, default=NONE)


def _nvlinks(level: Level, machine: Topology) -> Iterator[Link]:
    """Yield one link per GPU for all its NVLinks together.

    They are the NVLinks into the NVSwitches of its machine, or if there are none, those that its model has.
    """
    fastest: dict[int, Link] = {}
    for u, v in combinations(range(machine.num_gpus), 2):
        if (link := machine.link(u, v)).kind is LinkKind.NVSWITCH:
            for end in (u, v):
                fastest[end] = max(link, fastest.get(end, link), key=lambda found: found.gb_per_s)
    fastest = fastest or _into_switches(machine)
    for gpu in machine.gpus:
        yield fastest.get(gpu.index, NONE) if fastest else _nvlinks_of_model(level, gpu.model)


def _into_switches(machine: Topology) -> dict[int, Link]:
    """Return, by GPU, all its NVLinks into the NVSwitches of its machine as one link."""
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


def link_between(level: Level, one: Link, other: Link, network: float) -> Link:
    """Return the link between two ports of one domain of `level`; the slower port decides.

    network: GB/s of a level without its own speed. Return a link of kind NONE if a port is missing or the speed is 0.
    """
    if NONE in (one, other):
        return NONE
    slower = one if one.gb_per_s <= other.gb_per_s else other
    gb_per_s = level.gb_per_s or network
    if level.kind is LinkKind.NVSWITCH:
        gb_per_s = min(slower.gb_per_s, level.gb_per_s or slower.gb_per_s)
    return Link(level.kind, slower.lanes, gb_per_s / level.oversubscription) if gb_per_s else NONE
