"""`with_links` and `with_degraded`: which pairs change, by how much, and what is refused."""

from __future__ import annotations

import random
import re
from itertools import combinations

import hypothesis.strategies as st
import pytest
from hypothesis import given

import topoplace as tp
from small_clusters import FAMILIES, linked_cluster, small_cluster
from topoplace.errors import TopologyError
from topoplace.topology import compare

H100 = tp.machines.get("dgx-h100")
CLUSTER = tp.Topology.cluster(H100, 4)
OWN = {"NVSWITCH", "XGMI", "ICI"}


def random_topology(draws: random.Random) -> tp.Topology:
    """Return a built-in machine, or a cluster of small machines, with or without a fabric."""
    if draws.random() < 0.3:
        return tp.machines.get(draws.choice(["dgx-h100", "dgx1-v100", "gb200-nvl72", "mi300x", "dgx2"]))
    if draws.random() < 0.3:
        return linked_cluster(draws).topology
    return small_cluster(draws.choice(FAMILIES), draws).topology


@given(st.integers(0, 1 << 30))
def test_only_the_named_pairs_change(seed: int) -> None:
    draws = random.Random(seed)
    topology = random_topology(draws)
    pairs = [
        (u, v)
        for u, v in combinations(range(topology.num_gpus), 2)
        if topology.fabric is None or topology.machine_of[u] == topology.machine_of[v]
    ]
    if not pairs:
        return
    links: dict[tuple[int, int], float | tp.Link] = {}
    for u, v in draws.sample(pairs, min(3, len(pairs))):
        link = tp.Link(tp.LinkKind.NVLINK3, 2, 50.0)
        links[draws.choice([(u, v), (v, u)])] = draws.choice([0.0, 7.5, link])
    changed = topology.with_links(links)
    for u, v in combinations(range(topology.num_gpus), 2):
        was, now = topology.link(u, v), changed.link(u, v)
        value = links.get((u, v), links.get((v, u)))
        if value is None:
            is_inside = topology.machine_of[u] == topology.machine_of[v]
            assert (
                now == was or not is_inside
            )  # in an NVLink domain, links between machines follow those inside
        elif isinstance(value, tp.Link):
            assert now == value
        else:
            assert now.gb_per_s == value
            assert not value or was.kind in (now.kind, tp.LinkKind.NONE)
    assert tp.Topology.from_json(changed.to_json()) == changed


@given(st.integers(0, 1 << 30))
def test_links_of_degraded_gpus_have_the_smaller_share(seed: int) -> None:
    draws = random.Random(seed)
    topology = tp.machines.get(draws.choice(["dgx-h100", "dgx1-v100", "gb200-nvl72", "mi300x", "tpu-v4-64"]))
    shares = {gpu: draws.choice([0.25, 14 / 18, 1.0]) for gpu in draws.sample(range(topology.num_gpus), 2)}
    changed = topology.with_degraded(shares)
    for u, v in combinations(range(min(16, topology.num_gpus)), 2):
        was, now = topology.link(u, v), changed.link(u, v)
        is_own = was.kind.name in OWN or was.kind.name.startswith("NVLINK")
        share = min(shares.get(u, 1.0), shares.get(v, 1.0)) if is_own else 1.0
        assert now.gb_per_s == pytest.approx(was.gb_per_s * share), (u, v)
        assert now.kind is was.kind
    assert tp.Topology.from_json(changed.to_json()) == changed
    assert topology.with_degraded({}) == topology == topology.with_degraded({0: 1.0})


def test_a_cluster_of_equal_machines_gets_a_template_for_each_other_one() -> None:
    worn = CLUSTER.with_degraded({3: 14 / 18, 11: 14 / 18, 20: 0.5})
    assert (len(CLUSTER.templates), len(worn.templates)) == (1, 3)
    assert worn.template_of[0] == worn.template_of[1] != worn.template_of[2]
    assert (worn.link(3, 5).gb_per_s, worn.link(20, 21).gb_per_s, worn.link(24, 31).gb_per_s) == (
        350,
        225,
        450,
    )
    assert CLUSTER.with_links({(9, 8): 40.0}).link(8, 9).gb_per_s == 40.0


def test_the_default_policy_avoids_it_and_the_check_sees_it() -> None:
    one = H100.with_degraded({3: 17 / 18})
    assert (one.link(3, 5).lanes, one.link(3, 5).gb_per_s) == (17, pytest.approx(425))
    assert [found.why for found in compare.check(one)] == ["has 17 links, but most GPUs of its model have 18"]
    for size in (2, 4, 7):
        placed = tp.place(tp.JobGraph.ring(size), tp.Cluster(one))
        assert placed is not None
        assert 3 not in placed.gpus
    hybrid, worn = tp.JobGraph.parallel(tensor=8, data=3), tp.Cluster(CLUSTER.with_degraded({3: 0.5}))
    gang, whole = tp.place(hybrid, worn), tp.place(hybrid.grouped("tensor", within="machine"), worn)
    assert gang is not None
    assert whole is not None
    assert 3 not in gang.gpus
    assert min(whole.gpus) == 8
    assert gang.time < whole.time
    pair = tp.place(tp.JobGraph.ring(2), tp.Cluster(H100.with_links({(0, 1): 10.0})))
    assert pair is not None
    assert (
        pair.time
        < tp.communication_time(tp.JobGraph.ring(2), (0, 1), H100.with_links({(0, 1): 10.0})).seconds
    )


def test_a_running_cluster_takes_it_and_a_repair_says_what_a_move_gains() -> None:
    cluster = tp.Cluster(H100)
    job = tp.JobGraph.allreduce(4)
    cluster.allocate("gang", [0, 1, 2, 3], job)
    cluster = cluster.with_topology(H100.with_degraded({3: 14 / 18}))
    assert cluster.allocations["gang"] == (0, 1, 2, 3)
    assert tp.Cluster.restore(cluster.snapshot()).topology == cluster.topology
    stay = tp.communication_time(job, (0, 1, 2, 3), cluster.topology).seconds
    best = tp.repair("gang", cluster, lost=[3]).plans[0]
    assert best.moved.all == 1
    assert best.time < stay


@pytest.mark.parametrize(
    ("links", "told"),
    [
        ({(3, 3): 1.0}, "links[(3, 3)] joins a GPU with itself"),
        ({(3, 32): 1.0}, "links[(3, 32)]: a GPU = 32 is not in 0..31"),
        ({(3, 5): 1.0, (5, 3): 2.0}, "links[(5, 3)]: the pair is there twice"),
        ({(3, 5): -1.0}, "links[(3, 5)] = -1.0 is not in 0.."),
        ({(3, 5): "40"}, "links[(3, 5)] = '40' is not a number"),
        ({(3, 5): tp.Link(tp.LinkKind.NVLINK4, 0, 3.0)}, "links[(3, 5)][4] = 0 is not in 1..1024"),
        ({(3, 8): 1.0}, "links[(3, 8)] joins two machines, whose link is that of a level of the fabric"),
        ({3: 1.0}, "a pair in links = 3 is not a sequence"),
        ({(3,): 1.0}, "a pair in links = (3,) is not two GPUs"),
        ([(3, 5, 1.0)], "links = [(3, 5, 1.0)] is not a Mapping"),
    ],
)
def test_wrong_links_are_refused(links: dict[tuple[int, int], float], told: str) -> None:
    with pytest.raises(TopologyError, match=re.escape(told)):
        CLUSTER.with_links(links)


@pytest.mark.parametrize(
    ("shares", "told"),
    [
        ({32: 0.5}, "a GPU in shares = 32 is not in 0..31"),
        ({"GPU3": 0.5}, "a GPU in shares = 'GPU3' is not an integer"),
        ({3: 0.0}, "shares[3] = 0.0 is not above 0"),
        ({3: 14}, "shares[3] = 14 is more than 1"),
        ([3], "shares = [3] is not a Mapping"),
    ],
)
def test_wrong_shares_are_refused(shares: dict[int, float], told: str) -> None:
    with pytest.raises(TopologyError, match=re.escape(told)):
        CLUSTER.with_degraded(shares)


def test_a_gpu_without_links_of_its_own_cannot_lose_some() -> None:
    with pytest.raises(TopologyError, match=re.escape("shares[1]: the GPU has no NVLinks or other links")):
        tp.machines.get("l40s-8").with_degraded({1: 0.5})
