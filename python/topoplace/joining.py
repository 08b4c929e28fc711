"""Machines joined to a cluster: which template each machine has, and which domain of each level it is in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from topoplace import _checks
from topoplace.cluster_topology import ClusterTopology
from topoplace.errors import TopologyError
from topoplace.fabric import MAX_MACHINES, Fabric, Level, checked_names, numbered
from topoplace.topology import Topology

Machines = Topology | Sequence[Topology] | Mapping[str, Topology]


@dataclass(frozen=True)
class _Host:
    """One machine to be: its own name, what it is like, and its domain in each level it brings along."""

    name: str
    template: Topology
    domains: Mapping[str, str]


def join(
    machines: Machines,
    count: int | None,
    fabric: Fabric | None,
    racks: int | Sequence[str | None] | None,
    names: Sequence[str] | None,
    network: float,
    name: str,
) -> Topology:
    """See `Topology.cluster`."""
    network = _checks.real(network, "network", TopologyError)
    name = _checks.text(name, "name", TopologyError)
    if fabric is not None:
        _checks.instance(fabric, Fabric, "fabric", TopologyError)
    hosts, inner = _hosts(_listed(machines, count, fabric, names))
    chosen = _names(hosts, names, fabric)
    brought = [
        replace(level, domains=tuple(host.domains.get(level.name) for host in hosts)) for level in inner
    ]
    levels = (*brought, *_rack_level(racks, len(hosts)), *(fabric.levels if fabric else ()))
    whole = Fabric(chosen, levels, name, fabric.notes if fabric else ())
    templates, template_of = _templates([host.template for host in hosts])
    notes = dict.fromkeys((*whole.notes, *(note for template in templates for note in template.notes)))
    return ClusterTopology(templates, template_of, whole, network, name, tuple(notes))


def _listed(
    machines: Machines, count: int | None, fabric: Fabric | None, names: Sequence[str] | None
) -> list[tuple[str, Topology]]:
    """Every machine, or machine of machines, with a name for it."""
    if isinstance(machines, Topology):
        return _copies(machines, count, names if names is not None else fabric.machines if fabric else None)
    if count is not None:
        raise TopologyError(f"count = {_checks.shown(count)}, but machines is a list already")
    given = _by_name(machines)
    # The order of the fabric is that of its domains; where it knows none of the names, their order is taken for it.
    wanted = fabric.machines if fabric and not given.keys().isdisjoint(fabric.machines) else tuple(given)
    for label in wanted:
        if label not in given:
            raise TopologyError(f"machines has no {_checks.shown(label)}, which is in the fabric")
    return [(label, given[label]) for label in wanted]


def _by_name(machines: Sequence[Topology] | Mapping[str, Topology]) -> dict[str, Topology]:
    """`machines` under the names they are given or, in a list, have themselves where these are unique."""
    if isinstance(machines, Mapping):
        named = cast("Mapping[str, Any]", machines).items()
        return {label: _topology(one, f"machines[{label!r}]") for label, one in named}
    found = _checks.sequence(machines, "machines", TopologyError)
    listed = [_topology(one, f"machines[{i}]") for i, one in enumerate(found)]
    own = [one.machine_names[0] for one in listed]
    return dict(zip(own if len(set(own)) == len(own) else numbered("machine", len(own)), listed, strict=True))


def _copies(machine: Topology, count: int | None, names: Sequence[str] | None) -> list[tuple[str, Topology]]:
    """`machine` as often as asked, or as there are names."""
    if count is None:
        if names is None:
            raise TopologyError("count is missing: one machine was given, and no fabric and no names")
        count = len(checked_names(names, "names")) // machine.num_machines
    count = _checks.integer(count, "count", TopologyError, low=1, high=MAX_MACHINES)
    word = "machine" if machine.fabric is None else f"{machine.name}-"
    return [(label, machine) for label in numbered(word, count)]


def _topology(value: object, what: str) -> Topology:
    if not isinstance(value, Topology):
        raise TopologyError(f"{what} = {_checks.shown(value)} is not a Topology")
    return value


def _hosts(listed: Sequence[tuple[str, Topology]]) -> tuple[list[_Host], list[Level]]:
    """The single machines, and the levels that those of them bring along which are clusters themselves."""
    hosts: list[_Host] = []
    levels: dict[str, Level] = {}
    for label, part in listed:
        if part.fabric is None:
            if part.num_machines > 1:
                raise TopologyError(
                    f"machine {_checks.shown(label)} is a topology of {part.num_machines} machines without a fabric; "
                    "give each machine as a topology of its own"
                )
            hosts.append(_Host(label, part, {}))
            continue
        for level in part.fabric.levels:
            known = levels.setdefault(level.name, replace(level, domains=()))
            if known != replace(level, domains=()):
                raise TopologyError(
                    f"level {_checks.shown(level.name)} differs between the clusters to be joined"
                )
        hosts += _inner_hosts(label, part, part.fabric)
    return hosts, list(levels.values())


def _inner_hosts(label: str, part: Topology, fabric: Fabric) -> list[_Host]:
    template_of = cast("ClusterTopology", part).template_of
    return [
        _Host(
            f"{label}/{machine}",
            part.templates[template_of[i]],
            {
                level.name: f"{label}/{domain}"
                for level in fabric.levels
                if (domain := level.domains[i]) is not None
            },
        )
        for i, machine in enumerate(fabric.machines)
    ]


def _names(hosts: Sequence[_Host], names: Sequence[str] | None, fabric: Fabric | None) -> tuple[str, ...]:
    given = names if names is not None else fabric.machines if fabric else None
    chosen = checked_names(given if given is not None else [host.name for host in hosts], "names")
    if len(chosen) != len(hosts):
        where = "names has" if names is not None else "fabric has"
        raise TopologyError(f"{where} {len(chosen)} machines, and {len(hosts)} are to be joined")
    if fabric and len(fabric.machines) != len(hosts):
        raise TopologyError(f"fabric has {len(fabric.machines)} machines, and {len(hosts)} are to be joined")
    return chosen


def _rack_level(racks: int | Sequence[str | None] | None, count: int) -> tuple[Level, ...]:
    if racks is None:
        return ()
    if isinstance(racks, int):
        return Fabric.regular(count, {"rack": racks}).levels
    return (Level("rack", _checks.sequence(racks, "racks", TopologyError)),)


def _templates(machines: Sequence[Topology]) -> tuple[list[Topology], list[int]]:
    """The different ones of `machines`, under the name "machine0", and the number of each machine's."""
    number_of_object: dict[int, int] = {}
    number_of_content: dict[Topology, int] = {}
    numbers: list[int] = []
    for machine in machines:
        if (number := number_of_object.get(id(machine))) is None:
            plain = machine.renamed_machine("machine0")
            number = number_of_content.setdefault(plain, len(number_of_content))
            number_of_object[id(machine)] = number
        numbers.append(number)
    return list(number_of_content), numbers
