"""Policies that let jobs share GPUs, and jobs without GPUs."""

from __future__ import annotations

from itertools import chain

import pytest

import topoplace as tp
from topoplace.engine.machine_state import ClusterView
from topoplace_lab.sharing.expected_fragmentation import TypicalJobs
from topoplace_lab.sharing.fragments import gpus_left

NAMES = tp.policies.names(sharing=True)


@pytest.mark.parametrize("name", NAMES)
def test_a_job_of_memory_alone_needs_no_cpus_and_one_of_cpus_alone_no_memory(name: str) -> None:
    policy, hosts = tp.policies.get(name), [tp.HostResources(0, 8.0), tp.HostResources(4, 0.0)]
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("minsky"), count=2), hosts)
    for needs, machine in (({"memory_gb": 8.0}, 0), ({"cpus": 4.0}, 1)):
        job = tp.JobGraph.without_gpus(**needs)
        placement = policy.place(job, cluster)
        assert placement is not None
        assert placement.gpus == ()
        assert placement.hosts == (tp.HostShare(machine, needs.get("cpus", 0), needs.get("memory_gb", 0.0)),)
        cluster.allocate(str(machine), placement)
        refusal = policy.explain(job, cluster).refusal
        assert refusal is not None
        assert not refusal.permanent
        assert refusal.reason.startswith("cannot start now: needs ")
        assert refusal.reason.endswith(", and no machine has that free")
        larger = tp.JobGraph.without_gpus(**{what: amount + 0.001 for what, amount in needs.items()})
        never = policy.explain(larger, cluster).refusal
        assert never is not None
        assert never.permanent


@pytest.mark.parametrize("name", NAMES)
def test_a_machine_of_the_highest_score_comes_first_and_shares_go_to_gpus_in_use(name: str) -> None:
    half = tp.JobGraph.independent(1).with_(gpu_fraction=0.5)
    cluster = tp.Cluster(tp.machines.get("minsky"))
    cluster.allocate("running", [2], half)
    explained = tp.policies.get(name).explain(half, cluster)
    assert len(explained.candidates) == 1
    if "random" not in name and "choices" not in name:
        assert explained.candidates[0].gpus == (2,)


def test_what_is_left_and_the_part_of_it_that_typical_jobs_cannot_use() -> None:
    """GPUs without CPUs next to them count as a fragment only once no typical job fits the machine."""
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("minsky"), count=2), tp.HostResources(2, 32.0))
    one, pair = tp.JobGraph.independent(1).with_(cpus=1), tp.JobGraph.independent(2)
    typical = TypicalJobs({one: 3, pair: 1})
    assert gpus_left(cluster, typical) == (8.0, 0.0)
    cluster.allocate("a", [0, 1, 2])
    assert gpus_left(cluster, typical) == (5.0, 0.25)  # the pair does not fit the first machine
    cluster.allocate("half", [3], tp.JobGraph.independent(1).with_(gpu_fraction=0.5))
    assert gpus_left(cluster, typical) == (4.5, 0.5)  # and now nothing does


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_without_utilities_has_no_placement_of_more_than_none(name: str) -> None:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("minsky"), count=2))
    policy, view = tp.policies.get(name), cluster.view(ClusterView)
    options = policy._machine_options(view.request(tp.JobGraph.ring(2)), view)
    assert options.best(0.0) is not None
    assert sorted(chain.from_iterable(options.ranked_machines(0.0))) == [0, 1]
    assert options.best(0.5) is None
    assert [*options.ranked_machines(0.5)] == []
