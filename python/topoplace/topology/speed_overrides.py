"""Other speeds for the links of a topology: from the link catalogue, from the caller, or measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from topoplace import _checks
from topoplace.errors import TopologyError
from topoplace.topology import level_ports
from topoplace.topology.links.link_kinds import (
    NONE,
    NVLINKS,
    PATH_KINDS,
    SPEEDS,
    Link,
    LinkKind,
    LinkSpeed,
    nvlink_of,
    path,
    rounded,
    xgmi_of,
)
from topoplace.topology.routing import nvswitches

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from topoplace.topology.fabric import Level
    from topoplace.topology.topology import Topology

Column = Literal["nominal", "achievable"]
Speeds: TypeAlias = "Column | Mapping[LinkKind, float] | ArrayLike"
Entry = tuple[int, int, Link]

_BY_MODEL = (LinkKind.NVLINK, LinkKind.NVSWITCH)
_OF_THE_RULE = (LinkKind.HOST, LinkKind.SYSTEM)
_COLUMNS: tuple[Column, ...] = ("nominal", "achievable")


def speeds_of(topology: Topology) -> str:
    """Return the column of `topoplace.links.SPEEDS` that the links' speeds match: "nominal", "achievable" or neither.

    "given" means that not all direct links match one column, as after a measurement, or that the table has no figure
    for any link. "assumed" means that there are only unknown links and paths through the host, at the speed of their
    class.
    """
    levels = topology.levels
    if any(level.kind is LinkKind.NVSWITCH and level.gb_per_s for level in levels):
        return "given"
    for column in _COLUMNS:
        found = [
            _of_table(template, u, v, link, column) == link.gb_per_s
            for template in topology.templates
            for u, v, link in _fast_links(template)
        ]
        if found and all(found):
            return column
    return "assumed" if all(map(_is_assumed, topology.templates)) else "given"


def _is_assumed(machine: Topology) -> bool:
    """Return True if a machine has links without components, all at the speed assumed of an unknown or a host path."""
    speeds = {kind: path(kind, machine.default) for kind in PATH_KINDS if machine.default}
    speeds[LinkKind.UNKNOWN] = Link(LinkKind.UNKNOWN, 1, machine.default)
    links = {link for _, _, link in machine.links}
    return bool(links) and not machine.components and all(link == speeds.get(link.kind) for link in links)


def with_link_speeds(topology: Topology, speeds: Speeds) -> Topology:
    """Return a copy of the topology with other link speeds.

    speeds: one of
    - "nominal" or "achievable", a column of the table `topoplace.links.SPEEDS`;
    - GB/s of one link in one direction by kind, such as {LinkKind.NVSWITCH: 21.5, LinkKind.HOST: 20.0}, where NVSWITCH
    also covers an NVLink into a switch;
    - an (n, n) matrix of measured GB/s, which replaces the speed of every pair and keeps its kind.
    Raises TopologyError if the table has no figure for a link, if no link has a given kind, or if the matrix is not
    symmetric.
    """
    if isinstance(speeds, str):
        for column in _COLUMNS:
            if speeds == column:
                return _from_table(topology, column)
        raise TopologyError(f"speeds = {_checks.shown(speeds)} is none of {', '.join(_COLUMNS)}")
    if not isinstance(speeds, Mapping):
        return _measured(topology, speeds)
    given = cast("Mapping[Any, Any]", speeds)
    for kind in given:
        _checks.instance(kind, LinkKind, "a key of speeds", TopologyError)
    return _from_mapping(
        topology,
        {
            kind: _checks.positive(gb_per_s, f"speeds[{kind.name}]", TopologyError)
            for kind, gb_per_s in given.items()
        },
    )


# ---- speeds from the table -------------------------------------------------------------------------------------


def _from_table(topology: Topology, column: Column) -> Topology:
    if topology.tiling is None:
        return _machine_from_table(topology, column)
    levels = [
        replace(level, gb_per_s=_port_of_table(topology, level, column))
        if level.kind is LinkKind.NVSWITCH
        else level
        for level in topology.tiling.fabric.levels
    ]
    tiling = topology.tiling.changed(lambda template: _machine_from_table(template, column), levels)
    return replace(topology, tiling=tiling)


def _port_of_table(cluster: Topology, level: Level, column: Column) -> float | None:
    """Return GB/s of a GPU's port into an NVSWITCH level by the link catalogue.

    None if the machines have NVSwitches of their own, whose links then decide the speed.
    """
    members = _members(cluster, level)
    if _follows_switches(members):
        return None
    ports: set[float] = set()
    for machine in members:
        speed = nvlink_of(machine.gpus[0].model or "")
        gb_per_s = speed and (speed.nominal_gb_per_s if column == "nominal" else speed.achievable_gb_per_s)
        if not speed or not gb_per_s:
            raise TopologyError(
                f"level {_checks.shown(level.name)}: the table has no {column} figure for {machine.gpus[0].model}"
            )
        ports.add(rounded(gb_per_s * speed.most_links))
    return min(ports, default=None)


def _members(cluster: Topology, level: Level) -> list[Topology]:
    """Return the templates of the machines that are in a domain of `level`."""
    return [cluster.templates[number] for number in level_ports.members(level, cluster.template_of)]


def _follows_switches(machines: Iterable[Topology]) -> bool:
    """Return True if any machine has NVSwitches or links of kind NVSWITCH inside it."""
    for machine in machines:
        pairs = combinations(range(machine.num_gpus), 2)
        if nvswitches(machine.num_gpus, machine.components) or any(
            machine.link(u, v).kind is LinkKind.NVSWITCH for u, v in pairs
        ):
            return True
    return False


def _machine_from_table(topology: Topology, column: Column) -> Topology:
    def speed(u: int, v: int, link: Link) -> float:
        if not _in_table(link):
            return link.gb_per_s
        gb_per_s = _of_table(topology, u, v, link, column)
        if gb_per_s is None:
            raise TopologyError(
                f"links ({u}, {v}): the table has no {column} figure for {link.kind.name} of {_models(topology, u, v)}"
            )
        return gb_per_s

    return replace(
        topology,
        links=_at(topology.links, speed),
        component_links=_at(topology.component_links, speed),
        assumed=(),
    )


# ---- speeds from the caller ------------------------------------------------------------------------------------


def _from_mapping(topology: Topology, lanes: Mapping[LinkKind, float]) -> Topology:
    used: set[LinkKind] = set()
    if topology.tiling is None:
        found = _machine_from_mapping(topology, lanes, used)
    else:
        used |= {level.kind for level in topology.tiling.fabric.levels}
        used |= {LinkKind.NETWORK} if topology.network else set()
        network = lanes.get(LinkKind.NETWORK, topology.network) if topology.network else 0.0
        levels = list(_levels_from_mapping(topology, lanes))
        tiling = topology.tiling.changed(
            lambda template: _machine_from_mapping(template, lanes, used), levels
        )
        found = replace(topology, tiling=tiling, network=network)
    for kind in lanes:
        if kind not in used:
            raise TopologyError(f"speeds[{kind.name}]: {topology.name} has no link of that kind")
    return found


def _levels_from_mapping(cluster: Topology, lanes: Mapping[LinkKind, float]) -> Iterator[Level]:
    """Yield the levels of `cluster`, some with a new speed; `lanes` has GB/s of one lane by kind of link.

    A level gets a new speed if its kind is in `lanes`, and if its present speed is its own or that of a GPU model.
    Other levels take their speed from the network or from NVSwitches inside the machines.
    """
    levels = cluster.levels
    for level, link in zip(levels, cluster.pairs.of_levels, strict=True):
        own = level.gb_per_s is not None
        if level.kind is LinkKind.NVSWITCH:
            own = own or not _follows_switches(_members(cluster, level))
        changes = own and level.kind in lanes
        yield replace(level, gb_per_s=rounded(lanes[level.kind] * link.lanes)) if changes else level


def _machine_from_mapping(
    topology: Topology, lanes: Mapping[LinkKind, float], used: set[LinkKind]
) -> Topology:
    switches = nvswitches(topology.num_gpus, topology.components)

    def speed(u: int, v: int, link: Link) -> float:
        kind = (
            LinkKind.NVSWITCH if LinkKind.NVSWITCH in lanes and not switches.isdisjoint((u, v)) else link.kind
        )
        used.add(kind)
        return rounded(lanes[kind] * link.lanes) if kind in lanes else link.gb_per_s

    ruled = tuple(_ruled(topology, lanes))
    used |= {link.kind for _, _, link in ruled}
    linked = (*topology.links, *(entry for entry in ruled if entry[2].kind not in lanes))
    own = tuple(entry for entry in ruled if entry[2].kind in lanes and entry[2].kind is not LinkKind.HOST)
    ahead = LinkKind.HOST in lanes and LinkKind.HOST in {link.kind for _, _, link in ruled}
    return replace(
        topology,
        default=lanes[LinkKind.HOST] if ahead else topology.default,
        network=lanes.get(LinkKind.NETWORK, topology.network) if topology.network else 0.0,
        links=_at((*linked, *own), speed),
        component_links=_at(topology.component_links, speed),
        assumed=tuple(kind for kind in topology.assumed if kind not in lanes),
    )


def _ruled(topology: Topology, lanes: Mapping[LinkKind, float]) -> Iterator[Entry]:
    """Yield (u, v, link) of each pair that has its default link inside a machine, of kind HOST or SYSTEM.

    Yield nothing if `lanes` has a speed for neither kind.
    """
    if LinkKind.HOST not in lanes and LinkKind.SYSTEM not in lanes:
        return
    direct = {pair[:2] for pair in topology.links}
    for u, v in combinations(range(topology.num_gpus), 2):
        link = topology.pairs.default_link(u, v)
        if link.kind in _OF_THE_RULE and (u, v) not in direct and link == topology.link(u, v):
            yield u, v, link


def _measured(topology: Topology, speeds: ArrayLike) -> Topology:
    matrix = _checks.symmetric_matrix(speeds, "speeds", TopologyError)
    if topology.fabric is not None:
        raise TopologyError("speeds is a matrix; a cluster takes one for each machine before they are joined")
    if len(matrix) != topology.num_gpus:
        raise TopologyError(f"speeds has shape {matrix.shape} for {topology.num_gpus} GPUs")
    rows: list[list[float]] = matrix.tolist()

    def link(u: int, v: int) -> Link:
        known = topology.link(u, v)
        kind = LinkKind.UNKNOWN if known == NONE else known.kind
        return Link(kind, known.lanes or 1, rows[u][v]) if rows[u][v] else NONE

    pairs = combinations(range(topology.num_gpus), 2)
    return replace(topology, links=tuple((u, v, link(u, v)) for u, v in pairs), assumed=())


def _at(links: Any, speed: Callable[[int, int, Link], float]) -> tuple[Entry, ...]:
    return tuple(
        (u, v, link if link == NONE else Link(link.kind, link.lanes, speed(u, v, link)))
        for u, v, link in links
    )


# ---- the table -------------------------------------------------------------------------------------------------


def _in_table(link: Link) -> bool:
    return link.kind in NVLINKS or link.kind in (LinkKind.NVSWITCH, LinkKind.XGMI)


def _fast_links(topology: Topology) -> Iterator[Entry]:
    for u, v, link in (*topology.links, *topology.component_links):
        if _in_table(link):
            yield u, v, link


def _of_table(topology: Topology, u: int, v: int, link: Link, column: Column) -> float | None:
    """Return GB/s of all lanes of `link` in a column of the link catalogue; None if the catalogue has no figure.

    The figure is that of the GPU models at u and v, if known, else that of the link's kind.
    """
    models = [topology.gpus[i].model for i in (u, v) if i < topology.num_gpus]
    known = [found for model in models if (found := _of_model(model, link.kind))]
    if len(known) < max(len(models), 1):
        known = [SPEEDS[link.kind.value]] if link.kind in NVLINKS and link.kind not in _BY_MODEL else []
    figures = [
        speed.nominal_gb_per_s if column == "nominal" else speed.achievable_gb_per_s for speed in known
    ]
    lane = min((figure for figure in figures if figure is not None), default=None)
    return None if lane is None else rounded(lane * link.lanes)


def _of_model(model: str | None, kind: LinkKind) -> LinkSpeed | None:
    if model is None:
        return None
    speed = xgmi_of(model) if kind is LinkKind.XGMI else nvlink_of(model)
    return speed if speed and (kind in _BY_MODEL or speed.kind is kind) else None


def _models(topology: Topology, u: int, v: int) -> str:
    return " and ".join(str(topology.gpus[i].model) for i in (u, v) if i < topology.num_gpus)
