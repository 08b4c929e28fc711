"""Jobs that need partitions of several machines, or a partition and GPUs outside partitions: brute force agrees."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from thoroughness import for_each_policy
from topoplace.engine.gpu_sets import largest_union, unions
from topoplace.engine.plan import QueuedJob
from topoplace.policies import DRMaestro
from topoplace.testing.reference import reference_place
from topoplace.testing.strategies import job_graphs, partitioned_topologies, topologies

POLICIES = tuple(tp.policies.names())
ANYWHERE = tuple(name for name in POLICIES if name != "g-queue")
"""The policies that may give one process GPUs of several machines."""
PLAIN = tp.Topology.from_links(2, [], 12.0)
PAIR = replace(PLAIN, partitions=((0, 1),))


@st.composite
def mixed_topologies(draw: st.DrawFn) -> tp.Topology:
    """Generate clusters of two or three machines of up to three GPUs, with and without partitions."""
    machine = partitioned_topologies(max_gpus=3) | topologies(max_gpus=3, max_machines=1)
    machines = draw(st.lists(machine, min_size=2, max_size=3))
    return tp.Topology.cluster(machines, network=draw(st.sampled_from([12.5, 12.5, 0.0])))


@st.composite
def mixed_clusters(draw: st.DrawFn) -> tp.Cluster:
    cluster = tp.Cluster(draw(mixed_topologies()))
    for gpu in draw(st.sets(st.integers(0, cluster.topology.num_gpus - 1), max_size=2)):
        cluster.drain(gpu)
    return cluster


@pytest.mark.parametrize("name", ANYWHERE)
@for_each_policy()
@given(job=job_graphs(max_tasks=5), cluster=mixed_clusters())
def test_a_job_is_placed_exactly_if_brute_force_finds_a_place(
    name: str, job: tp.JobGraph, cluster: tp.Cluster
) -> None:
    if name == "least-time" and job.name == "tree":  # its ring also joins tasks that have no edge
        job = tp.JobGraph.from_edges(job.num_tasks, job.edges)
    policy, possible = tp.policies.get(name), reference_place(job, cluster) is not None
    if name in ("drmaestro", "r-queue"):  # which need no links
        possible = reference_place(tp.JobGraph.independent(job.num_tasks), cluster) is not None
    found, explained = policy.place(job, cluster), policy.explain(job, cluster)
    started = dict(policy.plan([QueuedJob("job", job)], cluster, 0.0).start)
    assert (found is not None) == (explained.refusal is None) == ("job" in started) == possible
    if found is not None:
        assert not set(found.gpus) & set(cluster.drained_gpus())
        cluster.allocate("job", found)


@pytest.mark.parametrize("name", POLICIES)
@for_each_policy()
@given(job=job_graphs(max_tasks=5), cluster=mixed_clusters(), data=st.data())
def test_never_is_said_only_where_the_idle_cluster_has_no_place(
    name: str, job: tp.JobGraph, cluster: tp.Cluster, data: st.DataObject
) -> None:
    job = job.with_(**data.draw(st.sampled_from([{}, {"single_machine": True}, {"anti_affinity": True}])))
    policy, idle = tp.policies.get(name), tp.Cluster(cluster.topology)
    explained = policy.explain(job, cluster).refusal
    planned = policy.plan([QueuedJob("job", job)], cluster, 0.0).reject
    if planned or (explained is not None and explained.permanent):
        assert policy.place(job, idle) is None
        assert name == "g-queue" or reference_place(job, idle) is None


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("count", [1, 2])
def test_a_partition_and_gpus_of_another_machine(name: str, count: int) -> None:
    cluster = tp.Cluster(tp.Topology.cluster([PAIR, PLAIN]))
    job = tp.JobGraph.independent(4).with_(processes=2 if name == "g-queue" else count)
    placement = tp.policies.get(name).place(job, cluster)
    assert placement is not None
    assert sorted(placement.gpus) == [0, 1, 2, 3]
    cluster.allocate("job", placement)


@pytest.mark.parametrize("name", ANYWHERE)
def test_sizes_that_add_up_in_one_way_only(name: str) -> None:
    """Of machines that give three or two GPUs, four are two times two, and never three and one."""
    three = replace(tp.Topology.from_links(3, [], 12.0), partitions=((0, 1, 2),))
    cluster = tp.Cluster(tp.Topology.cluster([three, PAIR, PAIR]))
    placement = tp.policies.get(name).place(tp.JobGraph.independent(4), cluster)
    assert placement is not None
    assert sorted(placement.gpus) == [3, 4, 5, 6]
    refusal = tp.policies.get(name).explain(tp.JobGraph.independent(6), cluster).refusal
    assert refusal is not None
    assert refusal.permanent


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("apart", [False, True])
def test_a_machine_without_cpus_gives_no_partition_to_a_local_process(name: str, *, apart: bool) -> None:
    single = replace(PLAIN, partitions=((0,), (1,)))
    hosts = [tp.HostResources(cpus, 64.0) for cpus in (0, 4, 4)]
    cluster = tp.Cluster(tp.Topology.cluster([single] * 3), hosts=hosts)
    job = tp.JobGraph.independent(2).with_(cpus=4, processes=2, anti_affinity=apart)
    policy = DRMaestro(disaggregate=False) if name == "drmaestro" else tp.policies.get(name)
    placement = policy.place(job, cluster)
    assert placement is not None
    assert {gpu // 2 for gpu in placement.gpus} == {1, 2}
    cluster.allocate("job", placement)


@given(
    st.lists(st.lists(st.integers(1, 5), max_size=4, unique=True), max_size=4),
    st.integers(0, 9),
    st.integers(0, 9),
)
def test_unions_are_all_that_there_are(sizes: list[list[int]], least: int, most: int) -> None:
    groups = [[(size, (machine, size)) for size in group] for machine, group in enumerate(sizes)]
    every = [[one for one in chosen if one] for chosen in product(*([*group, 0] for group in sizes))]
    totals = [sum(chosen) for chosen in every if sum(chosen) <= most]
    assert largest_union(groups, most) == max(totals)
    found = [[size for _, size in union] for union in unions(groups, least, most)]
    assert found == [chosen for chosen in every if least <= sum(chosen) <= most]  # earlier ones are preferred
