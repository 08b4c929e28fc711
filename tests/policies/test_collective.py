"""The policy `collective`, and MAPA's Preserve with its score."""

from __future__ import annotations

import random
from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace import collective
from topoplace.collective.rated_sets import grade_of
from topoplace.testing.placements import check_placement

DGX1 = tp.machines.get("dgx1-v100")
RING = {size: tp.JobGraph.ring(size).with_(bandwidth_sensitive=True) for size in range(1, 9)}


def lost(topology: tp.Topology, free: tuple[int, ...], gpus: tuple[int, ...]) -> float:
    rest = [gpu for gpu in free if gpu not in gpus]
    return collective.left_bandwidth(topology, free) - collective.left_bandwidth(topology, rest)


@pytest.mark.parametrize(
    "policy", [tp.policies.Collective(), tp.policies.Preserve(score="collective")], ids=str
)
@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
def test_no_free_set_has_better_rings(policy, size):
    draws = random.Random(size)
    for _ in range(8):
        cluster = tp.Cluster(DGX1)
        for gpu in draws.sample(range(8), draws.randint(0, 8 - size)):
            cluster.drain(gpu)
        placement = policy.place(RING[size], cluster)
        assert placement is not None
        assert placement.optimal
        check_placement(placement, RING[size], cluster)
        best = max(collective.ring_bandwidth(DGX1, gpus) for gpus in combinations(cluster.free_gpus(), size))
        assert (
            placement.scores["ring_bandwidth"] == collective.ring_bandwidth(DGX1, placement.gpus) > best / 1.1
        )
        found = lost(DGX1, cluster.free_gpus(), placement.gpus)
        assert placement.scores["lost_ring_bandwidth"] == pytest.approx(found)


def test_eq_2_and_rings_choose_differently():
    """On some five free GPUs, eq. 2 takes a set of four whose rings carry half of what another one's do."""
    differ = []
    for drained in combinations(range(8), 3):
        cluster = tp.Cluster(DGX1)
        for gpu in drained:
            cluster.drain(gpu)
        eq2 = tp.policies.Preserve().place(RING[4], cluster)
        rings = tp.policies.Collective().place(RING[4], cluster)
        assert eq2 is not None
        assert rings is not None
        of_eq2 = collective.ring_bandwidth(DGX1, eq2.gpus)
        assert rings.scores["ring_bandwidth"] >= of_eq2
        differ.append(rings.scores["ring_bandwidth"] / of_eq2)
    assert max(differ) >= 2


def test_insensitive_jobs_of_preserve_leave_bandwidth():
    job = tp.JobGraph.ring(3)
    cluster = tp.Cluster(DGX1)
    with_rings = tp.policies.Preserve(score="collective").place(job, cluster)
    assert with_rings == tp.policies.Preserve().place(job, cluster)
    assert with_rings is not None
    assert "ring_bandwidth" not in with_rings.scores


def test_a_job_waits_for_enough_bandwidth():
    """Only GPUs 0 and 7 are free, which have no common NVLink."""
    cluster = tp.Cluster(DGX1)
    for gpu in range(1, 7):
        cluster.drain(gpu)
    for patient in (
        tp.policies.Collective(10.0),
        tp.policies.Preserve(10.0, score="collective"),
    ):
        assert patient.place(RING[2], cluster) is None
        refusal = patient.explain(RING[2], cluster).refusal
        assert refusal is not None
        assert refusal.reason == "waits: the best ring bandwidth now is 6 GB/s, the minimum is 10"
        assert not refusal.permanent
        assert patient.place(RING[2].with_(bandwidth_sensitive=False).with_(name="x"), tp.Cluster(DGX1))
        assert patient.place(RING[1], cluster)
    assert tp.policies.Preserve(10.0, score="collective").place(tp.JobGraph.ring(2), cluster)
    assert tp.policies.Collective(10.0).place(tp.JobGraph.independent(2), cluster)
    assert tp.policies.Collective(6.0).place(RING[2], cluster)


def test_of_equal_machines_that_is_taken_where_others_lose_least():
    """A pair goes to the machine with two free GPUs that have the best rings, not to an idle one."""
    cluster = tp.Cluster(tp.Topology.cluster(DGX1, 3))
    cluster.allocate("other", tp.Placement((9, 10, 12, 13, 14, 15), topology=cluster.topology))
    placement = tp.policies.Collective().place(RING[2], cluster)
    assert placement is not None
    assert collective.ring_bandwidth(DGX1, [0, 3]) == 40
    assert set(placement.gpus) == {8, 11}
    assert placement.scores["ring_bandwidth"] == 40


def test_a_flat_topology_of_several_machines():
    """Without a fabric, too, a job goes to the one machine whose GPUs have the best rings."""
    links = [(0, 1, 20.0), (1, 2, 20.0), (0, 2, 20.0), (3, 4, 40.0), (4, 5, 40.0), (3, 5, 40.0)]
    topology = tp.Topology.from_links(6, links, 5.0, machines=["a"] * 3 + ["b"] * 3)
    placement = tp.policies.Collective().place(RING[2], tp.Cluster(topology))
    assert placement is not None
    assert placement.gpus == (3, 4)
    across = tp.policies.Collective().place(RING[4], tp.Cluster(topology))
    assert across is not None
    assert across.scores["bottleneck_bandwidth"] == 12.5
    assert across.scores["ring_bandwidth"] == collective.ring_bandwidth(topology, across.gpus) == 12.5
    assert tp.policies.Collective(20.0).place(RING[4], tp.Cluster(topology)) is None


def test_edges_need_links():
    """A ring of four in a star of links has none; a chain of three has one, although other sets rate higher."""
    star = tp.Topology.from_links(5, [(0, 1, 10.0), (0, 2, 20.0), (3, 4, 40.0)], 0.0)
    policy = tp.policies.Collective()
    assert policy.place(RING[4], tp.Cluster(star)) is None
    chain = policy.place(tp.JobGraph.chain(3), tp.Cluster(star))
    assert chain is not None
    assert set(chain.gpus) == {0, 1, 2}
    pair = policy.place(RING[2], tp.Cluster(star))
    assert pair is not None
    assert set(pair.gpus) == {3, 4}


def test_explanations_are_in_order():
    cluster = tp.Cluster(DGX1)
    cluster.allocate("other", (1, 2))
    policy = tp.policies.Collective()
    explained = policy.explain(RING[3], cluster, top=20)
    keys = [policy.order(RING[3], one) for one in explained.candidates]
    assert keys == sorted(keys)
    assert len({frozenset(one.gpus) for one in explained.candidates}) == 20
    assert explained.candidates[0] == policy.place(RING[3], cluster)


def test_large_machines_take_the_fastest_slowest_link():
    topology = tp.Topology.from_links(70, [(60, 61, 40.0)], 5.0)
    placement = tp.policies.Collective().place(RING[2], tp.Cluster(topology))
    assert placement is not None
    assert placement.gpus == (60, 61)


def test_rings_are_rated_on_machines_of_up_to_64_gpus():
    for size, rated in ((64, True), (65, False)):
        topology = tp.Topology.from_links(size, [(60, 61, 40.0)], 5.0)
        for one in (topology, tp.Topology.cluster(topology, count=2)):
            cluster = tp.Cluster(one)
            cluster.allocate("busy", range(60))
            placement = tp.policies.Collective().best(RING[2], cluster, frozenset(range(60, size)))
            assert placement is not None
            assert placement.gpus == (60, 61)
            assert ("lost_ring_bandwidth" in placement.scores) == rated


def test_on_large_machines_more_bandwidth_comes_first_at_equal_slowest_links():
    topology, policy = tp.Topology.from_links(70, [], 5.0), tp.policies.Collective()
    less, more = (
        tp.Placement(
            (0, 1, 2),
            topology=topology,
            scores={"bottleneck_bandwidth": 5.0, "aggregated_bandwidth": gb_per_s},
        )
        for gb_per_s in (15.0, 50.0)
    )
    assert policy.order(RING[3], more) < policy.order(RING[3], less)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_ring_bandwidth": float("nan")}, "min_ring_bandwidth = nan"),
        ({"rates": "nccl-1"}, "rates = 'nccl-1' is not one of"),
        ({"max_nodes": 0}, "max_nodes = 0"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        tp.policies.get("collective", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"score": "sum"}, "score = 'sum' is not one of effective_bandwidth, collective"),
        ({"score": "collective", "force_eq2": True}, 'score = "collective" is neither'),
        ({"score": "collective", "tie_break": "artifact"}, 'score = "collective" is neither'),
    ],
)
def test_wrong_scores_of_preserve_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        tp.policies.get("mapa-preserve", **options)


@st.composite
def ringed_clusters(draw):
    """Draw up to three machines of NVLinks and PCIe, with or without a fabric, some of whose GPUs are busy."""
    size, count = draw(st.integers(2, 4)), draw(st.integers(1, 3))
    speeds = st.sampled_from([0.0, 20.0, 40.0])
    pairs = list(combinations(range(size), 2))
    kinds = [[(u, v, draw(speeds)) for u, v in pairs] for _ in "ab"]
    chosen = [draw(st.sampled_from(kinds)) for _ in range(count)]
    default = draw(st.sampled_from([0.0, 12.0]))
    if draw(st.booleans()):
        machines = [
            tp.Topology.from_links(size, [one for one in links if one[2]], default) for links in chosen
        ]
        topology = tp.Topology.cluster(machines, network=12.5)
    else:
        links = [
            (size * i + u, size * i + v, gb_per_s)
            for i, links in enumerate(chosen)
            for u, v, gb_per_s in links
            if gb_per_s
        ]
        names = [f"m{i}" for i in range(count) for _ in range(size)]
        topology = tp.Topology.from_links(size * count, links, default, machines=names)
    cluster = tp.Cluster(topology)
    if busy := draw(st.sets(st.integers(0, topology.num_gpus - 1), max_size=4)):
        cluster.allocate("busy", sorted(busy))
    return cluster


@given(
    ringed_clusters(),
    st.sampled_from([tp.JobGraph.ring, tp.JobGraph.chain, tp.JobGraph.star, tp.JobGraph.independent]),
    st.integers(1, 3),
    st.data(),
)
def test_of_all_sets_on_one_machine_the_best_is_taken(cluster, pattern, size, data):
    """By the rings in steps of 10 %, then by what others lose there, then the lowest GPUs; all edges have links."""
    topology, job, policy = cluster.topology, pattern(size), tp.policies.Collective()
    free = cluster.free_gpus()
    required = data.draw(st.sets(st.sampled_from(free), max_size=1)) if free else set()
    rated = []
    for name, gpus in topology.gpus_of.items():
        machine = topology.machine(name)
        local = [i for i, gpu in enumerate(gpus) if gpu in free]
        for chosen in combinations(local, size):
            linked = any(
                all(machine.bandwidth(order[a], order[b]) for a, b, _ in job.edges)
                for order in permutations(chosen)
            )
            if linked and required <= {gpus[i] for i in chosen}:
                ring = collective.ring_bandwidth(machine, chosen) if size > 1 else 0.0
                harm = lost(machine, tuple(local), chosen)
                grade = -grade_of(ring) if job.edges else 0.0
                rated.append((grade, round(harm, 6), [gpus[i] for i in chosen], ring))
    placement = policy.best(job, cluster, frozenset(free), frozenset(required))
    if not rated:
        assert placement is None or len({int(topology.machine_of[gpu]) for gpu in placement.gpus}) > 1
        return
    assert placement is not None
    assert sorted(placement.gpus) == min(rated)[2]
    assert placement.optimal
    ring = min(rated)[3]
    assert placement.scores.get("ring_bandwidth", 0.0) == ring
    key = (0.0, -grade_of(ring) if job.edges else 0.0, placement.scores["lost_ring_bandwidth"])
    assert policy.order(job, placement) == key
    for least in (ring, ring + 0.5):
        waits = tp.policies.Collective(least).reason_to_wait(job, placement)
        assert (waits is not None) == (bool(job.edges) and size > 1 and least > ring)
