"""The machines offered to a gang as a tree of domains with the speeds of their ports (`gang_tree.hpp`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from topoplace import _core, kernels
from topoplace.deciding.bounds import Rooms, gang_machines, unit_of_tasks
from topoplace.engine.gangs.division import Part
from topoplace.engine.level_chain import LevelChains, PlacedLevel, named_levels, preferred_of, required_of
from topoplace.engine.machines.machine_class import Mask
from topoplace.jobs.groups import MACHINE, SOCKET
from topoplace.topology.ports import Ports, switched_levels

if TYPE_CHECKING:
    from topoplace.engine.gangs.offers import Offers
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.topology import Topology

Ints = NDArray[np.int64]
_ROUNDING = 1e-6


def chain_of(request: JobRequest, view: ClusterView) -> tuple[PlacedLevel, ...]:
    """Return the levels of the topology as a tree for the job, from the machines up."""
    chains = view.cluster.topology.derived(LevelChains)
    found = chains.of(named_levels(request.job))
    if found is None:
        levels = chains.for_job(request.job)
        assert levels is not None  # `engine.requirements` has refused levels that no tree can honour
        found = levels.chain
    return found


def others_on_uplinks(
    topology: Topology, level: str, flows: kernels.FlowCounts, largest: Sequence[float]
) -> NDArray[np.float64]:
    """Return (phases, machines) the GB of other jobs on the uplinks of each machine's domain, in the busier direction.

    largest: the GB of the job's largest flow in each phase.
    """
    ports, count = topology.derived(Ports), topology.num_machines
    if not ports.has_uplinks(level):
        return np.zeros((len(largest), count))
    machine, port = ports.uplinks(level).T
    distinct, place = np.unique(port, return_inverse=True)
    found: list[NDArray[np.float64]] = []
    for most in largest:
        both_ways = flows.counted(2 * distinct, most), flows.counted(2 * distinct + 1, most)
        busier = np.maximum(*both_ways)[place]
        found.append(np.bincount(machine, busier, minlength=count).astype(float))
    return np.array(found, np.float64).reshape(-1, count)


def has_narrow_uplinks(level: str, codes: Ints, topology: Topology) -> bool:
    """Return True if uplinks of a level carry less than all adapters below them together; codes: (m,) its domains."""
    ports = topology.derived(Ports)
    if not ports.has_uplinks(level):
        return False
    of_machines = ports.adapter_speeds * np.bincount(topology.machine_of, minlength=topology.num_machines)
    below = np.bincount(codes, of_machines)[codes]
    return bool((ports.uplink_speeds(level) < below * (1 - _ROUNDING)).any())


def rooms_of(request: JobRequest, offers: Offers, view: ClusterView) -> Rooms:
    """Return the room for tasks in each domain of the machines of these offers."""
    topology, levels = view.cluster.topology, chain_of(request, view)[:0:-1]
    native = _core.GangRoom(
        topology.derived(gang_machines),
        offers.native,
        [level.codes for level in levels],
        1 if request.anti_affine else request.size,
    )
    # Tasks may meet in an NVLink domain that is no part of the tree, wherever they meet in the tree.
    names = {level.name for level in levels}
    are_known = all(level.name in names for level in switched_levels(topology))
    classes = _own_classes(topology, levels) if are_known else [1] * (len(levels) + 1)
    return Rooms(native, classes)


def _own_classes(topology: Topology, levels: Sequence[PlacedLevel]) -> list[int]:
    """Return the class of ports at each depth, 1 for NVLinks; levels: those around machines, the outermost first."""
    switched = {level.name for level in switched_levels(topology)}
    return [0, *(int(level.name in switched) for level in levels)]


class MachineTree:
    """The domains of the offered machines, as an input of `kernels.map_to_tree`."""

    def __init__(self, request: JobRequest, offers: Offers, view: ClusterView, unit: int) -> None:
        self._offers, self._topology, self._unit = offers, view.cluster.topology, unit
        self._levels = chain_of(request, view)[::-1]
        codes = [level.codes for level in self._levels[:-1]]
        self._order, self._parent, first_leaf, ends, self._place_ends, self.gpus = _core.gang_tree(
            self._topology.derived(gang_machines), offers.native, codes
        )
        self._machines = offers.machines[self._order]
        self.room = np.minimum(offers.sizes[self._order], 1 if request.anti_affine else request.size) // unit
        """(l,) the most units of each machine."""
        firsts = np.split(self._machines[first_leaf], ends)[1:-1]
        self._domains = [(level.name, first) for level, first in zip(self._levels, firsts, strict=True)]
        """Each level, and a machine of each of its domains, in the order of the tree."""

    @cached_property
    def _leaf_of_machine(self) -> dict[int, int]:
        return {machine: leaf for leaf, machine in enumerate(self._machines.tolist())}

    def has_room_for(self, units: int) -> bool:
        """Return True if the machines together have room for `units` units."""
        return int(self.room.sum()) >= units

    def ports(self, room: Ints) -> kernels.PortTree:
        """Return the tree with its speeds; room: the units that fit each leaf."""
        uplink = np.concatenate([np.zeros(1), *(self._uplinks(*one) for one in self._domains)])
        own_class, own = self._own()
        return kernels.PortTree(self._parent, room, uplink, own_class, own)

    def places(self, units: Ints) -> kernels.GangPlaces:
        """Return the usable GPUs of each machine, with `units` as the items to map."""
        return kernels.GangPlaces(units, self._place_ends, self.gpus)

    def usable(self, machine: int) -> Mask:
        """Return the GPUs that a machine, given by number, offers."""
        offer = self._offers[int(self._order[self._leaf_of_machine[machine]])]
        return offer.gpus_for(offer.max_tasks)

    def _uplinks(self, level: str, machines: Ints) -> NDArray[np.float64]:
        """Return GB/s of the uplink of the domain of each machine; 0 where none is known."""
        ports = self._topology.derived(Ports)
        return ports.uplink_speeds(level)[machines] if ports.has_uplinks(level) else np.zeros(len(machines))

    def others(self, flows: kernels.FlowCounts, largest: Sequence[float]) -> NDArray[np.float64]:
        """Return (phases, domains) the GB of other jobs that count on each uplink."""
        gigabytes: list[NDArray[np.float64]] = [np.zeros((len(largest), 1))]
        for level, machines in self._domains:
            gigabytes.append(others_on_uplinks(self._topology, level, flows, largest)[:, machines])
        return np.concatenate(gigabytes, axis=1)

    def _own(self) -> tuple[list[int], NDArray[np.float64]]:
        """Return the class of ports at each depth, and (classes, leaves) the GB/s of a unit."""
        ports, classes = self._topology.derived(Ports), _own_classes(self._topology, self._levels[:-1])
        speeds = [ports.adapter_speeds, ports.nvlink_speeds][: max(classes) + 1]
        return classes, np.array([speed[self._machines] for speed in speeds]) * self._unit

    def leaves_of(self, units: Ints, parts: Sequence[Part]) -> Ints:
        """Return (u,) the leaf of each unit in a division; -1 for a divided unit."""
        leaf = np.full(units.size, -1)
        for part in parts:
            leaf[part.tasks] = self._leaf_of_machine[part.machine]
        rows = leaf[units]
        return np.where((rows == rows[:, :1]).all(axis=1), rows[:, 0], -1)

    def confined(self, job: JobGraph, units: Ints, start: Ints) -> Ints:
        """Return (u,) the depth of the domain that each unit may not leave, so that groups stay together."""
        unit_of = unit_of_tasks(units)
        depth_of = {level.name: depth for depth, level in enumerate(self._levels, 1)}
        domain_of = {level.name: level.domains[self._machines] for level in self._levels}
        found = np.zeros(len(units), np.int64)
        for one in chain(required_of(job), preferred_of(job)):
            if one.level == SOCKET or (one.level == MACHINE and len(one.tasks) == units.shape[1]):
                continue
            inside = unit_of[list(one.tasks)]
            if len(np.unique(domain_of[one.level][start[inside]])) == 1:
                found[inside] = np.maximum(found[inside], depth_of[one.level])
        return found
