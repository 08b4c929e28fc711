"""Copies of a topology with other links: of single pairs of GPUs, or of GPUs that have lost some of their lanes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from topoplace import _checks
from topoplace.errors import TopologyError
from topoplace.topology.links.link_kinds import MAX_GB_PER_S, NONE, NVLINKS, Link, LinkKind, rounded
from topoplace.topology.topology import Topology
from topoplace.topology.validate import checked_link

Value = TypeVar("Value")
_OF_GPUS: Final = NVLINKS | {LinkKind.NVSWITCH, LinkKind.XGMI, LinkKind.XGMI_RELAYED, LinkKind.ICI}
"""The kinds of links that are a GPU's own."""


def with_links(topology: Topology, links: Mapping[tuple[int, int], float | Link]) -> Topology:
    """Return the topology with other links; see `Topology.with_links`."""
    _checks.instance(links, Mapping, "links", TopologyError)
    changed: dict[tuple[int, ...], Link] = {}
    for key, value in links.items():
        pair, what = _pair(topology, key), f"links[{_checks.shown(key)}]"
        if pair in changed:
            raise TopologyError(f"{what}: the pair is there twice")
        changed[pair] = _link(topology, pair, value, what)
    return _changed(topology, changed, _linked)


def _pair(topology: Topology, key: object) -> tuple[int, int]:
    """Return two GPUs in ascending order; TopologyError unless a link of their own can join them."""
    ends = _checks.ordered(key, "a pair in links", TopologyError)
    if len(ends) != 2:
        raise TopologyError(f"a pair in links = {_checks.shown(key)} is not two GPUs")
    last, what = topology.num_gpus - 1, f"links[{_checks.shown(key)}]"
    u, v = sorted(_checks.integer(end, f"{what}: a GPU", TopologyError, low=0, high=last) for end in ends)
    if u == v:
        raise TopologyError(f"{what} joins a GPU with itself")
    if topology.tiling is not None and topology.machine_of[u] != topology.machine_of[v]:
        raise TopologyError(f"{what} joins two machines, whose link is that of a level of the fabric")
    return u, v


def _link(topology: Topology, pair: tuple[int, int], value: float | Link, what: str) -> Link:
    """Return the link that a value stands for; a speed is one for the kind and the lanes of the present link."""
    if isinstance(value, Link):
        return checked_link(value, what)
    gb_per_s = _checks.real(value, what, TopologyError, high=MAX_GB_PER_S)
    now = topology.link(*pair)
    kind = LinkKind.UNKNOWN if now == NONE else now.kind
    return Link(kind, now.lanes or 1, gb_per_s) if gb_per_s else NONE


def _linked(machine: Topology, links: Mapping[tuple[int, ...], Link]) -> Topology:
    kept = [entry for entry in machine.links if entry[:2] not in links]
    return replace(machine, links=(*kept, *((u, v, link) for (u, v), link in links.items())))


def with_degraded(topology: Topology, shares: Mapping[int, float]) -> Topology:
    """Return the topology with slower links of some GPUs; see `Topology.with_degraded`."""
    _checks.instance(shares, Mapping, "shares", TopologyError)
    checked: dict[tuple[int, ...], float] = {}
    for key, share in shares.items():
        gpu = _checks.integer(key, "a GPU in shares", TopologyError, low=0, high=topology.num_gpus - 1)
        checked[(gpu,)] = _checks.positive(share, f"shares[{gpu}]", TopologyError, high=1.0)
        machine, own = _place(topology, gpu)
        template = topology.templates[topology.template_of[machine]]
        links = (template.pairs.link(own, other) for other in range(template.num_gpus))
        if all(link.kind not in _OF_GPUS for link in links):
            raise TopologyError(f"shares[{gpu}]: the GPU has no NVLinks or other links of its own")
    return _changed(topology, checked, _degraded)


def _degraded(machine: Topology, shares: Mapping[tuple[int, ...], float]) -> Topology:
    before: Counter[int] = Counter()

    def slower(u: int, v: int, link: Link) -> tuple[int, int, Link]:
        share = min(shares.get((end,), 1.0) for end in (u, v))
        if share == 1.0 or link.kind not in _OF_GPUS:
            return u, v, link
        first = (
            before[u] if v >= machine.num_gpus else 0
        )  # one lane less is one less over all switches together
        before[u] = first + link.lanes
        lanes = round((first + link.lanes) * share) - round(first * share)
        return u, v, Link(link.kind, max(1, lanes), rounded(link.gb_per_s * share))

    return replace(
        machine,
        links=tuple([slower(*entry) for entry in machine.links]),
        component_links=tuple([slower(*entry) for entry in machine.component_links]),
    )


def _changed(
    topology: Topology,
    values: Mapping[tuple[int, ...], Value],
    change: Callable[[Topology, Mapping[tuple[int, ...], Value]], Topology],
) -> Topology:
    """Return the topology with `change` applied to each machine of these GPUs, with its values and its own numbers."""
    if topology.tiling is None:
        return change(topology, values)
    values_of: dict[int, dict[tuple[int, ...], Value]] = {}
    for gpus, value in values.items():
        places = [_place(topology, gpu) for gpu in gpus]
        values_of.setdefault(places[0][0], {})[tuple(own for _, own in places)] = value
    machines = {machine: change(topology.template(machine), own) for machine, own in values_of.items()}
    return replace(topology, tiling=topology.tiling.with_machines(machines))


def _place(topology: Topology, gpu: int) -> tuple[int, int]:
    """Return the number of the machine of a GPU in a cluster, and the GPU's number there."""
    if topology.tiling is None:
        return 0, gpu
    machine = int(topology.machine_of[gpu])
    return machine, gpu - topology.tiling.offsets[machine]
