"""The machine or cluster of a state, with its GPUs in use and faults, and its job."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from topoplace import discovery, machines
from topoplace._similar_names import did_you_mean
from topoplace.cli import gpu_list, job_options, options, reading
from topoplace.cli.explorer.state import State
from topoplace.cluster.cluster import Cluster
from topoplace.drawing.wires import direct_links
from topoplace.jobs.job_graph import JobGraph
from topoplace.topology.devices import ComponentKind
from topoplace.topology.fabric import Fabric
from topoplace.topology.links.link_kinds import Link
from topoplace.topology.topology import Topology

MAX_GPUS: Final = 100_000
"""Limit on the GPUs of a topology on the page, which draws a tile for each machine."""
MAX_TASKS: Final = 1024
"""Limit on the tasks of a job on the page, which must answer at once."""
FABRICS: Final[Mapping[str, tuple[dict[str, int], dict[str, dict[str, Any]]]]] = {
    "": ({}, {}),
    "leaves of 4, spine 2:1": ({"leaf": 4, "spine": 0}, {"spine": {"oversubscription": 2.0}}),
    "racks of 2, leaves of 8, spine 2:1": (
        {"rack": 2, "leaf": 8, "spine": 0},
        {"leaf": {"oversubscription": 2.0}, "spine": {"oversubscription": 4.0}},
    ),
    "rails of 4, spine 2:1": (
        {"leaf": 4, "spine": 0},
        {"leaf": {"rail": True}, "spine": {"oversubscription": 2.0}},
    ),
}
"""Machines per domain of each level, 0 for all of them, and fields of the levels, by the names of fabrics."""
_SWITCHES: Final = "nvswitch"
_CHANGE: Final = re.compile(rf"\s*([0-9]{{1,9}})\s*-\s*([0-9]{{1,9}}|{_SWITCHES})\s*=\s*(\w+)\s*")
_Ends = tuple[int, int | None]
"""A GPU, and the GPU at the other end of a link; None for NVSwitches."""
_HALF, _LOST = "half", "lost"
_LINE: Final = re.compile(r"\bline (\d+)")


class FieldError(Exception):
    """A text of the state is wrong; the page shows the message next to the field."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field, self.message = field, message


@dataclass(frozen=True, eq=False)
class Condition:
    """A cluster with the GPUs in use, and the GPUs that the job must get; read-only."""

    cluster: Cluster
    busy: Sequence[int]
    pinned: Sequence[int]


# ---- the machine -----------------------------------------------------------------------------------------------


def whole(state: State, own: Topology | None) -> Topology:
    """Return the topology of a state without faults; own: the topology given to the command, or None."""
    field = "text" if state.text else "machine"
    if state.text:
        one = _read(state.text, state.gpu_model)
    elif state.machine:
        one = _built_in(state.machine)
    elif own is None:
        raise FieldError(field, "choose a machine, or paste the output of a tool")
    else:
        one = own
    if state.count * one.num_gpus > MAX_GPUS:
        what = f"{state.count * one.num_gpus:,} GPUs: the page shows up to {MAX_GPUS:,}"
        raise FieldError("count" if state.count > 1 else field, what)
    return one if state.count == 1 else _several(one, state.count, state.fabric)


@lru_cache(maxsize=32)
def _built_in(name: str) -> Topology:
    if name not in machines.names():
        hint = did_you_mean(name, machines.names())
        raise FieldError("machine", f"{name[:60]!r} is no built-in machine" + (hint and f"; {hint}"))
    return machines.get(name)


@lru_cache(maxsize=8)
def _read(text: str, gpu_model: str) -> Topology:
    assumed = {"gpu_model": gpu_model} if gpu_model else {}
    try:
        found = discovery.format_of(text).parse(text, **assumed)
        return reading.with_gpus(found, "the text")
    except ValueError as error:
        raise FieldError("text", str(error).splitlines()[0]) from None


def fabric_of(count: int, name: str) -> tuple[dict[str, int], dict[str, dict[str, Any]]]:
    """Return the machines per domain of each level of a fabric, and the fields of levels that differ from defaults."""
    if name not in FABRICS:
        raise FieldError("fabric", f"{name[:60]!r} is not one of {', '.join(FABRICS)}")
    sizes, changes = FABRICS[name]
    return {level: size or count for level, size in sizes.items()}, changes


@lru_cache(maxsize=8)
def _several(one: Topology, count: int, fabric: str) -> Topology:
    sizes, changes = fabric_of(count, fabric)
    joined = Fabric.regular(count, sizes)
    for level, fields in changes.items():
        joined = joined.with_level(level, **fields)
    try:
        return Topology.cluster(one, count, fabric=joined)
    except ValueError as error:
        raise FieldError("count", f"{count} of {one.name}: {error}") from None


def line_of(text: str, message: str) -> dict[str, Any] | None:
    """Return the number and the content of the line of `text` that a message names; None if it names no line."""
    found = _LINE.search(message)
    lines = text.splitlines()
    if found is None or not 1 <= int(found[1]) <= len(lines):
        return None
    return {"number": int(found[1]), "text": lines[int(found[1]) - 1][:400]}


@lru_cache(maxsize=64)
def faulty(topology: Topology, unhealthy: str, links: str) -> Topology:
    """Return the topology with the faults that two texts of a state list; FieldError names a wrong one."""
    changed = _with_links(topology, links) if links.strip() else topology
    gpus = _gpus("unhealthy", unhealthy, topology)
    return changed.with_unhealthy(gpus) if gpus else changed


def _with_links(topology: Topology, text: str) -> Topology:
    by_machine: dict[int, dict[_Ends, str]] = {}
    for u, v, how in _changes(text, topology):
        machine = int(topology.machine_of[u]) if topology.tiling else 0
        local = topology.local_index if topology.tiling else range(topology.num_gpus)
        by_machine.setdefault(machine, {})[local[u], None if v is None else local[v]] = how
    changed = {
        machine: _relinked(topology.template(machine) if topology.tiling else topology, changes, machine)
        for machine, changes in by_machine.items()
    }
    if topology.tiling is None:
        return changed[0]
    return replace(topology, tiling=topology.tiling.with_machines(changed))


def _changes(text: str, topology: Topology) -> Iterator[tuple[int, int | None, str]]:
    """Yield the smaller GPU, the larger one or None for NVSwitches, and "half" or "lost" for each entry of `links`."""
    for entry in text.split(","):
        found = _CHANGE.fullmatch(entry)
        if found is None or found[3] not in (_HALF, _LOST):
            raise FieldError("links", f"links: {entry.strip()[:60]!r} is not as 0-3=half or 0-3=lost")
        is_port = found[2] == _SWITCHES
        u, v = sorted((int(found[1]), int(found[1] if is_port else found[2])))
        if v >= topology.num_gpus:
            raise FieldError("links", f"links: GPU {v}: the GPUs are 0..{topology.num_gpus - 1}")
        if is_port:
            yield u, None, found[3]
            continue
        if u == v or (topology.tiling and topology.machine_of[u] != topology.machine_of[v]):
            raise FieldError("links", f"links: {u}-{v} is no link inside a machine")
        yield u, v, found[3]


def _relinked(machine: Topology, changes: Mapping[_Ends, str], number: int) -> Topology:
    """Return a machine with some links halved or lost; FieldError for one that it has not."""
    into_switches = [(a, None) if _is_port(machine, a, b) else (a, b) for a, b, _ in machine.component_links]
    known = {*((u, v) for u, v, _ in direct_links(machine)), *into_switches}
    for u, v in changes:
        if (u, v) not in known:
            where = f" of machine {number}" if number else ""
            lacks = (
                f"GPU {u}{where} has no link to a switch that is listed"
                if v is None
                else f"GPUs {u} and {v}{where} have no direct link"
            )
            raise FieldError("links", f"links: {lacks}")
    ends = [(u, v) for u, v, _ in machine.links]
    return replace(
        machine,
        links=tuple(_changed(machine.links, ends, changes)),
        component_links=tuple(_changed(machine.component_links, into_switches, changes)),
    )


def _is_port(machine: Topology, a: int, b: int) -> bool:
    """Return True for the vertices of a GPU and of an NVSwitch."""
    n = machine.num_gpus
    return a < n <= b and machine.components[b - n].kind is ComponentKind.NVSWITCH


def _changed(
    links: Iterable[tuple[int, int, Link]], ends: Iterable[_Ends], changes: Mapping[_Ends, str]
) -> Iterator[tuple[int, int, Link]]:
    """Yield the links that are left; ends: what `changes` calls each."""
    for (u, v, link), called in zip(links, ends, strict=True):
        how = changes.get(called)
        if how != _LOST:
            yield u, v, _halved(link) if how == _HALF else link


def _halved(link: Link) -> Link:
    """Return a link with half of its lanes, or a single lane at half its speed."""
    lanes = link.lanes // 2 or 1
    return Link(link.kind, lanes, link.gb_per_s * (lanes / link.lanes if link.lanes > 1 else 0.5))


@lru_cache(maxsize=4)
def condition(topology: Topology, busy: str, pinned: str) -> Condition:
    """Return the cluster with the GPUs in use, and the pinned GPUs; FieldError names the field of a wrong number."""
    held, wanted = _gpus("busy", busy, topology), _gpus("pinned", pinned, topology)
    if both := sorted(set(held).intersection(wanted)):
        raise FieldError("pinned", f"GPU {both[0]} is pinned and in use")
    cluster = Cluster(topology)
    out = cluster.out_of_service()
    if lost := sorted(set(wanted).intersection(out)):
        raise FieldError("pinned", f"GPU {lost[0]} is pinned and unhealthy")
    if taken := sorted(set(held).difference(out)):
        cluster.allocate("busy", taken)
    return Condition(cluster, held, wanted)


def only_pinned(where: Condition) -> Cluster:
    """Return the cluster on which all GPUs but the pinned ones are in use."""
    cluster = Cluster(where.cluster.topology)
    others = set(range(cluster.topology.num_gpus)).difference(where.pinned, cluster.out_of_service())
    if others:
        cluster.allocate("others", sorted(others))
    return cluster


_LABELS: Final = {"busy": "in use", "unhealthy": "unhealthy", "pinned": "pinned"}


def _gpus(field: str, text: str, topology: Topology) -> list[int]:
    try:
        return gpu_list.parse(text, topology.num_gpus, _LABELS[field])
    except ValueError as error:
        message = str(error)
        raise FieldError(
            field, message if len(message) < 400 else f"{message[:120]} … {message[-120:]}"
        ) from None


# ---- the job ---------------------------------------------------------------------------------------------------


def job_flags(state: State) -> list[str]:
    """Return the options with which `topoplace place` places the job of a state."""
    flags = (
        ["--parallel", state.parallel.strip()]
        if state.parallel.strip()
        else ["--pattern", state.pattern.strip(), "--gpus", state.gpus.strip()]
    )
    if state.sensitive:
        flags.append("--sensitive")
    for group in state.groups.split():
        flags += ["--group", group]
    return flags


def job(state: State) -> JobGraph:
    """Return the job of a state; FieldError names the field of a wrong text."""
    field = "parallel" if state.parallel.strip() else "gpus"
    sizes = [
        int(number) for number in re.findall(r"\d+", state.parallel if field == "parallel" else state.gpus)
    ]
    if math.prod(sizes[:12]) > MAX_TASKS:
        raise FieldError(
            field, f"the page places jobs of up to {MAX_TASKS:,} tasks; `topoplace place` places larger ones"
        )
    arguments = _no_options()
    if field == "parallel":
        arguments.parallel = state.parallel.strip()
    else:
        arguments.pattern, arguments.gpus = state.pattern.strip(), state.gpus.strip()
    arguments.group, arguments.sensitive = state.groups.split(), state.sensitive
    try:
        return job_options.job(arguments)
    except ValueError as error:
        message = str(error)
        wrong = (
            "groups"
            if message.startswith("--group")
            else "pattern"
            if message.startswith("--pattern")
            else field
        )
        raise FieldError(wrong, message) from None


def _no_options() -> argparse.Namespace:
    """Return the options of a job at their defaults."""
    parser = options.Parser()
    job_options.add_job(parser)
    made: argparse.Namespace = parser.parse_args([])
    return made
