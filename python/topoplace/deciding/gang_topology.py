"""What the kernels know of a topology before any gang asks (`gang_search.hpp`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from topoplace import _core
from topoplace.collective.networks import collective_network
from topoplace.deciding.bounds import gang_limits
from topoplace.engine.memo import Memo
from topoplace.topology.accelerators import usual_tflop
from topoplace.topology.ports import Ports, switched_levels

if TYPE_CHECKING:
    from topoplace.engine.level_chain import Chain
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
    return np.array([usual_tflop(gpu) for gpu in topology.gpus])


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
        meet_anywhere = not names <= {level.name for level in chain}
        return _core.GangLevels(topology_of_gangs(self._topology, rates), rows, meet_anywhere)


def _uplinks(ports: Ports, level: str) -> tuple[NDArray[np.float64], Ints]:
    """Return the speeds and the ports of the uplinks of a level; empty without any."""
    if not ports.has_uplinks(level):
        return np.empty(0), np.empty(0, np.int64)
    return ports.uplink_speeds(level), ports.uplinks(level).reshape(-1)
