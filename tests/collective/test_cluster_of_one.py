"""A cluster of one machine carries what the machine carries alone."""

from __future__ import annotations

import pytest

import topoplace as tp
from topoplace import collective
from topoplace.collective.machine_graph import MAX_GPUS
from topoplace.collective.rated_sets import Wanted

_NAMES = [
    name
    for name in tp.machines.names()
    if tp.machines.get(name).num_machines == 1 and 2 <= tp.machines.get(name).num_gpus <= MAX_GPUS
]


@pytest.mark.parametrize("name", _NAMES)
def test_a_cluster_of_one_machine_is_the_machine(name):
    machine = tp.machines.get(name)
    cluster = tp.Topology.cluster(machine, 1)
    few = min(4, machine.num_gpus)
    for gpus in ([0, 1], list(range(few)), list(range(min(8, machine.num_gpus)))):
        assert _figures(cluster, gpus) == _figures(machine, gpus)
    everything = (1 << machine.num_gpus) - 1
    wanted = Wanted(few, everything, 0, everything)
    assert collective.best_set(cluster, wanted) == collective.best_set(machine, wanted)
    assert collective.left_bandwidth(cluster, range(machine.num_gpus)) == collective.left_bandwidth(
        machine, range(machine.num_gpus)
    )


def _figures(topology: tp.Topology, gpus: list[int]) -> tuple[object, ...]:
    return (
        collective.ring_bandwidth(topology, gpus),
        collective.ring_bandwidth(topology, gpus, rates="nccl-2.18"),
        collective.rings(topology, gpus),
        collective.why_no_rings(topology, gpus),
        collective.optimal_bandwidth(topology, gpus),
        collective.optimal_bandwidth(topology, gpus, relay="all"),
        collective.broadcast_bandwidth(topology, gpus),
        collective.trees(topology, gpus),
        collective.collective_time(topology, gpus, 1e9),
        collective.collective_time(topology, gpus, 1e9, "trees"),
        collective.host_is_assumed(topology),
    )


def test_it_draws_on_the_machine_also_where_its_own_host_is_told():
    machine = tp.machines.get("dgx-h100")
    cluster = tp.Topology.cluster(machine, 1)
    assert collective.ring_bandwidth(cluster, range(8)) == 360
    assert collective.survey(cluster, 4) == collective.survey(machine, 4)
