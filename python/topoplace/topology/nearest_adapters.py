"""The network adapters nearest to the GPUs of a machine."""

from __future__ import annotations

from topoplace.topology.devices import PATH_CLASSES
from topoplace.topology.topology import Topology


def adapters_machine(topology: Topology, gpu: int) -> Topology | None:
    """Return the machine of a GPU as its own topology; None if it is unknown which adapters are the machine's.

    Adapters of machines that are joined without a fabric may be on any of these machines.
    """
    if topology.tiling is None and topology.num_machines > 1:
        return None
    machine = topology.template(int(topology.machine_of[gpu]))
    return machine if machine.nics else None


def nearest_adapters(machine: Topology) -> tuple[frozenset[str], ...]:
    """Return, for each GPU of a machine, the names of the adapters with the nearest path; an empty set if none is
    known.
    """
    found: list[frozenset[str]] = []
    for gpu in range(machine.num_gpus):
        near = min((PATH_CLASSES.index(nic.paths[gpu]) for nic in machine.nics), default=None)
        names = (nic.name for nic in machine.nics if PATH_CLASSES.index(nic.paths[gpu]) == near)
        found.append(frozenset(names))
    return tuple(found)


def own_adapters(machine: Topology) -> tuple[str, ...]:
    """Return, for each GPU of a machine, the one of its nearest adapters that the fewest GPUs before it have.

    Ties go to the adapter that the machine lists first. The machine must have adapters.
    """
    used = dict.fromkeys((nic.name for nic in machine.nics), 0)
    found: list[str] = []
    for names in machine.derived(nearest_adapters):
        chosen = min((name for name in used if name in names), key=used.__getitem__)
        used[chosen] += 1
        found.append(chosen)
    return tuple(found)
