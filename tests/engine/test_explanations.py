"""How many candidates an explanation has, what they are, and what is asked of arguments."""

from __future__ import annotations

import pytest

import topoplace as tp
from topoplace.engine.admission import GpuSet
from topoplace.engine.driver import QueueWalk
from topoplace.engine.policy import SearchPolicy
from topoplace.placement import Placement

NAMES = tp.policies.names()
MANY = tp.Topology.cluster(tp.machines.get("minsky"), count=8, network=12.5)


@pytest.mark.parametrize("name", NAMES)
def test_five_candidates_are_listed_unless_another_number_is_asked_for(name: str) -> None:
    policy, cluster, pair = (
        tp.policies.get(name),
        tp.Cluster(MANY, tp.HostResources(16, 64.0)),
        tp.JobGraph.ring(2),
    )
    explained = policy.explain(pair, cluster)
    assert len(explained.candidates) == 5
    assert explained.candidates[0] == policy.place(pair, cluster)
    assert policy.explain(pair, cluster, 1).candidates == explained.candidates[:1]
    most = policy.explain(pair, cluster, 1 << 30)
    assert most.candidates[:5] == explained.candidates
    assert len(most.candidates) >= 8
    assert len({frozenset(one.gpus) for one in most.candidates}) == len(most.candidates)
    for wrong in (0, (1 << 30) + 1):
        with pytest.raises(ValueError, match="top = "):
            policy.explain(pair, cluster, wrong)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_job_no_cluster_or_no_queue_is_refused_by_name(name: str) -> None:
    policy, cluster, pair = tp.policies.get(name), tp.Cluster(MANY), tp.JobGraph.ring(2)
    for method in (policy.place, policy.explain):
        with pytest.raises(ValueError, match=r"^job = 'a'"):
            method("a", cluster)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"^cluster = 'a'"):
            method(pair, "a")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^cluster = 'a'"):
        policy.plan((), "a", 0.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^queue\[0\] = 'a'"):
        policy.plan(("a",), cluster, 0.0)  # type: ignore[arg-type]


class Lowest(SearchPolicy):
    """A policy with the one method that it must have."""

    name = "lowest"

    def best(
        self, job: tp.JobGraph, cluster: tp.Cluster, free: GpuSet, required: GpuSet = frozenset()
    ) -> Placement | None:
        gpus = (*sorted(required), *sorted(free - required))[: job.num_tasks]
        return Placement(gpus, topology=cluster.topology, job=job)


@pytest.mark.parametrize("topology", [tp.machines.get("minsky"), MANY], ids=["machine", "cluster"])
def test_a_policy_without_an_order_lists_the_smallest_gpu_lists_first(topology: tp.Topology) -> None:
    cluster = tp.Cluster(topology)
    explained = Lowest().explain(tp.JobGraph.ring(3), cluster, 4)
    assert [one.gpus for one in explained.candidates] == [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]
    assert explained.complete
    assert Lowest().decision_budget().left is None
    assert repr(Lowest()) == "Lowest()"


def test_a_queue_stops_at_the_first_job_that_waits() -> None:
    cluster = tp.Cluster(tp.machines.get("minsky"))
    jobs = {"a": 3, "never": 5, "b": 2, "c": 1}
    queue = [tp.policies.QueuedJob(name, tp.JobGraph.ring(size)) for name, size in jobs.items()]
    plan = Lowest().plan(queue, cluster, 0.0)
    assert [name for name, _ in plan.start] == ["a"]
    assert [name for name, _ in plan.reject] == ["never"]
    assert plan.defer == ()
    assert cluster.num_free == 4
    rule = QueueWalk(Lowest(), cluster)
    assert rule.head_blocks
    assert rule.can_defer(queue[0].job)
    assert not rule.exhausted()


def test_a_requirement_that_a_policy_does_not_honour_is_refused_in_each_answer() -> None:
    cluster, job = tp.Cluster(MANY), tp.JobGraph.ring(2).with_(drives=1)
    with pytest.raises(ValueError, match="drives = 1 cannot be honoured: lowest gives no drives"):
        Lowest().place(job, cluster)
    refusal = Lowest().explain(job, cluster).refusal
    assert refusal is not None
    assert refusal.permanent
    plan = Lowest().plan(
        [tp.policies.QueuedJob("a", job), tp.policies.QueuedJob("b", tp.JobGraph.ring(2))], cluster, 0.0
    )
    assert [name for name, _ in plan.reject] == ["a"]
    assert [name for name, _ in plan.start] == ["b"]
