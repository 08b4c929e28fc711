"""Times of collective operations, worked out by hand."""

from __future__ import annotations

import math

import pytest

import topoplace as tp
from nccl_machines import machine
from topoplace import collective
from topoplace.collective import Latencies

DGX1 = tp.machines.get("dgx1-v100")
NONE = Latencies(0, 0, 0, 0)


def test_large_messages_take_what_the_bandwidth_says():
    """8 GB among four GPUs at 80 GB/s: each ring carries 2 * 3 / 4 of the data."""
    assert collective.collective_time(DGX1, range(4), 8e9, latencies=NONE) == pytest.approx(2 * 0.75 * 8 / 80)
    for operation in ("all-gather", "reduce-scatter"):
        took = collective.collective_time(DGX1, range(4), 8e9, operation=operation, latencies=NONE)
        assert took == pytest.approx(0.75 * 8 / 80)


def test_an_all_reduce_in_nvswitches():
    """8 GB among eight H100 at 476 GB/s, up and down."""
    h100 = tp.machines.get("dgx-h100")
    took = collective.collective_time(h100, range(8), 8e9, "nvls", latencies=NONE)
    assert took == pytest.approx(2 * 7 / 8 * 8 / 476)
    hops = collective.collective_time(h100, range(8), 0, "nvls", latencies=Latencies(start=1, nvlink=2))
    assert hops == pytest.approx(5e-6)
    assert collective.collective_time(DGX1, range(4), 8e9, "nvls") == math.inf
    with pytest.raises(ValueError, match="all-gather"):
        collective.collective_time(h100, range(8), 8e9, "nvls", operation="all-gather")


def test_trees_reach_the_optimum():
    best = float(collective.optimal_bandwidth(DGX1, range(4)))
    took = collective.collective_time(DGX1, range(4), 8e9, "trees", latencies=NONE)
    assert took == pytest.approx(2 * 8 / best)
    assert took < collective.collective_time(DGX1, range(4), 8e9, "ring", latencies=NONE)


def test_small_messages_take_a_latency_for_every_hop():
    latencies = Latencies(start=5, nvlink=1, host=10, network=100)
    us = [
        1e6 * collective.collective_time(DGX1, gpus, 0, latencies=latencies)
        for gpus in ([0, 3], range(4), [0, 7])
    ]
    assert us == pytest.approx([5 + 2, 5 + 6, 5 + 20])
    one_way = collective.collective_time(DGX1, range(4), 0, operation="all-gather", latencies=latencies)
    assert 1e6 * one_way == pytest.approx(5 + 3)
    depth = max(tree.depth for tree in collective.trees(DGX1, range(4)).trees)
    by_trees = collective.collective_time(DGX1, range(4), 0, "trees", latencies=latencies)
    assert 1e6 * by_trees == pytest.approx(5 + 2 * depth)


def test_hops_between_machines():
    """Two machines of four GPUs: each round passes the network once, and seven hops in all."""
    latencies = Latencies(start=0, nvlink=1, host=10, network=100)
    cluster = tp.Topology.cluster(tp.machines.get("dgx-a100"), 2, network=25.0)
    gpus = [0, 1, 2, 3, 8, 9, 10, 11]
    took = collective.collective_time(cluster, gpus, 0, latencies=latencies)
    assert 1e6 * took == pytest.approx(2 * (100 + 6))
    large = collective.collective_time(cluster, gpus, 8e9, latencies=NONE)
    assert large == pytest.approx(2 * 7 / 8 * 8 / collective.ring_bandwidth(cluster, gpus))


def test_pcie_hops_are_slower():
    topology = machine("skylake", [[2, 1]], sm=86)
    latencies = Latencies(start=0, nvlink=1, host=10, network=100)
    assert 1e6 * collective.collective_time(topology, [0, 1], 0, latencies=latencies) == pytest.approx(20)


def test_without_a_path_it_takes_for_ever():
    apart = tp.Topology.from_links(3, [(0, 1, 20.0)], 0.0)
    for algorithm in ("ring", "trees"):
        assert math.isinf(collective.collective_time(apart, [0, 2], 1e6, algorithm))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"algorithm": "star"}, "algorithm = 'star' is not one of ring, trees"),
        ({"operation": "send"}, "operation = 'send' is not one of all-reduce"),
        ({"num_bytes": -1}, "num_bytes = -1"),
        ({"gpus": [0]}, "gpus has 1 entries"),
        ({"latencies": 3}, "latencies"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        collective.collective_time(DGX1, **{"gpus": [0, 1], "num_bytes": 1, **arguments})
    with pytest.raises(ValueError, match="network = -1"):
        Latencies(network=-1)
