"""The jobs of a cluster on a topology whose machines were added, removed or repaired."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from topoplace.cluster.hosts import HostAllocation, HostResources, Hosts
from topoplace.errors import AllocationError
from topoplace.placement import HostShare, Placement

if TYPE_CHECKING:
    from topoplace.topology.topology import Topology

_SHOWN = 5
"""Limit on the jobs that a message names."""


def new_numbers(old: Topology, new: Topology) -> Mapping[int, int]:
    """Return the number in `new` of each GPU of `old` that is still present.

    GPUs are the same if they have the same UUID. If one of the two UUIDs is unknown, GPUs are the same if they have the
    same name on machines of the same name. GPUs are compared one by one only on machines where some GPU changed.
    """
    before, after = _machines(old), _machines(new)
    same = [name for name, machine in before.items() if name in after and after[name].key == machine.key]
    found: dict[int, int] = {}
    for name in same:
        found.update(zip(before[name].gpus, after[name].gpus, strict=True))
        del before[name], after[name]
    numbers = [number for machine in before.values() for number in machine.gpus]
    found.update(
        _found_one_by_one(old, numbers, new, [n for machine in after.values() for n in machine.gpus])
    )
    return found


def _found_one_by_one(
    old: Topology, numbers: Iterable[int], new: Topology, others: Iterable[int]
) -> Iterator[tuple[int, int]]:
    """Yield the number in `old` and in `new` of each GPU among `numbers` that is among `others` in `new`."""
    candidates = [(number, new.gpus[number]) for number in others]
    by_uuid = {gpu.uuid: number for number, gpu in candidates if gpu.uuid}
    by_name = {(gpu.machine, gpu.name): number for number, gpu in candidates}
    for number in numbers:
        gpu = old.gpus[number]
        there = by_uuid.get(gpu.uuid) if gpu.uuid else None
        if there is None:
            there = by_name.get((gpu.machine, gpu.name))
            if there is not None and gpu.uuid and new.gpus[there].uuid:
                continue  # another GPU has taken its place
        if there is not None:
            yield number, there


def keeps_numbers(old: Topology, new: Topology) -> bool:
    """Return True if both have the same machines and GPUs in the same order; links and health may differ."""
    if old.num_gpus != new.num_gpus or old.machine_names != new.machine_names:
        return False
    return _machines(old) == _machines(new)


class _Machine(NamedTuple):
    key: Hashable
    """Names and UUIDs of the GPUs."""
    gpus: Sequence[int]
    """Their numbers."""


def _machines(topology: Topology) -> dict[str, _Machine]:
    """Return the machines of a topology by name; a cluster's machines are not looked at GPU by GPU."""
    gpus_of = topology.gpus_of
    if topology.tiling is None:
        every = topology.gpus
        keys: Iterable[Hashable] = (
            (tuple(every[gpu].name for gpu in gpus), tuple(every[gpu].uuid for gpu in gpus))
            for gpus in gpus_of.values()
        )
    else:
        names = [tuple(gpu.name for gpu in template.gpus) for template in topology.templates]
        unknown = [(None,) * len(own) for own in names]
        uuids = topology.tiling.uuids or ((),) * len(gpus_of)
        keys = ((names[t], own or unknown[t]) for t, own in zip(topology.template_of, uuids, strict=True))
    return {name: _Machine(key, gpus) for (name, gpus), key in zip(gpus_of.items(), keys, strict=True)}


def kept_hosts(hosts: Hosts, new: Topology) -> dict[str, HostResources] | None:
    """Return the known host resources of each machine of `new`, by machine name; None if no machine's are known.

    Raise AllocationError for a machine that `hosts` does not contain.
    """
    if not hosts.resources:
        return None
    known = dict(zip(hosts.names, hosts.resources, strict=True))
    for name in new.machine_names:
        if name not in known:
            raise AllocationError(f"hosts: machine {name!r} is new; give hosts= for all machines")
    return {name: known[name] for name in new.machine_names}


class NewNumbers:
    """The numbers of one topology's GPUs and machines in another one."""

    def __init__(self, old: Topology, new: Topology) -> None:
        self._topology = new
        self._gpus = new_numbers(old, new)
        machines = {name: number for number, name in enumerate(new.machine_names)}
        self._machines = {
            number: machines[name] for number, name in enumerate(old.machine_names) if name in machines
        }

    def gpus(self, gpus: Iterable[int]) -> Sequence[int]:
        """Return the new numbers of those GPUs that are still present."""
        return [self._gpus[gpu] for gpu in gpus if gpu in self._gpus]

    def machines(self, machines: Iterable[int]) -> Sequence[int]:
        """Return the new numbers of those machines that are still present."""
        return [self._machines[machine] for machine in machines if machine in self._machines]

    def placement(self, gpus: Sequence[int], held: HostAllocation | None) -> Placement | None:
        """Return the GPUs and host resources of a job as a placement in new numbers; None if any of them is gone."""
        held = held or HostAllocation()
        on = [share.machine for share in held.shares]
        moved, hosts, drives = self.gpus(gpus), self.machines(on), self.machines(held.drives)
        if (len(moved), len(hosts), len(drives)) != (len(gpus), len(on), len(held.drives)):
            return None
        shares = (
            HostShare(machine, share.cpus, share.memory_gb)
            for machine, share in zip(hosts, held.shares, strict=True)
        )
        return Placement(
            tuple(moved),
            topology=self._topology,
            hosts=tuple(shares),
            remote=tuple(self.gpus(held.remote)),
            drives=tuple(drives),
        )


def refuse_lost(jobs: Sequence[str], topology: Topology) -> None:
    """Raise AllocationError if `jobs`, which hold GPUs or machines that `topology` lacks, is not empty.

    The message names up to five of the jobs.
    """
    if jobs:
        shown = ", ".join(map(repr, jobs[:_SHOWN])) + (", …" if len(jobs) > _SHOWN else "")
        raise AllocationError(
            f"{len(jobs)} jobs hold GPUs or machines that {topology.name} lacks, release them first: {shown}"
        )
