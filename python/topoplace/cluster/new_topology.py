"""The jobs of a cluster on another topology: machines were added, removed or repaired."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from topoplace.cluster.hosts import HostAllocation, HostResources, Hosts
from topoplace.errors import AllocationError
from topoplace.placement import HostShare, Placement

if TYPE_CHECKING:
    from topoplace.topology.topology import Topology

_SHOWN = 5
"""Limit on the jobs that a message names."""


def new_numbers(old: Topology, new: Topology) -> Mapping[int, int]:
    """Return the number in `new` of each GPU of `old` that is still there.

    GPUs are the same if they have the same UUID. If one of the two UUIDs is unknown, GPUs are the same if they have the
    same name on machines of the same name.
    """
    by_uuid = {gpu.uuid: number for number, gpu in enumerate(new.gpus) if gpu.uuid}
    by_name = {(gpu.machine, gpu.name): number for number, gpu in enumerate(new.gpus)}
    found: dict[int, int] = {}
    for number, gpu in enumerate(old.gpus):
        there = by_uuid.get(gpu.uuid) if gpu.uuid else None
        if there is None:
            there = by_name.get((gpu.machine, gpu.name))
            if there is not None and gpu.uuid and new.gpus[there].uuid:
                continue  # another GPU has taken its place
        if there is not None:
            found[number] = there
    return found


def kept_hosts(hosts: Hosts, new: Topology) -> dict[str, HostResources] | None:
    """Return the known host resources of each machine of `new`, by machine name; None if no machine's are known.

    AllocationError names a machine that `hosts` does not contain.
    """
    if not hosts.resources:
        return None
    known = dict(zip(hosts.names, hosts.resources, strict=True))
    for name in new.machine_names:
        if name not in known:
            raise AllocationError(f"hosts: machine {name!r} is new; give hosts= for all machines")
    return {name: known[name] for name in new.machine_names}


class NewNumbers:
    """The GPUs and machines of one topology as another one numbers them."""

    def __init__(self, old: Topology, new: Topology) -> None:
        self._topology = new
        self._gpus = new_numbers(old, new)
        machines = {name: number for number, name in enumerate(new.machine_names)}
        self._machines = {
            number: machines[name] for number, name in enumerate(old.machine_names) if name in machines
        }

    def gpus(self, gpus: Iterable[int]) -> Sequence[int]:
        """Return the new numbers of those GPUs that are still there."""
        return [self._gpus[gpu] for gpu in gpus if gpu in self._gpus]

    def machines(self, machines: Iterable[int]) -> Sequence[int]:
        """Return the new numbers of those machines that are still there."""
        return [self._machines[machine] for machine in machines if machine in self._machines]

    def placement(self, gpus: Sequence[int], held: HostAllocation | None) -> Placement | None:
        """Return the GPUs and host resources of a job as a placement in new numbers; None if a part of them is gone."""
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
