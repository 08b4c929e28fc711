"""Jobs with `anti_affinity` where GPUs of a machine have different links to other machines: brute force agrees."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from thoroughness import for_each_policy
from topoplace.engine.gpu_sets import one_per_machine
from topoplace.engine.plan import QueuedJob
from topoplace.objectives.pair_links import communication_cost
from topoplace.testing.reference import gpu_sets, reference_place, task_orders
from topoplace.testing.strategies import cluster_topologies, job_graphs
from topoplace.topology.fabric import Fabric, Level, numbered

NEED_LINKS = tuple(name for name in tp.policies.names() if name not in ("drmaestro", "g-queue", "r-queue"))
ANYWHERE = tuple(name for name in NEED_LINKS if name != "slurm-block")  # which waits for blocks with room
CROSS = tp.Topology.from_links(4, [(1, 2, 50.0)], 12.0, machines=["a", "a", "b", "b"], network=0.0)
"""Two machines, joined by a link of their GPUs 1 and 2 alone."""
PAIR = tp.JobGraph.ring(2).with_(anti_affinity=True)


def rails(machines: int, gpus: int, network: float = 1.0) -> tp.Topology:
    """Return machines whose GPUs of equal number meet on a rail, and others over a slow network."""
    fabric = Fabric(numbered("machine", machines), (Level("rail", ("all",) * machines, 50.0, rail=True),))
    machine = tp.Topology.from_links(gpus, [], 12.0)
    return tp.Topology.cluster([machine] * machines, fabric=fabric, network=network)


@st.composite
def joined_by_links(draw: st.DrawFn) -> tp.Topology:
    """Generate topologies of up to three machines with links between any GPUs."""
    n = draw(st.integers(2, 6))
    machines = draw(st.lists(st.sampled_from("abc"), min_size=n, max_size=n))
    pairs = st.sampled_from([(u, v) for v in range(n) for u in range(v)])
    links = [(u, v, draw(st.sampled_from([12.5, 50.0]))) for u, v in draw(st.lists(pairs, unique=True))]
    network = draw(st.sampled_from([0.0, 1.0]))
    return tp.Topology.from_links(n, links, 12.0, machines=machines, network=network)


@st.composite
def clusters(draw: st.DrawFn) -> tp.Cluster:
    cluster = tp.Cluster(draw(joined_by_links() | cluster_topologies(max_machines=3)))
    for gpu in draw(st.sets(st.integers(0, cluster.topology.num_gpus - 1), max_size=3)):
        cluster.drain(gpu)
    return cluster


@pytest.mark.parametrize("name", ANYWHERE)
@for_each_policy()
@given(job=job_graphs(min_tasks=2, max_tasks=3), cluster=clusters())
def test_a_job_is_placed_exactly_if_brute_force_finds_a_place(
    name: str, job: tp.JobGraph, cluster: tp.Cluster
) -> None:
    job, policy = job.with_(anti_affinity=True), tp.policies.get(name)
    possible = reference_place(job, cluster) is not None
    found, explained = policy.place(job, cluster), policy.explain(job, cluster)
    started = dict(policy.plan([QueuedJob("job", job)], cluster, 0.0).start)
    assert (found is not None) == (explained.refusal is None) == ("job" in started) == possible
    if found is not None:
        assert len(set(cluster.topology.machine_of[list(found.gpus)])) == job.num_tasks
        different = {frozenset(candidate.gpus) for candidate in explained.candidates}
        assert len(different) == len(explained.candidates)


@given(job=job_graphs(min_tasks=2, max_tasks=3), cluster=clusters())
def test_greedy_finds_the_most_bandwidth(job: tp.JobGraph, cluster: tp.Cluster) -> None:
    job = job.with_(anti_affinity=True)
    best, found = reference_place(job, cluster), tp.policies.get("mapa-greedy").place(job, cluster)
    assert (found and found.scores["aggregated_bandwidth"]) == (best and best.scores["aggregated_bandwidth"])
    assert not (found and found.optimal)


@pytest.mark.parametrize("name", NEED_LINKS)
def test_the_only_linked_gpus_are_found(name: str) -> None:
    placement = tp.policies.get(name).place(PAIR, tp.Cluster(CROSS))
    assert placement is not None
    assert sorted(placement.gpus) == [1, 2]


@pytest.mark.parametrize("name", ["mapa-greedy", "topo-aware"])
@pytest.mark.parametrize("machines", [2, 4, 40])
def test_all_gpus_are_on_one_rail(name: str, machines: int) -> None:
    """Four machines of eight rails have 4,096 sets of one GPU each, of which only those of one rail are fast."""
    cluster = tp.Cluster(rails(machines, 8))
    for machine, busy in ((0, (0, 1, 2)), (1, (0, 4, 5))):
        cluster.allocate(f"busy-{machine}", [8 * machine + gpu for gpu in busy])
    for gpu in range(16, 8 * machines):
        if gpu % 8 not in (2, 3, 7):
            cluster.drain(gpu)
    job = tp.JobGraph.ring(min(machines, 4)).with_(anti_affinity=True)
    placement = tp.policies.get(name).place(job, cluster)
    assert placement is not None
    assert len({gpu % 8 for gpu in placement.gpus}) == 1
    assert placement.scores["bottleneck_bandwidth"] == 50.0


@given(job=job_graphs(min_tasks=2, max_tasks=2), cluster=clusters())
def test_topo_aware_finds_the_least_communication_on_two_machines(
    job: tp.JobGraph, cluster: tp.Cluster
) -> None:
    job, topology = job.with_(anti_affinity=True), cluster.topology
    if topology.num_machines > 2:
        return
    found = tp.policies.get("topo-aware").place(job, cluster)
    every = (order for gpus in gpu_sets(job, cluster) for order in task_orders(job, gpus, cluster))
    costs = [communication_cost(job, gpus, topology) for gpus in every]
    assert (found and found.scores["communication_cost"]) == min(costs, default=None)


@given(joined_by_links() | cluster_topologies())
def test_gpus_with_equal_keys_have_equal_links_to_other_machines(topology: tp.Topology) -> None:
    keys, n = topology.pairs.attachments, range(topology.num_gpus)
    outside = [
        [topology.link(u, v) for v in n if topology.machine_of[u] != topology.machine_of[v]] for u in n
    ]
    for u, v in product(n, n):
        if topology.machine_of[u] == topology.machine_of[v] and (keys is None or keys[u] == keys[v]):
            assert outside[u] == outside[v]
    sets = one_per_machine(n, topology)
    assert sets[0] == tuple(gpus[0] for gpus in topology.gpus_of.values())
    assert len(set(sets)) == len(sets)


def test_each_of_64_kinds_of_gpu_gives_a_set() -> None:
    sets = one_per_machine(range(2 * 66), rails(2, 66))
    assert sets == [(gpu, 66 + gpu) for gpu in range(64)]


@pytest.mark.parametrize(("kinds", "number"), [(256, 256), (257, 64)])
def test_up_to_256_sets_are_all_returned(kinds: int, number: int) -> None:
    """Each GPU of the first machine with the first one of the second."""
    gpus = [*range(kinds), 257]
    assert one_per_machine(gpus, rails(2, 257)) == [(gpu, 257) for gpu in range(number)]


def test_of_gpus_that_are_equally_near_the_lowest_one_is_taken() -> None:
    """GPU i of the first machine has links to GPUs i and i + 1 of the second one."""
    links = [(i, 17 + j % 17, 50.0) for i in range(17) for j in (i, i + 1)]
    topology = tp.Topology.from_links(34, links, 12.0, machines=["a"] * 17 + ["b"] * 17, network=1.0)
    lowest_of_second, lowest_of_first = [min(j, (j + 1) % 17) for j in range(17)], range(16)
    assert one_per_machine(range(34), topology) == [
        *((i, 17 + j) for i, j in enumerate(lowest_of_second)),
        *((i, 17 + i + 1) for i in lowest_of_first),
    ]
