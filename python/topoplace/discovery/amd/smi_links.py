"""The connection of each pair of GPUs in the tables of AMD's tools: a direct link, a path over xGMI, or over PCIe."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations

from topoplace.discovery.amd import models
from topoplace.discovery.amd.models import Entry
from topoplace.topology.devices import Gpu, path_kind
from topoplace.topology.links.link_kinds import PATH_KINDS, Link, LinkKind, LinkSpeed, assumed_paths, path

Columns = Mapping[str, Sequence[str]]
"""The cells of each table, by subject, in the order of `combinations(gpus, 2)`."""
Cell = tuple[str, str, str, str]
"""Weight, type, bandwidth and hops of a pair, as printed; N/A if missing."""

_SUBJECTS = ("weight", "type", "bandwidth", "hops")
_CLOSED = ("DISABLED", "False")
"""Cells of the table of access for a pair whose link is not in use."""
_MAX_SHOWN = 8
_ACROSS_SOCKETS = 3
"""The number of hops between two GPUs of different sockets; 2 means one CPU."""


def read(
    gpus: Sequence[Gpu], columns: Columns, speed: LinkSpeed | None, pcie_gb_per_s: float
) -> tuple[list[Entry], list[str]]:
    """Return the link of every pair that the tables describe, and notes.

    speed: the speed of an xGMI link without a stated bandwidth; None if the GPUs' model is unknown.
    """
    pairs = list(combinations(range(len(gpus)), 2))
    if columns.keys().isdisjoint(_SUBJECTS):
        link = Link(LinkKind.UNKNOWN, 1, pcie_gb_per_s)
        note = (
            f"Neither weights nor types nor bandwidths: xGMI is not given, {pcie_gb_per_s:g} GB/s is assumed."
        )
        return [(u, v, link) for u, v in pairs], [note] if pairs else []
    cells = dict(zip(pairs, _cells(columns, len(pairs)), strict=True))
    lane = speed or models.SLOWEST_XGMI
    link_of = cache(_direct_reader(lane))
    direct = [(u, v, link_of(cell)) for (u, v), cell in cells.items() if _is_direct(cell)]
    others = list(_others(gpus, cells, direct, lane, pcie_gb_per_s))
    kinds = [link.kind for _, _, link in others]
    notes = [
        *_notes(cells.values(), speed),
        *models.relay_notes(kinds.count(LinkKind.XGMI_RELAYED), len(pairs)),
        *_more_notes(columns),
        *_access_notes(gpus, columns),
    ]
    if paths := [kind for kind in PATH_KINDS if kind in kinds]:
        notes.append(f"The speed of PCIe is not given: {assumed_paths(pcie_gb_per_s, paths)}.")
    return [*direct, *others], notes


def _others(
    gpus: Sequence[Gpu],
    cells: Mapping[tuple[int, int], Cell],
    direct: Sequence[Entry],
    lane: LinkSpeed,
    pcie_gb_per_s: float,
) -> Iterator[Entry]:
    """Yield the link of every pair that is not in `direct`: over the xGMI links of other GPUs, or over PCIe."""
    ways = {(u, v): (steps, width) for u, v, steps, width in models.relays(direct)}
    for (u, v), cell in cells.items():
        steps, width = ways.get((u, v), (0, lane.gb_per_s))
        if _is_direct(cell):
            continue
        if _is_relayed(cell, steps):
            yield u, v, Link(LinkKind.XGMI_RELAYED, 1, width)
        else:
            yield u, v, path(_path_kind(gpus[u], gpus[v], cell), pcie_gb_per_s)


def assumed(links: Sequence[Entry], columns: Columns, speed: LinkSpeed | None) -> tuple[LinkKind, ...]:
    """Return the kinds of xGMI links in `links` whose speed is a guess, as neither bandwidth nor model is stated."""
    silent = speed is None and any(map(_is_silent, _cells(columns, len(next(iter(columns.values()), ())))))
    found = {link.kind for _, _, link in links}
    return tuple(kind for kind in (LinkKind.XGMI, LinkKind.XGMI_RELAYED) if silent and kind in found)


def _cells(columns: Columns, count: int) -> Iterator[Cell]:
    """Yield the cell of each pair; a pair without access is one of PCIe, whatever link it has."""
    for cell, access in zip(_printed(columns, count), _access(columns, count), strict=True):
        weight, _, _, hops = cell
        yield (weight, "PCIE", "N/A", hops) if access in _CLOSED else cell


def _printed(columns: Columns, count: int) -> Iterator[Cell]:
    unknown = ["N/A"] * count
    weights, types, bandwidths, hops = (columns.get(subject, unknown) for subject in _SUBJECTS)
    return zip(weights, types, bandwidths, hops, strict=True)


def _access(columns: Columns, count: int) -> Sequence[str]:
    """Return the access of each pair; N/A counts as none where the tool tells that other pairs have it."""
    access = columns.get("access", ["N/A"] * count)
    if {"ENABLED", "True"}.isdisjoint(access):
        return access
    return ["DISABLED" if cell == "N/A" else cell for cell in access]


def _direct_reader(lane: LinkSpeed) -> Callable[[Cell], Link]:
    """Return a function from the cell of a direct xGMI link to the link; `lane` is one of an unknown bandwidth."""

    def link_of(cell: Cell) -> Link:
        least, _, most = cell[2].partition("-")
        if most.isdigit() and int(most):
            return models.xgmi_link(int(least), int(most))
        return Link(LinkKind.XGMI, 1, lane.gb_per_s)

    return link_of


def _is_direct(cell: Cell) -> bool:
    """Return True if `cell` shows an xGMI link that joins its two GPUs without another GPU between them."""
    weight, kind, bandwidth, hops = cell
    if kind == "PCIE":
        return False
    if weight != "N/A":
        return int(weight) <= models.XGMI_WEIGHT
    if bandwidth != "N/A":
        return not bandwidth.endswith("-0")
    return kind == "XGMI" or (kind == "N/A" and hops == "1")


def _is_relayed(cell: Cell, steps: int) -> bool:
    """Return True if `cell`, not of a direct link, shows xGMI by way of other GPUs.

    steps: the xGMI links on the way between its GPUs; 0 if there is no such way.
    """
    weight, kind, _, _ = cell
    if kind != "N/A":
        return kind == "XGMI"
    if weight != "N/A":
        return steps > 0 and int(weight) % models.XGMI_WEIGHT == 0  # the tool's way may be longer
    return steps > 0


def _path_kind(a: Gpu, b: Gpu, cell: Cell) -> LinkKind:
    """Return SYSTEM if weight, hops or NUMA nodes show that a path over PCIe is across sockets, else HOST."""
    weight, _, _, hops = cell
    heavy = weight != "N/A" and int(weight) > 2 * models.PCIE_WEIGHT
    long = hops != "N/A" and int(hops) >= _ACROSS_SOCKETS
    return LinkKind.SYSTEM if heavy or long else path_kind(a, b)


def _is_silent(cell: Cell) -> bool:
    """Return True if `cell` shows an xGMI link without its bandwidth."""
    return _is_direct(cell) and cell[2].endswith(("N/A", "-0"))


def _notes(cells: Collection[Cell], speed: LinkSpeed | None) -> Iterator[str]:
    """Yield a note about links whose speed is assumed."""
    silent = sum(map(_is_silent, cells))
    if silent and speed is None:
        direct = sum(map(_is_direct, cells))
        gb_per_s = models.SLOWEST_XGMI.gb_per_s
        yield f"{silent} of {direct} xGMI links have no speed: {gb_per_s:g} GB/s is assumed; see gpu_model."


def _more_notes(columns: Columns) -> Iterator[str]:
    given = {*_SUBJECTS} & columns.keys()
    if "XGMI" in columns.get("type", ()) and given <= {"type", "hops"}:
        yield "Types alone do not state direct links: every XGMI pair is taken as one link."
    if given == {"hops"} and "1" in columns["hops"]:
        yield "Hops alone do not state direct links: every pair of one hop is taken as one xGMI link."


def _access_notes(gpus: Sequence[Gpu], columns: Columns) -> Iterator[str]:
    """Yield notes on the pairs without access, and by name on those of xGMI that lack it, or may lack it."""
    if not (count := len(columns.get("access", ()))):
        return
    access = _access(columns, count)
    if closed := sum(cell in _CLOSED for cell in access):
        yield f"{closed} of {count} pairs have no peer access."
    pairs = zip(combinations(gpus, 2), _printed(columns, count), access, strict=True)
    found = [
        (f"{a.name} and {b.name}", state)
        for (a, b), cell, state in pairs
        if cell[1] == "XGMI" or _is_direct(cell)
    ]
    if disabled := [names for names, state in found if state in _CLOSED]:
        yield f"xGMI is disabled, and the path is over PCIe, between {_some(disabled)}."
    if unsure := [names for names, state in found if state == "N/A"]:
        yield f"Whether xGMI is enabled is not given, and it counts, between {_some(unsure)}."


def _some(pairs: Sequence[str]) -> str:
    left = len(pairs) - _MAX_SHOWN
    return "; ".join(pairs[:_MAX_SHOWN]) + (f"; and {left} more pairs" if left > 0 else "")
