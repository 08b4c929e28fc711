"""Other speeds for the links of a topology: of the table, of the caller, or measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from topoplace import _checks
from topoplace.errors import TopologyError
from topoplace.links import DECIMALS, NONE, NVLINKS, SPEEDS, Link, LinkKind, LinkSpeed, nvlink_of, xgmi_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from topoplace.topology import Topology

Column = Literal["nominal", "achievable"]
Speeds: TypeAlias = "Column | Mapping[LinkKind, float] | ArrayLike"
Entry = tuple[int, int, Link]

_BY_MODEL = (LinkKind.NVLINK, LinkKind.NVSWITCH)


_COLUMNS: tuple[Column, ...] = ("nominal", "achievable")


def basis(topology: Topology) -> str:
    """Which column of the table all links between GPUs have, or "given"; paths through the host do not count."""
    for column in _COLUMNS:
        found = [
            _of_table(template, u, v, link, column) == link.gbps
            for template in topology.templates
            for u, v, link in _fast_links(template)
        ]
        if found and all(found):
            return column
    return "given"


def changed(topology: Topology, speeds: Speeds) -> Topology:
    """`topology` at other speeds; see `Topology.with_link_speeds`."""
    if isinstance(speeds, str):
        if speeds not in _COLUMNS:
            raise TopologyError(f"speeds = {_checks.shown(speeds)} is none of {', '.join(_COLUMNS)}")
        column = _COLUMNS[_COLUMNS.index(speeds)]
        return topology.with_templates(lambda template: _from_table(template, column))
    if isinstance(speeds, Mapping):
        given = cast("Mapping[Any, Any]", speeds)
        for kind in given:
            _checks.instance(kind, LinkKind, "a key of speeds", TopologyError)
        lanes = {
            kind: _checks.positive(gbps, f"speeds[{kind.name}]", TopologyError)
            for kind, gbps in given.items()
        }
        return topology.with_templates(lambda template: _from_mapping(template, lanes))
    return _measured(topology, speeds)


def _from_table(topology: Topology, column: Column) -> Topology:
    def speed(u: int, v: int, link: Link) -> float:
        if not _in_table(link):
            return link.gbps
        gbps = _of_table(topology, u, v, link, column)
        if gbps is None:
            raise TopologyError(
                f"links ({u}, {v}): the table has no {column} figure for {link.kind.name} of {_models(topology, u, v)}"
            )
        return gbps

    return replace(
        topology,
        links=_at(topology.links, speed),
        component_links=_at(topology.component_links, speed),
    )


def _from_mapping(topology: Topology, lanes: Mapping[LinkKind, float]) -> Topology:
    def speed(_u: int, _v: int, link: Link) -> float:
        return round(lanes[link.kind] * link.lanes, DECIMALS) if link.kind in lanes else link.gbps

    ruled = (
        () if topology.components else _ruled(topology, LinkKind.SYSTEM if LinkKind.SYSTEM in lanes else None)
    )
    return replace(
        topology,
        default=lanes.get(LinkKind.HOST, topology.default),
        network=lanes.get(LinkKind.NETWORK, topology.network),
        links=_at((*topology.links, *ruled), speed),
        component_links=_at(topology.component_links, speed),
    )


def _ruled(topology: Topology, kind: LinkKind | None) -> Iterator[Entry]:
    """The pairs of `kind` that have no link of their own."""
    if kind is None:
        return
    known = {pair[:2] for pair in topology.links}
    for u in range(topology.num_gpus):
        for v in range(u + 1, topology.num_gpus):
            if (u, v) not in known and (link := topology.link_kind(u, v)) == kind:
                yield u, v, link


def _measured(topology: Topology, speeds: ArrayLike) -> Topology:
    matrix = _checks.symmetric_matrix(speeds, "speeds", TopologyError)
    if topology.fabric is not None:
        raise TopologyError("speeds is a matrix; a cluster takes one for each machine before they are joined")
    if len(matrix) != topology.num_gpus:
        raise TopologyError(f"speeds has shape {matrix.shape} for {topology.num_gpus} GPUs")
    rows: list[list[float]] = matrix.tolist()

    def link(u: int, v: int) -> Link:
        known = topology.link_kind(u, v)
        kind = LinkKind.UNKNOWN if known == NONE else known.kind
        return Link(kind, known.lanes or 1, rows[u][v]) if rows[u][v] else NONE

    n = topology.num_gpus
    return replace(topology, links=tuple((u, v, link(u, v)) for u in range(n) for v in range(u + 1, n)))


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
    """GB/s of `link` between vertices u and v as the table has it; a known model decides where the kind does not."""
    models = [topology.gpus[i].model for i in (u, v) if i < topology.num_gpus]
    known = [found for model in models if (found := _of_model(model, link.kind))]
    if len(known) < max(len(models), 1):
        known = [SPEEDS[link.kind.value]] if link.kind in NVLINKS and link.kind not in _BY_MODEL else []
    figures = [speed.nominal_gbps if column == "nominal" else speed.achievable_gbps for speed in known]
    lane = min((figure for figure in figures if figure is not None), default=None)
    return None if lane is None else round(lane * link.lanes, DECIMALS)


def _of_model(model: str | None, kind: LinkKind) -> LinkSpeed | None:
    if model is None:
        return None
    speed = xgmi_of(model) if kind is LinkKind.XGMI else nvlink_of(model)
    return speed if speed and (kind in _BY_MODEL or speed.kind is kind) else None


def _models(topology: Topology, u: int, v: int) -> str:
    return " and ".join(str(topology.gpus[i].model) for i in (u, v) if i < topology.num_gpus)
