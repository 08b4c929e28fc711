"""The levels of domains around the machines that are offered to a gang, and the room in these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from topoplace import _core, kernels
from topoplace.deciding.bounds import Rooms, gang_machines
from topoplace.engine.level_chain import (
    LevelChains,
    PlacedLevel,
    named_levels,
)
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


def unit_of_tasks(units: Ints) -> Ints:
    """Return (n,) the unit of each task; units: (u, t)."""
    unit_of = np.empty(units.size, np.int64)
    unit_of[units] = np.arange(len(units))[:, None]
    return unit_of
