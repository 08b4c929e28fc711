"""`reference_place` agrees with a second brute force, and with searches that claim a proof."""

from __future__ import annotations

from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace.engine.requirements import BY_LEVEL, GROUPED
from topoplace.policies import Baseline, Greedy, MapaTopoAware, Preserve, SearchPolicy
from topoplace.testing import check_placement, reference_place
from topoplace.testing.strategies import (
    clusters,
    demanding_jobs,
    job_graphs,
    partitioned_topologies,
    sliced_topologies,
    topologies,
)

MACHINES = topologies(max_gpus=6) | partitioned_topologies() | sliced_topologies(max_gpus=2)
CLUSTER = tp.Cluster(tp.machines.get("dgx1-v100"))


@given(job_graphs(max_tasks=4), clusters(topologies(max_gpus=5)))
def test_no_placement_is_better(job: tp.JobGraph, cluster: tp.Cluster) -> None:
    bandwidth = cluster.topology.bandwidth_matrix()
    sums = [
        sum(bandwidth[gpus[a], gpus[b]] for a, b, _ in job.edges)
        for chosen in combinations(cluster.free_gpus(), job.num_tasks)
        for gpus in permutations(chosen)
        if all(bandwidth[gpus[a], gpus[b]] for a, b, _ in job.edges)
    ]
    placement = reference_place(job, cluster)
    assert (placement and placement.scores["aggregated_bandwidth"]) == max(sums, default=None)


@given(
    job_graphs(max_tasks=4) | demanding_jobs(),
    clusters(MACHINES, know_hosts=True),
    st.sampled_from([Baseline(), MapaTopoAware(), Greedy(), Preserve()]),
)
def test_a_proven_placement_is_the_best(job: tp.JobGraph, cluster: tp.Cluster, policy: SearchPolicy) -> None:
    try:
        best = reference_place(job, cluster, policy.order)
    except ValueError as error:
        field = str(error).partition(" = ")[0]
        if field not in GROUPED:  # which the reference never divides a job by
            with pytest.raises(ValueError, match=f"{field}|cannot be honoured"):
                policy.place(job, cluster)
        return
    if BY_LEVEL.intersection(job.requirements) - policy.honoured_on(cluster):  # machines without a fabric
        with pytest.raises(ValueError, match="cannot be honoured"):
            policy.place(job, cluster)
        return
    placement = policy.place(job, cluster)
    if best is None:
        assert placement is None
    else:
        check_placement(best, job, cluster)
        if placement and placement.optimal:
            assert sorted(placement.gpus) == sorted(best.gpus)
            assert policy.order(job, placement) == pytest.approx(policy.order(job, best))


def test_requirements_are_met() -> None:
    pair = tp.JobGraph.ring(2)
    topology = tp.Topology.cluster(
        {"a": tp.machines.get("minsky"), "b": tp.machines.get("minsky")}, network=12.5
    )
    cluster = tp.Cluster(topology, tp.HostResources(cpus=8, memory_gb=64.0))
    placement = reference_place(pair.with_(cpus=16), cluster)
    assert placement is not None
    assert placement.gpus == (0, 4)
    assert [(share.machine, share.cpus) for share in placement.hosts] == [(0, 8), (1, 8)]
    assert reference_place(pair.with_(cpus=16, single_machine=True), cluster) is None
    apart = reference_place(pair.with_(anti_affinity=True), cluster)
    assert apart is not None
    assert apart.gpus == (0, 4)


def test_smaller_memory_comes_first() -> None:
    small, large = (tp.Topology.from_links(2, [], 12.0, memory_gb=memory) for memory in (16.0, 32.0))
    cluster = tp.Cluster(tp.Topology.cluster({"large": large, "small": small}, network=12.5))
    placement = reference_place(tp.JobGraph.ring(2).with_(gpu_memory_gb=8), cluster)
    assert placement is not None
    assert placement.gpus == (2, 3)


def test_what_it_cannot_try_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^drives = 1 cannot be honoured: reference_place gives"):
        reference_place(tp.JobGraph.ring(2).with_(drives=1), CLUSTER)
    with pytest.raises(
        ValueError, match="57657600 orders of GPUs to try; reference_place tries at most 100000"
    ):
        reference_place(tp.JobGraph.ring(7), tp.Cluster(tp.machines.get("cubemesh-16")))
