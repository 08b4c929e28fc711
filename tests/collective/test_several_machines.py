"""Rings and optima over machines joined by a network, worked out by hand."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import hypothesis.strategies as st
import pytest
from hypothesis import given

import topoplace as tp
from small_clusters import FAMILIES, small_cluster
from topoplace import collective
from topoplace.topology.devices import Nic
from topoplace.topology.fabric import Level

A100 = tp.machines.get("dgx-a100")
DGX1 = tp.machines.get("dgx1-v100")


def cluster(machine: tp.Topology = A100, count: int = 2, **level: object) -> tp.Topology:
    names = tuple(f"m{i}" for i in range(count))
    leaf = Level("leaf", ("a",) * count, **{"gb_per_s": 25.0, **level})
    return tp.Topology.cluster(machine, fabric=tp.Fabric(names, (leaf,)), network=10.0)


def without_nics(machine: tp.Topology) -> tp.Topology:
    return replace(machine, nics=())


def test_ports_of_the_chosen_gpus_add_up():
    topology = cluster(without_nics(A100))
    for count in range(1, 9):
        gpus = [*range(count), *range(8, 8 + count)]
        assert collective.ring_bandwidth(topology, gpus) == min(240, 25 * count)
    assert collective.ring_bandwidth(topology, [0, 1, 2, 8]) == 25  # the machine with fewer ports decides


def test_what_is_inside_a_machine_counts():
    """GPUs 0 and 7 of a DGX-1 have 6 GB/s between them, and each one 12 GB/s of PCIe, whatever the network carries."""
    topology = cluster(without_nics(DGX1))
    assert collective.ring_bandwidth(topology, [0, 7, 8, 15]) == 6
    assert collective.ring_bandwidth(topology, [0, 3, 8, 11]) == 24


def test_gpus_that_share_an_adapter_have_one_port():
    nics = [
        Nic(f"nic{i}", tuple("PIX" if gpu // 4 == i else "SYS" for gpu in range(8)), 25.0) for i in range(2)
    ]
    topology = cluster(replace(A100, nics=tuple(nics)))
    assert collective.ring_bandwidth(topology, [0, 1, 2, 8, 9, 10]) == 25
    assert collective.ring_bandwidth(topology, [0, 4, 8, 12]) == 50
    assert collective.optimal_bandwidth(topology, [0, 1, 8, 9]) == 50  # two of four behind 25
    assert collective.optimal_bandwidth(topology, [0, 4, 8, 12]) == 100


def test_oversubscription_and_outer_levels():
    leaf = Level("leaf", ("a", "a", "b", "b"), gb_per_s=25.0)
    spine = Level("spine", ("s",) * 4, gb_per_s=25.0, oversubscription=5.0)
    fabric = tp.Fabric(("m0", "m1", "m2", "m3"), (leaf, spine))
    topology = tp.Topology.cluster(without_nics(A100), fabric=fabric)
    near, far = [0, 1, 8, 9], [0, 1, 16, 17]
    assert collective.ring_bandwidth(topology, near) == 50
    assert collective.ring_bandwidth(topology, far) == 50
    assert collective.ring_bandwidth(topology, [*range(16), *range(16, 32)]) == 80  # the uplink of a leaf
    assert collective.optimal_bandwidth(topology, near) == 100
    assert collective.optimal_bandwidth(topology, far) == 100
    assert (
        collective.optimal_bandwidth(topology, range(32)) == 160
    )  # half of the data crosses an uplink of 80


def test_rails():
    """GPUs on common rails meet at the leaf; others go one level up."""
    rail = Level("leaf", ("a", "a"), gb_per_s=25.0, rail=True)
    spine = Level("spine", ("s", "s"), gb_per_s=12.5)
    topology = tp.Topology.cluster(without_nics(A100), fabric=tp.Fabric(("m0", "m1"), (rail, spine)))
    assert collective.ring_bandwidth(topology, [0, 1, 8, 9]) == 50
    assert collective.ring_bandwidth(topology, [0, 1, 10, 11]) == 50  # each rail has two ports into the spine
    assert (
        collective.ring_bandwidth(topology, [0, 1, 9, 10]) == 50
    )  # one channel on its rail, one over the spine
    assert collective.ring_bandwidth(topology, [0, 8]) == 25


def test_machines_of_one_nvlink_domain():
    rack = tp.machines.get("gb200-nvl72")
    sizes = [8, 16]
    assert {collective.ring_bandwidth(rack, range(size)) for size in sizes} == {
        collective.ring_bandwidth(tp.machines.get("hgx-b200"), range(8))
    }
    assert collective.optimal_bandwidth(rack, range(8)) > 0


def test_the_optimum_of_boxes_is_the_published_one():
    """Four boxes of A100 at 25 GB/s a GPU reach 800 / 3 GB/s (ForestColl)."""
    topology = cluster(without_nics(A100), 4)
    assert collective.optimal_bandwidth(topology, range(32)) == Fraction(800, 3)
    eight = cluster(without_nics(A100), 8)
    assert collective.optimal_bandwidth(eight, range(64)) == Fraction(1600, 7)
    # two boxes: what reaches one GPU, 240 of NVLinks, 24 of PCIe and 25 of the network, is the limit
    assert collective.optimal_bandwidth(topology, range(16)) == Fraction(16 * 289, 15)
    assert collective.ring_bandwidth(topology, range(32)) == 200


def test_only_the_network_joins():
    topology = tp.Topology.cluster(without_nics(A100), 2, network=10.0)
    assert collective.ring_bandwidth(topology, [0, 8]) == 10
    assert collective.optimal_bandwidth(topology, [0, 8]) == 20
    flat = tp.Topology.from_links(
        4, [(0, 1, 50.0), (2, 3, 50.0)], network=10.0, machines=["a", "a", "b", "b"]
    )
    assert collective.ring_bandwidth(flat, [0, 1, 2, 3]) == 20
    with pytest.raises(ValueError, match="gpus are on several machines"):
        collective.optimal_bandwidth(flat, [0, 2])


def test_other_gpus_relay():
    """With all GPUs of a DGX-1 as relays, 0 and 7 reach each other over NVLinks."""
    topology = cluster(without_nics(DGX1))
    gpus = [0, 7, 8, 15]
    chosen = collective.optimal_bandwidth(topology, gpus)
    assert chosen < collective.optimal_bandwidth(topology, gpus, relay="all")


@given(st.sampled_from(FAMILIES), st.integers(0, 2**32 - 1))
def test_no_rings_are_faster_than_the_optimum(family: str, seed: int) -> None:
    draws = random.Random(seed)
    topology = small_cluster(family, draws).topology
    gpus = draws.sample(range(topology.num_gpus), draws.randint(2, min(12, topology.num_gpus)))
    if not topology.tiling:
        return
    rings = collective.ring_bandwidth(topology, gpus)
    optimum = collective.optimal_bandwidth(topology, gpus, relay="all")
    assert rings <= float(optimum) * (len(gpus) - 1) / len(gpus) * (1 + 1e-6)
