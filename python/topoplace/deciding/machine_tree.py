"""The levels of domains around the machines that are offered to a gang, and the room in these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from topoplace import _core
from topoplace.deciding.bounds import Rooms, gang_machines
from topoplace.engine.level_chain import LevelChains, PlacedLevel, named_levels
from topoplace.topology.ports import switched_levels

if TYPE_CHECKING:
    from topoplace.engine.gangs.offers import Offers
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest
    from topoplace.topology.topology import Topology


def chain_of(request: JobRequest, view: ClusterView) -> tuple[PlacedLevel, ...]:
    """Return the levels of the topology as a tree for the job, from the machines up."""
    chains = view.cluster.topology.derived(LevelChains)
    found = chains.of(named_levels(request.job))
    if found is None:
        levels = chains.for_job(request.job)
        assert levels is not None  # `engine.requirements` has refused levels that no tree can honour
        found = levels.chain
    return found


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
