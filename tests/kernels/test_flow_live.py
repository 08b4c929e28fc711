"""A scheduling graph that is kept while tasks come and go has the optimum of the same graph solved from nothing."""

from __future__ import annotations

import pytest

from instances.flow_instances import workload
from instances.flow_live import churned
from topoplace import kernels


@pytest.mark.parametrize("load", [0.5, 0.95, 1.0, 1.5])
@pytest.mark.parametrize("family", ["scheduling", "phase 2"])
def test_a_kept_network_has_the_optimum_of_a_new_one(family, load):
    rounds = churned(workload(family, 100, load), 5)
    network = rounds.last.instance()
    found = kernels.min_cost_flow(
        network.num_nodes,
        network.tail,
        network.head,
        network.capacity,
        network.cost,
        network.supply,
        algorithm="network_simplex",
    )
    assert rounds.cost == found.cost
    assert found.verify()
