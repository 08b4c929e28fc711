"""Trees among the GPUs of a machine reach the optimal bandwidth."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import topoplace as tp
from collective_agreement import machines, records
from nccl_machines import machine
from topoplace import collective, kernels
from topoplace.collective.prepared import prepared
from topoplace.collective.several_machines import graph_over


def check(topology, gpus, relay="chosen"):
    plan = check_plan(topology, gpus, relay)
    terminals = prepared(topology, "nccl-2.30").terminals
    found = kernels.pack_trees(terminals, gpus, relay_others=relay == "all")
    assert kernels.verify_trees(terminals, gpus, found, relay_others=relay == "all")
    assert plan.trees_per_gpu == found.per_root


def check_plan(topology, gpus, relay="chosen"):
    plan = collective.trees(topology, gpus, relay=relay)
    assert plan.gb_per_s == collective.optimal_bandwidth(topology, gpus, relay=relay)
    assert {tree.root for tree in plan.trees} == set(gpus)
    for tree in plan.trees:
        reached = {tree.root}
        for hop in tree.hops:
            assert hop.start in reached
            assert hop.end not in reached
            assert sum(way.trees for way in hop.ways) == tree.trees
            reached.add(hop.end)
        assert reached == set(gpus)
        assert 1 <= tree.depth < len(gpus)
    return plan


@pytest.mark.parametrize("name", ["dgx1-v100", "dgx-a100", "l40s-8", "summit", "cubemesh-16", "dgx2"])
@pytest.mark.parametrize("relay", ["chosen", "all"])
def test_trees_of_machines(name, relay):
    topology = tp.machines.get(name)
    draws = random.Random(name)
    for _ in range(4):
        size = draws.randint(2, min(8, topology.num_gpus))
        check(topology, sorted(draws.sample(range(topology.num_gpus), size)), relay)


def test_trees_of_the_reference_machines(shared: Path) -> None:
    """Every fortieth set of the reference data; the optima themselves are compared in test_agreement."""
    topologies = machines(shared)
    for row in records(shared, "optimum.json")["records"][::40]:
        check(topologies[row["machine"]], row["gpus"])


def test_hops_tell_what_they_pass():
    topology = machine("skylake", [[2, 1]], sm=86)
    plan = collective.trees(topology, [0, 1])
    assert not plan.assumed
    assert [(hop.start, hop.end) for tree in plan.trees for hop in tree.hops] == [(0, 1), (1, 0)]
    passed = {way.through for tree in plan.trees for hop in tree.hops for way in hop.ways}
    assert all(len(through) == 1 and through[0].startswith("switch") for through in passed)


def test_numbers_are_those_of_the_cluster():
    dgx1 = tp.machines.get("dgx1-v100")
    plan = collective.trees(tp.Topology.cluster(dgx1, 2), [11, 8])
    assert {tree.root for tree in plan.trees} == {8, 11}
    assert plan.gb_per_s == collective.optimal_bandwidth(dgx1, [0, 3])


def pod(machine_name="dgx-a100", count=4, per_leaf=2):
    fabric = tp.Fabric.regular(count, {"leaf": per_leaf, "spine": count})
    fabric = fabric.with_level("leaf", gb_per_s=25.0).with_level("spine", gb_per_s=25.0, oversubscription=4)
    return tp.Topology.cluster(tp.machines.get(machine_name), fabric=fabric)


@pytest.mark.parametrize("gpus", [[0, 1, 8, 9], [9, 0, 16, 31], [0, 1, 2, 8], range(16)])
@pytest.mark.parametrize("relay", ["chosen", "all"])
def test_trees_over_machines_reach_the_optimum(gpus, relay):
    cluster = pod()
    check_plan(cluster, gpus, relay)
    graph = graph_over(cluster, list(gpus), "nccl-2.30", others=relay == "all")
    found = kernels.pack_trees(graph.terminals(), range(len(gpus)))
    assert kernels.verify_trees(graph.terminals(), range(len(gpus)), found)


def test_machines_without_adapters_have_a_port_for_each_gpu():
    plan = check_plan(pod("dgx1-v100"), [0, 8])
    assert plan.assumed
    passed = {way.through for tree in plan.trees for hop in tree.hops for way in hop.ways}
    assert ("machine0 port 0", "leaf leaf0", "machine1 port 0") in passed


def test_trees_within_common_nvswitches():
    rack = tp.machines.get("gb200-nvl72")
    plan = check_plan(rack, [0, 4, 5, 71])
    passed = {name for tree in plan.trees for hop in tree.hops for way in hop.ways for name in way.through}
    assert any("nvlink" in name for name in passed), passed


def test_hops_between_machines_tell_what_they_pass():
    plan = check_plan(pod(), [0, 1, 16, 17])
    passed = {way.through for tree in plan.trees for hop in tree.hops for way in hop.ways}
    across = {way for way in passed if "spine spine0" in way}
    assert across
    assert {name.split()[0] for way in across for name in (way[0], way[-1])} == {"machine0", "machine2"}
    assert all(len(set(way)) == len(way) for way in passed)


def test_too_many_vertices_are_refused_by_name():
    with pytest.raises(
        ValueError, match=r"gpus are on 20 machines, and with their network \d+ vertices take part"
    ):
        collective.trees(pod(count=20, per_leaf=20), range(160))


def test_gpus_without_a_path_have_no_trees():
    apart = tp.Topology.from_links(3, [(0, 1, 20.0)], 0.0)
    plan = collective.trees(apart, [0, 2])
    assert (plan.trees, plan.gb_per_s) == ((), 0)


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="relay = 'none' is not one of chosen, all"):
        collective.trees(tp.machines.get("dgx1-v100"), [0, 1], relay="none")
