"""Print a topology as tiles, and as tables: its links by kind and speed, the levels of a cluster, and its notes."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from topoplace.collective import library_of, survey
from topoplace.drawing import tables, terminal
from topoplace.topology.device_numbers import in_words
from topoplace.topology.links.link_kinds import NONE, NVLINKS, Link, LinkKind
from topoplace.topology.speed_overrides import speeds_of

if TYPE_CHECKING:
    from topoplace.drawing.states import Busy
    from topoplace.topology.topology import Topology

_MAX_SHOWN = 16
"""Largest number of GPUs for which every pair's bandwidth is shown; above it, links are only counted by kind."""
_MAX_COUNTED = 1024
_MAX_RATED = 64
_MAX_SETS = 1000
_USUAL_WIDTH, _NARROWEST = 80, 40
_COLOURS = {
    LinkKind.NVSWITCH: "bright_green",
    LinkKind.C2C: "bright_green",
    LinkKind.XGMI: "green",
    LinkKind.XGMI_RELAYED: "green",
    LinkKind.ICI: "green",
    LinkKind.PCIE: "yellow",
    LinkKind.PCIE_BRIDGES: "yellow",
    LinkKind.HOST: "bright_black",
    LinkKind.HOST_BRIDGES: "bright_black",
    LinkKind.SYSTEM: "bright_black",
    LinkKind.NETWORK: "blue",
    LinkKind.NONE: "red",
    LinkKind.UNKNOWN: "red",
} | dict.fromkeys(NVLINKS, "green")


_SHADES = {
    "free": "black on white",
    "busy": "white on grey42",
    "chosen": "black on green3",
    "unhealthy": "white on dark_red",
}


def draw(topology: Topology, *, busy: Busy = (), chosen: Sequence[int] = (), piped: bool = False) -> None:
    """Print `topology` as tiles of text: see `topoplace.drawing.terminal`.

    piped: also do so if standard output is no terminal.
    """
    if not (piped or sys.stdout.isatty()):
        return
    width = shutil.get_terminal_size((_USUAL_WIDTH, 24)).columns
    drawn = terminal.lines(
        topology, busy=busy, chosen=chosen, width=max(_NARROWEST, min(_USUAL_WIDTH, width))
    )
    try:
        from rich.console import Console
        from rich.text import Text
    except ImportError:
        print(*("".join(text for text, _ in line) for line in drawn), "", sep="\n")
        return
    for line in drawn:
        Console().print(
            Text.assemble(*((text, _SHADES.get(state, "")) for text, state in line)), soft_wrap=True
        )
    print()


def show(topology: Topology) -> None:
    """Print tables that describe `topology`.

    For a cluster, they show its network levels, and each type of machine if it has more than 16 GPUs, else all links.
    """
    if topology.fabric is not None:
        _show_fabric(topology)
        if topology.num_gpus > _MAX_SHOWN:
            for template in topology.templates:
                _show_machine(template)
            return
    _show_machine(topology)


def show_links(topology: Topology) -> None:
    """Print the GB/s between each two of at most 16 GPUs; for more, the number of pairs with each kind of link."""
    if topology.num_gpus <= _MAX_SHOWN:
        _show_pairs(topology)
    else:
        print(f"pairs of GPUs by link: {wiring(topology)}")


def wiring(topology: Topology) -> str:
    """Return text with the number of GPU pairs per kind of link, fastest first: "8 NVLINK2 x2, 8 NVLINK2, 12 SYSTEM".

    "x2" is the number of lanes. Only the first 1,024 GPUs are counted.
    """
    counted = _pairs_by_link(topology)
    if not counted:
        return "-"
    return ", ".join(f"{count} {_label(link)}" for link, count in counted)


def _pairs_by_link(topology: Topology) -> list[tuple[Link, int]]:
    counted: Counter[tuple[LinkKind, int, float]] = Counter()
    for u, v in combinations(range(min(topology.num_gpus, _MAX_COUNTED)), 2):
        link = topology.link(u, v)
        counted[link.kind, link.lanes, link.gb_per_s] += 1
    found = [(Link(*key), count) for key, count in counted.items()]
    return sorted(found, key=lambda item: (-item[0].gb_per_s, item[0].kind.name, -item[0].lanes))


def _label(link: Link) -> str:
    return "none" if link == NONE else link.kind.label + (f" x{link.lanes}" if link.lanes > 1 else "")


def _show_machine(topology: Topology) -> None:
    if topology.num_gpus <= _MAX_SHOWN:
        _show_pairs(topology)
    pairs = _pairs_by_link(topology)
    rows = [
        (
            _label(link) + " (GB/s assumed)" * (link.kind in topology.assumed),
            count,
            link.gb_per_s,
            topology.distances.of(link) if link != NONE else "-",
        )
        for link, count in pairs
    ]
    colours = [_COLOURS.get(link.kind, "") for link, _ in pairs]
    models = Counter((gpu.model, gpu.parent is not None or gpu.fraction < 1) for gpu in topology.gpus)
    gpus = ", ".join(_counted(count, *model) for model, count in models.items())
    title = (
        f"{topology.name}: {gpus}; speeds: {'partly assumed' if topology.assumed else speeds_of(topology)}"
    )
    tables.show(("link", "pairs", "GB/s", "distance"), rows, title, colours)
    if topology.num_gpus > _MAX_COUNTED:
        print(f"only the pairs of the first {_MAX_COUNTED} GPUs are counted")
    _show_choice(topology)
    _show_facts(topology)


def _counted(count: int, model: str | None, is_slice: bool) -> str:
    """Return a number of equal GPUs, or of MIG slices, in words."""
    if is_slice:
        return f"{count} MIG slices of {model or 'GPUs of unknown model'}"
    return f"{count} x {model}" if model else f"{count} GPUs of unknown model"


def _show_choice(topology: Topology) -> None:
    """Print whether it matters which half of a machine's GPUs a job gets; nothing for machines without NCCL's rules."""
    size = topology.num_gpus // 2
    if topology.num_machines > 1 or not 2 <= size <= _MAX_RATED // 2 or library_of(topology) != "NCCL":
        return
    found = survey(topology, size, most_sets=_MAX_SETS)
    best, mean, worst = map(tables.number, (found.best.gb_per_s, found.mean_gb_per_s, found.worst.gb_per_s))
    host = ", with an assumed host" if found.assumed else ""
    if found.choice_matters:
        print(
            f"collectives: rings of {size} GPUs carry {best} GB/s at best, {mean} on average, {worst} at worst{host}"
        )
    else:
        print(f"collectives: rings of any {size} GPUs carry {best} GB/s{host}")


def _show_facts(topology: Topology) -> None:
    """Print what the tables of links leave out: components, adapters, partitions, health, notes."""
    parts = Counter(part.kind.value.replace("_", " ") for part in topology.components)
    for what, count in parts.items():
        print(f"{what}: {count}")
    if topology.nics:
        print(tables.plain(f"network adapters: {', '.join(nic.name for nic in topology.nics)}"))
    if topology.partitions:
        print(f"only these sets of GPUs may be given to a job: {' '.join(map(str, topology.partitions))}")
    if topology.unhealthy_gpus:
        print(tables.plain(f"unhealthy: {in_words(topology.unhealthy_gpus, topology)}"))
    for note in topology.notes:
        print(tables.plain(f"note: {note}"))


def _show_pairs(topology: Topology) -> None:
    n = topology.num_gpus
    names = [in_words([gpu], topology) for gpu in range(n)]
    rows: list[tuple[object, ...]] = []
    for u in range(n):
        cells = ["-" if u == v else tables.number(topology.bandwidth(u, v)) for v in range(n)]
        rows.append((names[u], *cells))
    shades = [
        ["", *("" if u == v else _COLOURS.get(topology.link(u, v).kind, "") for v in range(n))]
        for u in range(n)
    ]
    tables.show(
        ("", *(name.removeprefix("GPU ") for name in names)),
        rows,
        f"{topology.name}: GB/s between GPUs, one direction",
        shades,
    )


def _show_fabric(topology: Topology) -> None:
    assert topology.fabric is not None
    rows: list[tuple[object, ...]] = []
    for level, link in zip(topology.fabric.levels, topology.pairs.of_levels, strict=True):
        domains = Counter(level.domains)
        unknown = domains.pop(None, 0)
        gb_per_s = link.gb_per_s * level.oversubscription
        sizes = "-".join(map(str, sorted({min(domains.values()), max(domains.values())}))) if domains else "-"
        rows.append(
            (
                level.name,
                len(domains),
                sizes,
                unknown or "-",
                level.kind.name,
                gb_per_s,
                level.oversubscription,
            )
        )
    title = f"{topology.name}: {topology.num_machines} machines, {topology.num_gpus} GPUs"
    columns = ("level", "domains", "machines each", "in none", "kind", "GB/s", "oversubscription")
    if rows:
        tables.show(columns, rows, title)
    else:
        print(tables.plain(title))
    machines = Counter(topology.template_of)
    names = [f"{machines[i]} x {template.name}" for i, template in enumerate(topology.templates)]
    print(tables.plain(", ".join(names)))
    for note in topology.notes:
        print(tables.plain(f"note: {note}"))
