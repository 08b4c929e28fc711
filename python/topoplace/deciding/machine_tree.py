"""The machines offered to a gang as a tree of domains with the speeds of their ports (`gang_tree.hpp`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from topoplace import _core, kernels
from topoplace.collective.networks import collective_network, domains_of
from topoplace.deciding import bounds, ranked_sets
from topoplace.engine.gangs.division import Part
from topoplace.engine.level_chain import (
    Chain,
    LevelChains,
    PlacedLevel,
    named_levels,
)
from topoplace.engine.machines.machine_class import MachineClasses
from topoplace.engine.memo import Memo
from topoplace.topology.links.nccl_rates import Rates, rates_of
from topoplace.topology.ports import Ports, switched_levels

if TYPE_CHECKING:
    from topoplace.engine.gangs.offers import Offers
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest
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


def gang_machines(topology: Topology) -> _core.GangMachines:
    """Return the machines of a topology as a gang sees them; `topology.derived(gang_machines)` makes them once."""
    ports, machine_of = topology.derived(Ports), topology.machine_of
    return _core.GangMachines(
        np.cumsum(np.bincount(machine_of, minlength=topology.num_machines)),
        np.argsort(machine_of, kind="stable").astype(np.int32),
        domains_of(topology).astype(np.int32),
        ports.adapters,
        ports.ways_out,
        ports.gb_per_s,
    )


def topology_of_gangs(topology: Topology, rates: Rates | str) -> _core.GangTopology:
    """Return what is known of a topology before any gang asks, built once for each table of rates."""
    table, kept = rates_of(rates), topology.derived(_nothing_yet)
    if table not in kept:
        ports, classes = topology.derived(Ports), topology.derived(MachineClasses)
        kept[table] = _core.GangTopology(
            topology.derived(gang_machines),
            collective_network(topology, table).native,
            [ranked_sets.native_machine(one, table) for one in classes.classes],
            np.array(classes.class_of, np.int32),
            ports.adapter_speeds,
            ports.nvlink_speeds,
        )
    return kept[table]


def _nothing_yet(_: Topology) -> dict[Rates, _core.GangTopology]:
    return {}


class GangLevels:
    """The chains of levels of a topology, for the kernels."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._known: Memo[int, tuple[Chain, _core.GangLevels]] = Memo()

    def of(self, chain: Chain, rates: Rates | str) -> _core.GangLevels:
        """Return the levels of a chain, built once."""
        known = self._known.get(id(chain))  # holds the chain, so that no other gets its id
        if known is None:
            known = self._known[id(chain)] = chain, self._built(chain, rates)
        return known[1]

    def _built(self, chain: Chain, rates: Rates | str) -> _core.GangLevels:
        ports, switched = self._topology.derived(Ports), switched_levels(self._topology)
        names = {level.name for level in switched}
        rows = [
            (
                np.ascontiguousarray(level.codes, np.int64),
                np.ascontiguousarray(level.domains, np.int64),
                *_uplinks(ports, level.name),
                level.name in names,
            )
            for level in chain[::-1]
        ]
        return _core.GangLevels(topology_of_gangs(self._topology, rates), rows)


def _uplinks(ports: Ports, level: str) -> tuple[NDArray[np.float64], Ints]:
    """Return the speeds and the ports of the uplinks of a level; empty without any."""
    if not ports.has_uplinks(level):
        return np.empty(0), np.empty(0, np.int64)
    return ports.uplink_speeds(level), ports.uplinks(level).reshape(-1)


def rooms_of(request: JobRequest, offers: Offers, view: ClusterView) -> bounds.Rooms:
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
    return bounds.Rooms(native, classes, topology.derived(Ports))


def _own_classes(topology: Topology, levels: Sequence[PlacedLevel]) -> list[int]:
    """Return the class of ports at each depth, 1 for NVLinks; levels: those around machines, the outermost first."""
    switched = {level.name for level in switched_levels(topology)}
    return [0, *(int(level.name in switched) for level in levels)]


class MachineTree:
    """The domains of the offered machines."""

    def __init__(self, request: JobRequest, offers: Offers, view: ClusterView, unit: int) -> None:
        topology = view.cluster.topology
        codes = [level.codes for level in chain_of(request, view)[:0:-1]]
        order, *_, self.gpus = _core.gang_tree(topology.derived(gang_machines), offers.native, codes)
        self._machines = offers.machines[order]
        self.room = np.minimum(offers.sizes[order], 1 if request.anti_affine else request.size) // unit
        """(l,) the most units of each machine."""

    @cached_property
    def _leaf_of_machine(self) -> dict[int, int]:
        return {machine: leaf for leaf, machine in enumerate(self._machines.tolist())}

    def has_room_for(self, units: int) -> bool:
        """Return True if the machines together have room for `units` units."""
        return int(self.room.sum()) >= units

    def leaves_of(self, units: Ints, parts: Sequence[Part]) -> Ints:
        """Return (u,) the leaf of each unit in a division; -1 for a divided unit."""
        leaf = np.full(units.size, -1)
        for part in parts:
            leaf[part.tasks] = self._leaf_of_machine[part.machine]
        rows = leaf[units]
        return np.where((rows == rows[:, :1]).all(axis=1), rows[:, 0], -1)
