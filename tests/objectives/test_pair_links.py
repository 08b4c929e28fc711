"""The links and distances of many pairs at once, against asking the topology for each."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

import topoplace as tp
from topoplace.objectives import communication_cost
from topoplace.objectives.effective_bandwidth import EffectiveBandwidth
from topoplace.objectives.links import job_link_scores, link_scores, scores_in
from topoplace.objectives.pair_links import PairLinks, class_of, communication_cost_from
from topoplace.testing.strategies import cluster_topologies
from topoplace.topology.links.distance import DistanceWeights

WEIGHTS = DistanceWeights(direct=1.5, host=7.0, system=30.25, network=111.1, levels={"rack": 3.3})


@given(cluster_topologies(), st.integers(0, 1000), st.booleans())
def test_many_pairs_at_once_are_as_one_by_one(topology: tp.Topology, seed: int, weighted: bool) -> None:
    if weighted:
        topology = topology.with_distances(WEIGHTS)
    random, n = Random(seed), topology.num_gpus
    pairs = np.array([(random.randrange(n), random.randrange(n)) for _ in range(30)])
    u, v = pairs.T
    for _ in range(2):  # the second time they are known
        number, known = topology.derived(PairLinks).of(u, v)
        links = [topology.link(a, b) for a, b in pairs.tolist()]
        assert known.speeds[number].tolist() == [link.gb_per_s for link in links]
        assert known.classes[number].tolist() == [class_of(link) for link in links]
        assert known.distances[number].tolist() == [topology.distance(a, b) for a, b in pairs.tolist()]


@given(cluster_topologies(), st.integers(0, 1000))
def test_scores_of_a_gang_are_equal_to_the_last_bit(topology: tp.Topology, seed: int) -> None:
    assume(topology.num_gpus > 1)
    random = Random(seed)
    size = min(topology.num_gpus, random.randint(2, 24))
    gpus = random.sample(range(topology.num_gpus), size)
    pairs = [(a, b) for b in range(size) for a in range(b)]
    chosen = random.sample(pairs, random.randint(1, len(pairs)))
    job = tp.JobGraph.from_edges(size, [(a, b, random.uniform(0.1, 9)) for a, b in chosen])
    links = {u: {v: topology.link(u, v) for v in gpus} for u in gpus}
    bandwidth = {u: {v: link.gb_per_s for v, link in row.items()} for u, row in links.items()}
    classes = {u: {v: class_of(link) for v, link in row.items()} for u, row in links.items()}
    plain = scores_in(job.edges, gpus, bandwidth, classes)
    assert job_link_scores(job, gpus, topology) == link_scores(job.edges, gpus, topology) == plain
    distance = {u: {v: topology.distance(u, v) for v in gpus} for u in gpus}
    assert communication_cost(job, gpus, topology) == communication_cost_from(job.edges, gpus, distance)


def test_a_model_of_others_rates_the_links_of_a_gang() -> None:
    fabric = tp.Fabric.regular(2, {"rack": 2})
    topology = tp.Topology.cluster(tp.machines.get("dgx1-v100"), fabric=fabric)
    model = EffectiveBandwidth([1.0] * 14)
    job = replace(tp.JobGraph.ring(12), name="gang")
    scores = link_scores(job.edges, range(2, 14), topology, model)
    assert (
        scores["effective_bandwidth"] != link_scores(job.edges, range(2, 14), topology)["effective_bandwidth"]
    )
