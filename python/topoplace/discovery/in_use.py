"""GPUs that a tool's text shows in use, and which GPUs of a topology they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from topoplace import _checks
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
    """Return the GPUs of `topology` that are in use, ascending. TopologyError names a GPU that it does not have.

    Machines that the topology does not have are left out.
    """
    numbers = device_numbers(topology)
    known = {
        (machine, by_place, index if by_place else numbers[gpu]): gpu
        for machine, own in topology.gpus_of.items()
        for index, gpu in enumerate(own)
        for by_place in (True, False)
    }
    only = topology.machine_names[0] if topology.num_machines == 1 else None
    taken: set[int] = set()
    for one in found:
        machine = only if one.machine is None or only is not None else one.machine
        if machine is None:
            raise TopologyError(
                f"the text does not name its machine, and the topology has {topology.num_machines}"
            )
        if machine not in topology.gpus_of:
            continue
        gpu = known.get((machine, one.by_place, one.number))
        if gpu is None:
            raise TopologyError(f"machine {_checks.shown(machine)} has no GPU {one.number}, which is in use")
        taken.add(gpu)
    return tuple(sorted(taken))
