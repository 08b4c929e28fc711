"""Machines grouped into classes: numbers on the machine, and distances across machines."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace.engine.machines.machine_class import MachineClasses, members
from topoplace.testing.strategies import cluster_topologies, topologies


@given(st.one_of(topologies(), cluster_topologies()), st.randoms(use_true_random=False))
def test_gpus_by_machine_are_those_of_the_machine(topology: tp.Topology, random) -> None:
    gpus = random.sample(range(topology.num_gpus), random.randint(1, topology.num_gpus))
    classes = MachineClasses(topology)
    masks = classes.by_machine(gpus)
    found = {machine: {classes.gpus_of[machine][i] for i in members(mask)} for machine, mask in masks.items()}
    machines = {int(topology.machine_of[gpu]) for gpu in gpus}
    assert found == {m: {gpu for gpu in gpus if topology.machine_of[gpu] == m} for m in machines}


@given(st.one_of(topologies(), cluster_topologies()), st.randoms(use_true_random=False))
def test_distances_are_the_topologys_on_a_machine_and_one_value_between_two(
    topology: tp.Topology, random
) -> None:
    gpus = random.sample(range(topology.num_gpus), min(topology.num_gpus, 5))
    found = MachineClasses(topology).distances(gpus, topology)
    first = {}
    for gpu in gpus:
        first.setdefault(int(topology.machine_of[gpu]), gpu)
    for i, u in enumerate(gpus):
        for j, v in enumerate(gpus):
            ends = (int(topology.machine_of[u]), int(topology.machine_of[v]))
            expected = (
                topology.distance(u, v) if ends[0] == ends[1] else topology.distance(*map(first.get, ends))
            )
            assert np.isclose(found[i, j], expected) or (np.isinf(found[i, j]) and np.isinf(expected))


def test_distances_between_machines_that_no_fabric_joins() -> None:
    topology = tp.Topology.from_links(3, [(0, 1, 50.0)], machines=["a", "b", "c"], network=12.5)
    near, far = topology.distance(0, 1), topology.distance(0, 2)
    assert 0 < near < far
    found = MachineClasses(topology).between((0, 1, 2), topology)
    assert found.tolist() == [[0.0, near, far], [near, 0.0, far], [far, far, 0.0]]


def test_machines_out_of_reach_are_not_the_farthest_ones() -> None:
    box = tp.Topology.from_links(2, [(0, 1, 50.0)])
    apart = tp.Topology.cluster(box, count=3, network=0.0)
    assert MachineClasses(apart).farthest_machine(apart) == 0.0
    joined = tp.Topology.cluster(box, count=3, network=12.5)
    assert MachineClasses(joined).farthest_machine(joined) == joined.distance(0, 2) > 0.0


def test_the_farthest_machine_is_found_by_the_first_gpus() -> None:
    """The second GPUs of both machines are near each other; a machine may have one GPU."""
    pairs = tp.Topology.from_links(4, [(1, 3, 50.0)], machines=["a", "a", "b", "b"], network=12.5)
    assert MachineClasses(pairs).farthest_machine(pairs) == pairs.distance(0, 2) > pairs.distance(1, 3)
    single = tp.Topology.cluster(tp.Topology.from_links(1, []), count=2, network=12.5)
    assert MachineClasses(single).farthest_machine(single) == single.distance(0, 1)
    alone = tp.Topology.from_links(2, [(0, 1, 50.0)])
    assert MachineClasses(alone).farthest_machine(alone) == 0.0
