"""The order in which MAPA's artifact compares sets of GPUs."""

from __future__ import annotations

import math
from itertools import combinations, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topoplace as tp
from topoplace.objectives import EffectiveBandwidth, link_class
from topoplace.objectives.effective_bandwidth import is_extrapolated
from topoplace.policies.mapa.search import MapaPolicy
from topoplace.testing.strategies import topologies
from topoplace_lab.papers import mapa
from topoplace_lab.papers.mapa.artifact_order import (
    GreedyOfArtifact,
    PreserveOfArtifact,
    candidates_of,
    edges_of,
    place,
    preserved_bandwidth,
)


@pytest.mark.parametrize(
    ("pattern", "positions"),
    [
        (tp.JobGraph.ring(3), (1, 0, 2)),
        (tp.JobGraph.clique(3), (1, 0, 2)),
        (tp.JobGraph.ring(4), (2, 0, 1, 3)),
        (tp.JobGraph.clique(4), (2, 0, 1, 3)),
        (tp.JobGraph.ring(5), (3, 2, 0, 1, 4)),
        (tp.JobGraph.clique(5), (3, 0, 1, 2, 4)),
        (tp.JobGraph.star(5), (0, 1, 2, 3, 4)),
    ],
    ids=lambda value: f"{value.name}-{value.num_tasks}" if isinstance(value, tp.JobGraph) else "",
)
def test_sets_are_in_the_order_of_the_miner(pattern: tp.JobGraph, positions: tuple[int, ...]) -> None:
    topology = tp.Topology.from_links(8, [], 12.0)
    sets = sorted(
        combinations(range(8), pattern.num_tasks), key=lambda gpus: [gpus[position] for position in positions]
    )
    found = candidates_of(topology, pattern, EffectiveBandwidth()).members.tolist()
    assert found == list(map(list, sets))


def test_a_single_task_preserves_bandwidth_even_if_it_is_sensitive() -> None:
    topology = tp.Topology.from_links(3, [(0, 1, 50.0)], 12.0)
    job = tp.JobGraph.ring(1).with_(bandwidth_sensitive=True)
    placement = PreserveOfArtifact().place(job, tp.Cluster(topology))
    assert placement is not None
    assert placement.gpus == (2,)


MODEL = EffectiveBandwidth()
JOBS = st.builds(
    lambda pattern, size, sensitive: pattern(size).with_(bandwidth_sensitive=sensitive),
    st.sampled_from([tp.JobGraph.ring, tp.JobGraph.star, tp.JobGraph.clique]),
    st.integers(1, 5),
    st.booleans(),
)


def nvlinks_among(topology: tp.Topology, gpus: list[int]) -> float:
    """The sum of the speeds of the NVLinks between these GPUs."""
    classes = link_class(topology)
    return sum(topology.bandwidth(u, v) for u, v in combinations(gpus, 2) if classes[u, v] < 2)


@given(topologies(min_gpus=5, max_gpus=6), JOBS, st.data())
def test_every_set_has_the_scores_of_its_best_order(
    topology: tp.Topology, job: tp.JobGraph, data: st.DataObject
) -> None:
    """Of equally good orders, the first counts; a ring of two counts its link twice."""
    table, classes = candidates_of(topology, job, MODEL), link_class(topology)
    edges = [(a, b) for a, b, _ in job.edges] * (2 if (job.name, job.num_tasks) == ("ring", 2) else 1)
    assert [edge[:2] for edge in edges_of(job)] == edges

    def aggregated(gpus: tuple[int, ...]) -> float:
        return sum(topology.bandwidth(gpus[a], gpus[b]) for a, b in edges)

    def effective(gpus: tuple[int, ...]) -> float:
        used = [int(classes[gpus[a], gpus[b]]) for a, b in edges]
        return MODEL.of_counts(used.count(0), used.count(1), used.count(2))

    free = sorted(data.draw(st.sets(st.integers(0, topology.num_gpus - 1), min_size=1)))
    required = data.draw(st.sets(st.sampled_from(free), max_size=2))
    inside, preserved = table.allowed(free, required), table.preserved(free)
    for row, members in enumerate(table.members.tolist()):
        orders = list(permutations(members))
        for best, score, found in (
            (max(orders, key=aggregated), aggregated, (table.aggregated_order, table.aggregated)),
            (max(orders, key=effective), effective, (table.effective_order, table.effective)),
        ):
            assert tuple(found[0][row].tolist()) == best
            assert found[1][row] == pytest.approx(score(best))
        assert int(table.mask[row]) == sum(1 << gpu for gpu in members)
        assert table.inside[row] == pytest.approx(nvlinks_among(topology, members))
        assert inside[row] == (required <= set(members) <= set(free))
        if set(members) <= set(free):
            rest = [gpu for gpu in free if gpu not in members]
            assert preserved[row] == pytest.approx(nvlinks_among(topology, rest), abs=1e-9)
    assert preserved_bandwidth(free, topology) == pytest.approx(nvlinks_among(topology, free))


@pytest.mark.parametrize("rule", ["baseline", "topo-aware", "greedy", "preserve"])
@given(topologies(min_gpus=5, max_gpus=6), JOBS, st.data())
def test_a_rule_takes_the_first_of_the_best_sets(
    rule: str, topology: tp.Topology, job: tp.JobGraph, data: st.DataObject
) -> None:
    cluster, table = tp.Cluster(topology), candidates_of(topology, job, MODEL)
    free = sorted(data.draw(st.sets(st.integers(0, topology.num_gpus - 1), min_size=2)))
    cluster.allocate("busy", busy) if (busy := sorted(set(range(topology.num_gpus)) - set(free))) else None
    required = sorted(data.draw(st.sets(st.sampled_from(free), max_size=1)))
    rows = [i for i, row in enumerate(table.members.tolist()) if set(required) <= set(row) <= set(free)]
    placement = place(rule, job, cluster, free, required, MODEL)
    if not rows:
        assert placement is None
        return
    assert placement is not None
    order = table.aggregated_order
    near = 3 if topology.num_gpus == 6 else 4
    together = [i for i in rows if len({gpu // near for gpu in table.members[i].tolist()}) == 1]
    if rule == "topo-aware" and together and job.num_tasks < near:
        chosen, order = together[0], table.members
    elif rule == "greedy":
        chosen = max(rows, key=lambda i: table.aggregated[i])
    elif rule == "preserve" and job.bandwidth_sensitive and job.num_tasks > 1:
        chosen, order = max(rows, key=lambda i: table.effective[i]), table.effective_order
    elif rule == "preserve":
        chosen = max(rows, key=lambda i: (table.preserved(free)[i], table.aggregated[i]))
    else:
        chosen = rows[0]
    assert placement.gpus == tuple(order[chosen].tolist())
    assert not placement.optimal
    rest = [gpu for gpu in free if gpu not in placement.gpus]
    assert placement.scores["preserved_bandwidth"] == pytest.approx(nvlinks_among(topology, rest))
    links = [topology.bandwidth(placement.gpus[a], placement.gpus[b]) for a, b, _ in edges_of(job)]
    assert placement.scores["aggregated_bandwidth"] == pytest.approx(sum(links))
    extrapolated = is_extrapolated(placement.gpus, topology, MODEL)
    assert placement.scores["effective_bandwidth_extrapolated"] == float(extrapolated)


def test_what_the_artifact_has_no_order_for_is_refused() -> None:
    small, most, large = (tp.Topology.from_links(size, [], 12.0) for size in (31, 64, 65))
    for topology, job, message in (
        (small, tp.JobGraph.ring(5), "5 of 31 GPUs are too many orders to list"),
        (large, tp.JobGraph.ring(2), "2 of 65 GPUs are too many orders to list"),
        (most, tp.JobGraph.ring(6), "not for 'ring' of 6"),
        (most, tp.JobGraph.chain(3).with_(name="ring"), "whose edges are not those of a ring"),
    ):
        with pytest.raises(ValueError, match=message):
            candidates_of(topology, job, MODEL)
    assert len(candidates_of(most, tp.JobGraph.ring(2), MODEL).members) == 64 * 63 // 2
    assert math.comb(30, 5) * math.factorial(5) <= 20_000_000 < math.comb(31, 5) * math.factorial(5)


# ---- all rules -------------------------------------------------------------------------------------------------

SET_ORDER = {
    **{(name, 2): (0, 1) for name in ("ring", "star", "clique")},
    **{(name, 3): (1, 0, 2) for name in ("ring", "clique")},
    **{(name, 4): (2, 0, 1, 3) for name in ("ring", "clique")},
    **{("star", k): tuple(range(k)) for k in (3, 4, 5)},
    **{("ring", 5): (3, 2, 0, 1, 4), ("clique", 5): (3, 0, 1, 2, 4)},
}


def artifact_choice(
    policy: str, job: tp.JobGraph, topology: tp.Topology, free: tuple[int, ...]
) -> tuple[int, ...]:
    """The artifact's rules as loops: every set in its order, every order of it, the first strict maximum."""
    key = SET_ORDER[job.name, job.num_tasks]
    sets = sorted(combinations(free, job.num_tasks), key=lambda s: [s[i] for i in key])
    edges = [(a, b) for a, b, _ in job.edges] * (2 if (job.name, job.num_tasks) == ("ring", 2) else 1)
    classes = tp.objectives.link_class(topology)
    model = tp.objectives.EffectiveBandwidth()

    def aggregated(gpus: tuple[int, ...]) -> float:
        return sum(topology.bandwidth(gpus[a], gpus[b]) for a, b in edges)

    def effective(gpus: tuple[int, ...]) -> float:
        used = [int(classes[gpus[a], gpus[b]]) for a, b in edges]
        return model.of_counts(used.count(0), used.count(1), used.count(2))

    def preserved(gpus: tuple[int, ...]) -> float:
        rest = [gpu for gpu in free if gpu not in gpus]
        return sum(topology.bandwidth(u, v) for u, v in combinations(rest, 2) if classes[u, v] < 2)

    if policy == "mapa-topo-aware":
        size = 3 if topology.num_gpus == 6 else 4
        near = [s for s in sets if len({gpu // size for gpu in s}) == 1]
        if job.num_tasks < size and near:
            return near[0]
    if policy in ("mapa-topo-aware", "baseline"):
        return max(permutations(sets[0]), key=aggregated)
    candidates = [gpus for s in sets for gpus in permutations(s)]
    if policy == "mapa-preserve":
        score = effective if job.bandwidth_sensitive else lambda gpus: (preserved(gpus), aggregated(gpus))
        return max(candidates, key=score)
    return max(candidates, key=aggregated)


@pytest.mark.parametrize("kind", mapa.POLICIES.values())
@pytest.mark.parametrize("machine", mapa.MACHINES)
@given(data=st.data())
@settings(max_examples=8)
def test_a_choice_against_the_rules_of_the_artifact(
    kind: type[MapaPolicy], machine: str, data: st.DataObject
) -> None:
    topology = mapa.topology_of(machine)
    pattern = data.draw(st.sampled_from([tp.JobGraph.ring, tp.JobGraph.star, tp.JobGraph.clique]))
    job = pattern(data.draw(st.integers(2, 5))).with_(bandwidth_sensitive=data.draw(st.booleans()))
    most = min(topology.num_gpus, 8)
    free = tuple(sorted(data.draw(st.sets(st.integers(0, topology.num_gpus - 1), min_size=5, max_size=most))))
    cluster = tp.Cluster(topology)
    busy = sorted(set(range(topology.num_gpus)) - set(free))
    if busy:
        cluster.allocate("other", busy)
    placement = kind().place(job, cluster)
    assert placement is not None
    assert placement.gpus == artifact_choice(kind.name, job, topology, free)


@pytest.mark.parametrize("job", [tp.JobGraph.ring(6), tp.JobGraph.chain(3), tp.JobGraph.tree(4)])
def test_artifact_order_is_not_guessed(job: tp.JobGraph) -> None:
    cluster = tp.Cluster(tp.machines.get("dgx1-v100"))
    with pytest.raises(ValueError, match="rings, stars and cliques of 1 to 5 tasks"):
        GreedyOfArtifact().place(job, cluster)
