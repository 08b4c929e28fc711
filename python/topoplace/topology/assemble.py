"""Assemble machines into a cluster: collect the machines, and their domains in each level of the fabric.

A machine is also assembled here from what a text states: its links, and the sockets and NUMA nodes of its GPUs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, SupportsIndex, cast

from topoplace import _checks
from topoplace.errors import TopologyError
from topoplace.topology.devices import path_kind
from topoplace.topology.fabric import MAX_MACHINES, Fabric, Level, checked_names, numbered
from topoplace.topology.links.distance import DistanceWeights
from topoplace.topology.links.link_kinds import NETWORK_GB_PER_S, Link, LinkKind, path
from topoplace.topology.tiling import Tiling
from topoplace.topology.topology import MAX_GPUS, Topology

Machines = Topology | Sequence[Topology] | Mapping[str, Topology]
Racks = SupportsIndex | Sequence[str | None]


def with_host_paths(topology: Topology) -> Topology:
    """Return a copy with the PCIe paths that sockets and NUMA nodes imply, for a topology whose source states no such
    path.

    Each pair of a machine that has only the default link gets the path between its sockets and NUMA nodes, at the speed
    of that class; `default` is the speed of PCIe. A pair with an UNKNOWN link at the default speed, an assumed one,
    gets the path only across sockets, so that policies do not take the two as near. Readers of all formats call this
    last.
    """
    if not topology.default:
        return topology
    known = {(u, v): link for u, v, link in topology.links}
    unknown = Link(LinkKind.UNKNOWN, 1, topology.default)
    for u, v in combinations(range(topology.num_gpus), 2):
        a, b = topology.gpus[u], topology.gpus[v]
        link, kind = topology.link(u, v), path_kind(a, b)
        ruled = (u, v) not in known and link == topology.pairs.default_link(u, v)
        if a.machine == b.machine and (ruled or (link == unknown and kind is LinkKind.SYSTEM)):
            known[u, v] = path(kind, topology.default)
    return replace(topology, links=tuple((u, v, link) for (u, v), link in known.items()))


def joined(
    machines: Mapping[str, Topology], levels: tuple[Level, ...], name: str, notes: Sequence[str]
) -> Topology:
    """Return the cluster of `machines`; a single machine in no level is returned as itself, under its own name."""
    if len(machines) > 1 or levels:
        fabric = Fabric(tuple(machines), levels, name, tuple(notes))
        return Topology.cluster(machines, fabric=fabric, name=name)
    ((only, machine),) = machines.items()
    gpus = tuple(replace(gpu, machine=only) for gpu in machine.gpus)
    return replace(machine, gpus=gpus, name=name, notes=tuple(dict.fromkeys((*machine.notes, *notes))))


@dataclass(frozen=True)
class _Host:
    """One machine of the new cluster: its name, its topology, and its domain in each level of its former cluster.

    `domains` is by name of the level; {} for a machine that was in no cluster.
    """

    name: str
    machine: Topology
    domains: Mapping[str, str]


def join(
    machines: Machines,
    count: int | None,
    fabric: Fabric | None,
    racks: Racks | None,
    names: Sequence[str] | None,
    network: float | None,
    name: str,
) -> Topology:
    """Return the cluster of `machines` joined by `fabric`; see `Topology.cluster`."""
    name = _checks.text(name, "name", TopologyError)
    if fabric is not None:
        _checks.instance(fabric, Fabric, "fabric", TopologyError)
    listed = _listed(machines, count, fabric, names)
    if fabric is not None and _names_parts(fabric, listed):
        listed = [(label, part) for label, (_, part) in zip(fabric.machines, listed, strict=True)]
        fabric = _of_machines(fabric, listed)
    parts = {id(part): part for _, part in listed}.values()
    network = _network(network, parts)
    distances = _distances(parts)
    hosts, inner = _hosts(listed)
    chosen = _names(hosts, names, fabric)
    levels = _levels(hosts, inner, fabric, racks)
    notes = dict.fromkeys(
        (*(fabric.notes if fabric else ()), *(note for part in parts for note in part.notes))
    )
    whole = Fabric(chosen, tuple(levels), name)
    tiling = Tiling.of([host.machine for host in hosts], whole)
    return Topology(tiling=tiling, network=network, name=name, notes=tuple(notes), distances=distances)


def _levels(
    hosts: Sequence[_Host], inner: Iterable[Level], fabric: Fabric | None, racks: Racks | None
) -> list[Level]:
    """Return the levels of the joined clusters, of the racks if wanted, and of `fabric`, innermost first."""
    levels = [
        replace(level, domains=tuple(host.domains.get(level.name) for host in hosts)) for level in inner
    ]
    levels += fabric.levels if fabric else ()
    if racks is not None:
        first = next((i for i, level in enumerate(levels) if level.kind is LinkKind.NETWORK), len(levels))
        levels.insert(first, _rack_level(racks, len(hosts)))
    return levels


def _names_parts(fabric: Fabric, listed: Sequence[tuple[str, Topology]]) -> bool:
    """Return True if the fabric has an entry for each part, some of which consist of several machines."""
    return len(fabric.machines) == len(listed) < sum(part.num_machines for _, part in listed)


def _of_machines(fabric: Fabric, listed: Sequence[tuple[str, Topology]]) -> Fabric:
    """Return the fabric of the machines of all parts; each is in the domains of its part."""
    part_of = [i for i, (_, part) in enumerate(listed) for _ in range(part.num_machines)]
    levels = [replace(level, domains=tuple(level.domains[i] for i in part_of)) for level in fabric.levels]
    return replace(fabric, machines=tuple(host.name for host in _hosts(listed)[0]), levels=tuple(levels))


def _network(given: float | None, parts: Iterable[Topology]) -> float:
    """Return GB/s between machines that meet at no level: `given`, or the value that all clusters in `parts` have.

    Without both, the default of 12.5 GB/s.
    """
    if given is not None:
        return _checks.real(given, "network", TopologyError)
    known = {part.network for part in parts if part.fabric is not None}
    if len(known) > 1:
        raise TopologyError(f"the clusters have networks of {sorted(known)} GB/s; choose one with network=")
    return known.pop() if known else NETWORK_GB_PER_S


def _distances(parts: Iterable[Topology]) -> DistanceWeights:
    found: list[DistanceWeights] = []
    for part in parts:
        if part.distances not in found:
            found.append(part.distances)
    if len(found) > 1:
        raise TopologyError(
            "the machines have different weights of distances; use with_distances to give all the same"
        )
    return found[0]


# ---- which machines --------------------------------------------------------------------------------------------


def _listed(
    machines: Machines, count: int | None, fabric: Fabric | None, names: Sequence[str] | None
) -> list[tuple[str, Topology]]:
    """Return (name, topology) of each part of the new cluster; a part is one machine or several."""
    if isinstance(machines, Topology):
        return _copies(machines, count, names if names is not None else fabric.machines if fabric else None)
    if count is not None:
        raise TopologyError(f"count = {_checks.shown(count)}, but machines is a list already")
    given = _by_name(machines)
    if not given:
        raise TopologyError("machines has 0 entries")
    if fabric is None or (given.keys().isdisjoint(fabric.machines) and not isinstance(machines, Mapping)):
        return list(given.items())  # a list with other names: its order is that of the fabric
    for label in fabric.machines:
        if label not in given:
            raise TopologyError(f"machines has no {_checks.shown(label)}, which is in the fabric")
    known = set(fabric.machines)
    for label in given:
        if label not in known:
            raise TopologyError(f"machines has {_checks.shown(label)}, which is not in the fabric")
    return [(label, given[label]) for label in fabric.machines]


def _by_name(machines: Sequence[Topology] | Mapping[str, Topology]) -> dict[str, Topology]:
    """Return the topologies in `machines` by name.

    A mapping keeps its names. Entries of a list get the name of their first machine, or numbers if names repeat.
    """
    if isinstance(machines, Mapping):
        named = cast("Mapping[str, Any]", machines).items()
        for label, one in named:
            _checks.instance(one, Topology, f"machines[{label!r}]", TopologyError)
        return dict(named)
    found = _checks.sequence(machines, "machines", TopologyError)
    for i, one in enumerate(found):
        _checks.instance(one, Topology, f"machines[{i}]", TopologyError)
    own = [one.machine_names[0] for one in found]
    unique = len(set(own)) == len(own)
    return dict(zip(own if unique else numbered("machine", len(own)), found, strict=True))


def _copies(machine: Topology, count: int | None, names: Sequence[str] | None) -> list[tuple[str, Topology]]:
    """Return (name, `machine`) `count` times, with numbered names; if `count` is None, once for each of `names`.

    A `machine` that consists of several machines takes several of `names`.
    """
    if count is None:
        if names is None:
            raise TopologyError("count is missing: a single machine needs count, fabric or names")
        wanted = len(checked_names(names, "names"))
        count, rest = divmod(wanted, machine.num_machines)
        if rest or not count:
            raise TopologyError(
                f"{wanted} machines cannot be made of topologies of {machine.num_machines} machines; "
                f"if each of the {wanted} is such a topology, give count={wanted}"
            )
    count = _checks.integer(count, "count", TopologyError, low=1, high=MAX_MACHINES)
    if count * machine.num_gpus > MAX_GPUS:
        raise TopologyError(f"{count * machine.num_gpus} GPUs are more than {MAX_GPUS}")
    word = "machine" if machine.num_machines == 1 else f"{machine.name}-"
    return [(label, machine) for label in numbered(word, count)]


def _hosts(listed: Sequence[tuple[str, Topology]]) -> tuple[list[_Host], list[Level]]:
    """Return the single machines of all parts, and the levels of those parts that are clusters."""
    hosts: list[_Host] = []
    levels: dict[str, Level] = {}
    for label, part in listed:
        if part.num_machines == 1 and part.fabric is None:
            hosts.append(_Host(label, part, {}))
            continue
        for level in part.levels:
            known = levels.setdefault(level.name, replace(level, domains=()))
            if known != replace(level, domains=()):
                raise TopologyError(
                    f"level {_checks.shown(level.name)} differs between the clusters to be joined"
                )
        hosts += _inner_hosts(label, part)
    return hosts, list(levels.values())


def _inner_hosts(label: str, part: Topology) -> list[_Host]:
    """Return the single machines of `part` with their domains in the levels of its fabric.

    The names of machines and domains begin with `label`.
    """
    machine_of = part.machine_of
    crossing = next((pair for pair in part.links if machine_of[pair[0]] != machine_of[pair[1]]), None)
    if crossing is not None or part.components:
        raise TopologyError(
            f"machine {_checks.shown(label)} is a topology of {part.num_machines} machines with links between them; "
            "give each machine as its own topology"
        )
    levels = part.levels
    tiling = part.tiling if part.tiling is not None and not part.tiling.uuids else None
    return [
        _Host(
            f"{label}/{machine}",
            part.machine(machine) if tiling is None else tiling.template(i),
            {level.name: f"{label}/{domain}" for level in levels if (domain := level.domains[i]) is not None},
        )
        for i, machine in enumerate(part.machine_names)
    ]


def _names(hosts: Sequence[_Host], names: Sequence[str] | None, fabric: Fabric | None) -> tuple[str, ...]:
    given = names if names is not None else fabric.machines if fabric else None
    chosen = checked_names(given if given is not None else [host.name for host in hosts], "names")
    if len(chosen) != len(hosts):
        where = "names has" if names is not None else "fabric has"
        raise TopologyError(f"{where} {len(chosen)} machines, but {len(hosts)} are to be joined")
    if fabric and len(fabric.machines) != len(hosts):
        raise TopologyError(f"fabric has {len(fabric.machines)} machines, but {len(hosts)} are to be joined")
    return chosen


def _rack_level(racks: Racks, count: int) -> Level:
    if isinstance(racks, SupportsIndex):
        size = _checks.integer(racks, "racks", TopologyError, low=1, high=MAX_MACHINES)
        return Fabric.regular(count, {"rack": size}).levels[0]
    return Level("rack", _checks.sequence(racks, "racks", TopologyError))
