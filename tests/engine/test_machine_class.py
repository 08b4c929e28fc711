"""Machines grouped into classes: numbers on the machine, and distances across machines."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.machines.machine_class import MachineClasses, mask_of, members
from topoplace.testing.strategies import cluster_topologies, topologies
from topoplace.topology.devices import Gpu
from topoplace.topology.fabric import Fabric, Level, numbered


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


def test_what_a_class_says_of_its_machines() -> None:
    gpus = [
        Gpu(i, f"GPU{i}", "V100", socket=int(s), memory_gb=16.0, healthy=i != 1)
        for i, s in enumerate("00110")
    ]
    plain = tp.Topology.from_links(5, [(0, 1, 50.0), (2, 3, 25.0)], 12.0)
    topology = replace(plain, gpus=tuple(gpus), partitions=((2, 3), (0,), (0, 4)))
    one = MachineClasses(topology).of(0)
    assert (one.num_gpus, one.healthy) == (5, 0b11101)
    assert (one.sockets, one.socket_of) == ((0b10011, 0b01100), [0, 0, 1, 1, 0])
    assert one.partitions == (0b00001, 0b01100, 0b10001)
    assert one.touched(0b10001) == 0b01
    assert one.touched(0b01001) == 0b11
    assert one.fragmentation(0b11111) == 0.0  # entirely free sockets
    assert one.fragmentation(0b00101) == (1 / 3 + 1 / 2) / 2
    assert one.unused(0b11111) == 1.0
    assert one.unused(0b00101) == (1 / 3 + 1 / 2) / 2
    assert one.bandwidth[0][1] == 50.0
    assert one.rows[0][1] == topology.distance(0, 1) < one.farthest == topology.distance(0, 2)
    assert one.alone.num_gpus == 5
    assert mask_of([0, 2]) == 0b101
    assert list(members(0b1101)) == [0, 2, 3]


def test_machines_are_of_one_class_if_policies_cannot_tell_them_apart() -> None:
    machine = tp.Topology.from_links(2, [(0, 1, 50.0)], 12.0, model="V100", memory_gb=16.0)
    links = [(2 * i, 2 * i + 1, 50.0) for i in range(4)]
    four = tp.Topology.from_links(8, links, 12.0, machines=list("aabbccdd"), network=1.0)
    changed = [
        replace(gpu, memory_gb=32.0 if gpu.index == 2 else 16.0, healthy=gpu.index != 7) for gpu in four.gpus
    ]
    classes = MachineClasses(replace(four, gpus=tuple(changed)))
    assert classes.class_of == [0, 1, 0, 2]
    assert (len(classes.classes), classes.num_machines) == (3, 4)
    assert classes.gpus_of == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert [classes.of(number) is classes.classes[0] for number in range(4)] == [True, False, True, False]
    assert classes.by_machine([7, 0, 1, 6]) == {3: 0b11, 0: 0b11}
    cluster = tp.Topology.cluster([machine, tp.machines.get("minsky"), machine], network=1.0)
    assert MachineClasses(cluster).class_of == [0, 1, 0]


def test_a_faster_link_counts_as_nearer_only_at_equal_distance() -> None:
    links = [(0, 1, 12.5), (1, 2, 25.0), (2, 3, 0.02)]
    view = tp.Cluster(tp.Topology.from_links(4, links, 0.01)).view(ClusterView)
    request, one = view.request(tp.JobGraph.ring(2)), view.classes.of(0)
    for free in (0b0111, 0b1111, 0b1011):
        found = request.mapped(one, free)
        pairs = list(combinations(members(free), 2))
        assert one.rows[found[0]][found[1]] == min(one.rows[u][v] for u, v in pairs)
        nearest = [pair for pair in pairs if one.rows[pair[0]][pair[1]] == one.rows[found[0]][found[1]]]
        assert one.bandwidth[found[0]][found[1]] == max(one.bandwidth[u][v] for u, v in nearest)


@pytest.mark.parametrize("count", [3, 300])
def test_the_farthest_machine_may_be_the_second(count: int) -> None:
    racks = Level("rack", ("a", "b", *("a" for _ in range(count - 2))))
    box = tp.Topology.from_links(1, [])
    topology = tp.Topology.cluster(box, fabric=Fabric(numbered("machine", count), (racks,)), network=12.5)
    assert topology.distance(0, 1) > topology.distance(0, 2)
    assert MachineClasses(topology).farthest_machine(topology) == topology.distance(0, 1)
