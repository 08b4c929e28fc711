"""What the kernels know of a topology before any gang asks (`gang_search.hpp`), and its levels for a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from topoplace import _core
from topoplace.collective.networks import collective_network
from topoplace.deciding.bounds import Rooms, gang_limits, gang_machines
from topoplace.engine.level_chain import LevelChains, PlacedLevel, named_levels
from topoplace.engine.memo import Memo
from topoplace.topology.accelerators import usual_tflop
from topoplace.topology.ports import Ports, switched_levels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topoplace.engine.gangs.offers import Offers
    from topoplace.engine.level_chain import Chain
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest
    from topoplace.topology.links.nccl_rates import Rates
    from topoplace.topology.topology import Topology

Ints = NDArray[np.int64]


def topology_of_gangs(topology: Topology, rates: Rates | str) -> _core.GangTopology:
    """Return what is known of a topology before any gang asks, built once for each table of rates."""
    kept = topology.derived(_nothing_yet)
    if rates not in kept:
        ports = topology.derived(Ports)
        kept[rates] = _core.GangTopology(
            gang_limits(topology, rates),
            collective_network(topology, rates).native,
            ports.adapter_speeds,
            ports.nvlink_speeds,
        )
    return kept[rates]


def _nothing_yet(_: Topology) -> dict[Rates | str, _core.GangTopology]:
    return {}


def usual_tflop_per_s(topology: Topology) -> NDArray[np.float64]:
    """Return (n,) the 10¹² floating-point operations that each GPU usually does in a second; 0 where unknown."""
    rows = [[usual_tflop(gpu) for gpu in template.gpus] for template in topology.templates]
    return np.concatenate([rows[template] for template in topology.template_of])


class GangLevels:
    """The chains of levels of a topology, for the kernels."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._known: Memo[tuple[int, Rates | str], tuple[Chain, _core.GangLevels]] = Memo()

    def of(self, chain: Chain, rates: Rates | str) -> _core.GangLevels:
        """Return the levels of a chain, built once."""
        key = id(chain), rates  # of a chain that is held, so that no other gets its id
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = chain, self._built(chain, rates)
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
        meet_anywhere = not names <= {level.name for level in chain}
        return _core.GangLevels(topology_of_gangs(self._topology, rates), rows, meet_anywhere)


def _uplinks(ports: Ports, level: str) -> tuple[NDArray[np.float64], Ints]:
    """Return the speeds and the ports of the uplinks of a level; empty without any."""
    if not ports.has_uplinks(level):
        return np.empty(0), np.empty(0, np.int64)
    return ports.uplink_speeds(level), ports.uplinks(level).reshape(-1)


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
