"""A gang that is divided among machines first, against all its GPUs looked at together."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import topoplace as tp
from topoplace import kernels
from topoplace.engine.gangs import assignments
from topoplace.engine.gangs.task_orders import Block, InnerOrders, in_blocks
from topoplace.engine.machine_state import ClusterView
from topoplace.objectives import communication_cost
from topoplace.policies import Greedy, Preserve
from topoplace.policies.mapa import gangs

MACHINES = ("dgx-a100", "dgx1-v100", "dgx1-p100", "summit", "minsky")


def random_job(random: Random, size: int) -> tp.JobGraph:
    """Return a pattern, or groups of tasks whose members communicate with those of the next group."""
    made = random.choice(("ring", "tree", "chain", "allreduce", "groups", "random"))
    if made not in ("groups", "random"):
        return tp.JobGraph._pattern(made, size)
    edges: set[tuple[int, int]] = set()
    if made == "groups":
        edges |= {(a, a + 4) for a in range(size - 4)}
        edges |= {(b, a) for a in range(size) for b in range(a - a % 4, a)}
    while len(edges) < 2 * size:
        a, b = sorted(random.sample(range(size), 2))
        edges.add((a, b))
    return tp.JobGraph.from_edges(size, [(a, b, random.choice((1.0, 2.0, 4.0))) for a, b in sorted(edges)])


def random_state(random: Random) -> tp.Cluster:
    fabric = tp.Fabric.regular(12, {"rack": random.choice((2, 4)), "spine": 8})
    fabric = fabric.with_level("rack", gb_per_s=50.0).with_level("spine", gb_per_s=25.0)
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get(random.choice(MACHINES)), fabric=fabric))
    for machine, gpus in cluster.topology.gpus_of.items():
        if taken := random.choice((0, 0, 1, 2, 3)):
            cluster.allocate(machine, tuple(sorted(random.sample(gpus, taken))))
    return cluster


@pytest.mark.parametrize("seed", range(40))
def test_no_dearer_than_all_gpus_at_once(seed: int) -> None:
    random = Random(seed)
    cluster = random_state(random)
    job = random_job(random, random.randint(6, min(48, cluster.num_free)))
    view = cluster.view(ClusterView)
    request = view.request(job)
    gpus = random.sample(cluster.free_gpus(), random.randint(job.num_tasks, cluster.num_free))
    found = assignments.least_communication(request, gpus, view)
    assert set(found) <= set(gpus)
    assert len(set(found)) == job.num_tasks
    mapped = kernels.map_graph(job.graph, view.classes.distances(gpus, cluster.topology))
    at_once = [gpus[i] for i in mapped.target_of.tolist()]
    costs = [communication_cost(job, one, cluster.topology) for one in (found, at_once)]
    assert costs[0] <= costs[1] * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_hardly_a_smaller_sum_than_by_search(seed: int) -> None:
    """Less than 2 % below it, within a limited number of nodes, as a proof takes too long."""
    random = Random(seed)
    cluster = random_state(random)
    job = random_job(random, random.randint(17, min(40, cluster.num_free)))
    policy, free = Greedy(max_nodes=20_000), frozenset(cluster.free_gpus())
    found = gangs.on_machines(job, cluster.topology, free, "sum")
    assert found is not None
    divided = policy.scored(job, cluster, found.gpus, False)
    searched = policy._searched(job, cluster, free, frozenset(), policy.decision_budget(), "sum")
    assert searched is not None
    assert divided.scores["aggregated_bandwidth"] >= 0.98 * searched.scores["aggregated_bandwidth"]


@pytest.mark.parametrize("objective", ["sum", "bottleneck_sum"])
def test_a_ring_is_proven_on_any_machines(objective: str) -> None:
    fabric = tp.Fabric.regular(6, {"rack": 3})
    fabric = fabric.with_level("rack", gb_per_s=50.0)
    topology = tp.Topology.cluster(tp.machines.get("dgx-a100"), fabric=fabric)
    ring = tp.JobGraph.ring(48).with_(bandwidth_sensitive=objective != "sum")
    found = gangs.on_machines(ring, topology, frozenset(range(48)), objective)
    assert found.proven
    placement = Preserve().place(ring, tp.Cluster(topology))
    assert placement.scores["aggregated_bandwidth"] == 42 * 300 + 4 * 50 + 2 * 12.5
    assert placement.scores["bottleneck_bandwidth"] == 12.5


def test_gpus_with_links_of_their_own_are_searched() -> None:
    """On rails, the link between two machines depends on the GPUs."""
    fabric = tp.Fabric.regular(4, {"leaf": 4}).with_level("leaf", rail=True, gb_per_s=50.0)
    topology = tp.Topology.cluster(tp.machines.get("dgx-a100"), fabric=fabric)
    assert gangs.on_machines(tp.JobGraph.ring(32), topology, frozenset(range(32)), "sum") is None


def test_a_gang_that_fits_a_machine_is_no_gang() -> None:
    fabric = tp.Fabric.regular(2, {"rack": 2})
    topology = tp.Topology.cluster(tp.machines.get("dgx2"), fabric=fabric)
    assert gangs.on_machines(tp.JobGraph.ring(16), topology, frozenset(range(32)), "sum") is None
    assert gangs.on_machines(tp.JobGraph.ring(17), topology, frozenset(range(32)), "sum") is not None


def test_orders_inside_are_kept_and_exact() -> None:
    machine = tp.machines.get("dgx1-v100")
    orders = InnerOrders(machine.distance_matrix())
    ring = tp.JobGraph.ring(4)
    order = orders.of(0b1111, 4, ring.edge_array)
    assert order is orders.of(0b1111, 4, ring.edge_array)
    assert sum(machine.distance(order.gpus[a], order.gpus[b]) for a, b, _ in ring.edges) == 4
    assert order.is_least
    assert not orders.of(0b110011, 4, tp.JobGraph.clique(4).edge_array).is_least
    assert orders.nearest(0b1000) == 0
    apart = np.array([[0.0, 1.0, 1.5], [1.0, 0.0, 1.5], [1.5, 1.5, 0.0]])
    assert not InnerOrders(apart).of(0b111, 3, tp.JobGraph.chain(3).edge_array).is_least


def test_problems_too_large_are_left() -> None:
    job = tp.JobGraph.ring(3000)
    orders = InnerOrders(np.zeros((2, 2)))
    blocks = [Block((2 * i, 2 * i + 1), 0b11, orders) for i in range(1500)]
    assert in_blocks(job, blocks, np.ones((1500, 1500))) is None
