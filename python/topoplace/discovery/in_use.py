"""GPUs that a tool's text shows in use, and which GPUs of a topology they are."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from topoplace import _checks
from topoplace.discovery.networks import switch_tree
from topoplace.errors import TopologyError
from topoplace.topology.device_numbers import device_numbers
from topoplace.topology.topology import Topology


@dataclass(frozen=True, slots=True)
class InUse:
    """One GPU that a job or a process has."""

    machine: str | None
    """The name of its machine; None if the text is about one machine, and does not name it."""
    number: int
    """Its number on that machine."""
    by_place: bool = False
    """True if the number is its place among the machine's GPUs, from 0, as in Slurm; False for a device's number."""


def gpus(found: Iterable[InUse], topology: Topology) -> tuple[int, ...]:
    """Return the GPUs of `topology` that are in use, ascending.

    Machines are the same if their names are, or their names up to the first dot. Machines that the topology does not
    have are left out, and a UserWarning names them. TopologyError names a GPU that a machine does not have, and
    machines if none is in the topology.
    """
    found = tuple(found)
    numbers = device_numbers(topology)
    known = {
        (machine, by_place, index if by_place else numbers[gpu]): gpu
        for machine, own in topology.gpus_of.items()
        for index, gpu in enumerate(own)
        for by_place in (True, False)
    }
    same = _same_machines({one.machine for one in found}, topology)
    if elsewhere := list(dict.fromkeys(one.machine for one in found if one.machine not in same)):
        warnings.warn(_on_other_machines([name for name in elsewhere if name]), stacklevel=3)
    taken: set[int] = set()
    for one in found:
        machine = same.get(one.machine)
        if machine is None:
            continue
        gpu = known.get((machine, one.by_place, one.number))
        if gpu is None:
            raise TopologyError(f"machine {_checks.shown(machine)} has no GPU {one.number}, which is in use")
        taken.add(gpu)
    return tuple(sorted(taken))


def _same_machines(names: Collection[str | None], topology: Topology) -> dict[str | None, str]:
    """Return the machine of the topology by its name in a text; names of machines that it does not have are left out.

    A text about one machine is about that of a topology of one.
    """
    if topology.num_machines == 1 and len(names) == 1:
        return dict.fromkeys(names, topology.machine_names[0])
    if None in names:
        raise TopologyError(
            f"the text does not name its machine, and the topology has {topology.num_machines}"
        )
    named = [name for name in names if name is not None]
    hosts = Counter(map(_host, (*named, *topology.machine_names)))
    machine_of = {name: name for name in topology.machine_names}
    by_host = {_host(name): name for name in topology.machine_names if hosts[_host(name)] == 2}
    found = {name: machine_of.get(name) or by_host.get(_host(name)) for name in named}
    same: dict[str | None, str] = {name: machine for name, machine in found.items() if machine}
    if named and not same:
        listed, have = switch_tree.some(sorted(named)), switch_tree.some(topology.machine_names)
        raise TopologyError(f"the text is about other machines ({listed}) than the topology ({have})")
    return same


def _host(name: str) -> str:
    return name.partition(".")[0]


def _on_other_machines(names: Collection[str]) -> str:
    return f"GPUs in use on machines that the topology does not have are left out: {switch_tree.some(names)}"
