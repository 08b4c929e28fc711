"""Policies of one search see the machines of a cluster as they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

import brute_force
import topoplace as tp
from distributions import whole
from topoplace.engine.plan import QueuedJob
from topoplace.errors import SearchTimeoutError


@pytest.mark.parametrize("num_tasks", [4, 8])
@pytest.mark.parametrize(
    "name", [name for name in tp.policies.names() if "queue" not in name or "kueue" in name]
)
def test_an_unhealthy_gpu_is_used_once_it_is_repaired_and_never_because_it_is_undrained(
    name: str, num_tasks: int
) -> None:
    machine = tp.machines.get("minsky")
    broken = replace(
        machine, gpus=tuple(replace(gpu, healthy=False) if gpu.index == 1 else gpu for gpu in machine.gpus)
    )
    cluster = tp.Cluster(tp.Topology.cluster(broken, count=2))
    for target in (*cluster.topology.unhealthy_gpus, *cluster.topology.machine_names):
        cluster.drain(target)
        cluster.undrain(target)
    policy, job = tp.policies.get(name), tp.JobGraph.ring(num_tasks)
    found = policy.place(job, cluster)
    assert found is None or not set(found.gpus).intersection(cluster.topology.unhealthy_gpus)
    repaired = cluster.with_topology(tp.Topology.cluster(machine, count=2))
    placement = policy.place(job, repaired)
    assert placement is not None
    spreads = name in (
        "kubernetes-default",
        "least-time",
    )  # a ring over sockets is slower than one over adapters
    assert spreads or sorted(placement.gpus) == list(range(num_tasks))


def sparse() -> tp.Topology:
    """Return a machine of 30 GPUs with three links each, in which a search for a grid does not end in time."""
    links = [(i, (i + 1) % 30, 25.0) for i in range(30)] + [(i, i + 15, 25.0) for i in range(15)]
    return tp.Topology.from_links(30, links, 0.0)


GRID = tp.JobGraph.mesh((4, 5))
PLENTY = tp.Topology.from_links(20, [], 12.0)


def test_a_search_that_ends_without_a_result_does_not_keep_the_job_from_other_machines() -> None:
    policy = tp.policies.Preserve(max_nodes=2_000)
    alone = tp.Cluster(tp.Topology.cluster(sparse(), count=2))
    for _ in range(2):
        with pytest.raises(SearchTimeoutError, match="no embedding found"):
            policy.place(GRID, alone)
    cluster = tp.Cluster(tp.Topology.cluster([sparse(), sparse(), PLENTY, PLENTY]))
    placement = policy.place(GRID, cluster)
    assert placement is not None
    assert set(placement.gpus) == set(range(60, 80))
    explained = policy.explain(GRID, cluster)
    assert explained.candidates[0] == placement
    assert not explained.complete
    plan = policy.plan([QueuedJob("a", GRID), QueuedJob("b", GRID)], cluster, 0.0)
    assert [job for job, _ in plan.start] == ["a", "b"]


def test_an_explanation_has_as_much_work_for_each_machine_as_a_decision() -> None:
    """All searches for the best placements of these machines together visit more nodes than one decision may."""
    links = [(i, (i + step) % 24, 25.0) for i in range(24) for step in (1, 5)]
    machine = tp.Topology.from_links(24, links, 0.0)
    cluster = tp.Cluster(tp.Topology.cluster(machine, count=20))
    for number in range(20):
        cluster.drain(24 * number + number)
    policy = tp.policies.Preserve(max_nodes=1_000)
    policy.num_ranking_nodes = 1_000_000
    ring = tp.JobGraph.ring(12)
    placement, explained = policy.place(ring, cluster), policy.explain(ring, cluster, top=60)
    assert explained.candidates[0] == placement
    assert len({frozenset(candidate.gpus) for candidate in explained.candidates}) == 60


@pytest.mark.parametrize("name", ["baseline", "mapa-greedy", "mapa-preserve"])
def test_an_explanation_names_each_partition_of_each_machine_once(name: str) -> None:
    box = replace(tp.Topology.from_links(4, [(0, 1, 50.0)], 12.0), partitions=((0, 1), (2, 3)))
    cluster = tp.Cluster(tp.Topology.cluster(box, count=2))
    explained = tp.policies.get(name).explain(tp.JobGraph.ring(2), cluster, top=9)
    assert sorted(placement.gpus for placement in explained.candidates) == [(0, 1), (2, 3), (4, 5), (6, 7)]


@pytest.mark.parametrize("name", ["baseline", "mapa-greedy", "mapa-preserve"])
def test_a_cluster_of_one_machine_is_searched_as_the_machine_alone(name: str) -> None:
    machine, ring = tp.machines.get("minsky"), tp.JobGraph.ring(3)
    alone, one = tp.Cluster(machine), tp.Cluster(tp.Topology.cluster(machine, count=1))
    placements = [tp.policies.get(name).place(ring, cluster) for cluster in (alone, one)]
    assert [one and (one.gpus, one.optimal) for one in placements] == [((0, 1, 2), True)] * 2


@whole
@pytest.mark.parametrize("sizes", [(32.0, 16.0), (64.0, 32.0, 16.0)])
def test_gpus_of_the_smallest_memory_that_suffices_come_before_faster_links(sizes: tuple[float, ...]) -> None:
    """The more memory, the faster the links; the machines with most come first."""
    machines = [tp.Topology.from_links(2, [(0, 1, size)], 1.0, memory_gb=size) for size in sizes]
    cluster = tp.Cluster(tp.Topology.cluster(machines, network=1.0))
    ring = tp.JobGraph.ring(2).with_(bandwidth_sensitive=True)
    for name in ("mapa-greedy", "mapa-preserve", "topo-aware", "fgd"):
        policy = tp.policies.get(name)
        explained = policy.explain(ring.with_(gpu_memory_gb=10.0), cluster)
        chosen = [min(one.gpus) // 2 for one in explained.candidates]
        assert chosen == sorted(range(len(sizes)), reverse=True)
    assert tp.policies.get("mapa-greedy").place(ring, cluster).gpus == (0, 1)  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["baseline", "mapa-greedy", "mapa-preserve"])
def test_what_is_preserved_is_counted_on_all_machines(name: str) -> None:
    """Eight machines, one of them partly used: jobs of a machine, of a part, of several, and of shares."""
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx1-v100"), count=8, racks=2))
    cluster.allocate("other", [56, 57, 60])
    policy, inside = tp.policies.get(name), brute_force.preserved
    for job in (
        tp.JobGraph.ring(8).with_(bandwidth_sensitive=False),
        tp.JobGraph.ring(3),
        tp.JobGraph.ring(12),
        tp.JobGraph.ring(2).with_(gpu_fraction=0.5),
    ):
        for _ in range(2):
            for placement in policy.explain(job, cluster, top=3).candidates:
                free = cluster.gpus_with(job.gpu_fraction)
                left = [set(free).intersection(gpus) for gpus in cluster.topology.gpus_of.values()]
                expected = sum(inside(cluster.topology, gpus, placement.gpus) for gpus in left)
                assert placement.scores["preserved_bandwidth"] == pytest.approx(expected)
            chosen = policy.place(job, cluster)
            assert chosen is not None
            cluster.allocate(f"{cluster.num_free}", chosen, job)
