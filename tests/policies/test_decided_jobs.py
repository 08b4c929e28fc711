"""Jobs that were decided before go where a new decision puts them, whatever has happened since."""

from __future__ import annotations

import random
import sys
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import topoplace as tp
from topoplace.deciding.least_time import LeastTime
from topoplace.engine.machine_state import ClusterView

MACHINES = ("dgx1-v100", "dgx-h100", "summit", "minsky", "p4d.24xlarge")


def some_jobs(draws: random.Random) -> list[tp.JobGraph]:
    graphs = [
        tp.JobGraph.ring(draws.randint(1, 8)),
        tp.JobGraph.chain(3),
        tp.JobGraph.star(4),
        tp.JobGraph.independent(2),
        tp.JobGraph.ring(4).with_(single_machine=True),
        tp.JobGraph.ring(2).with_(cpus=2),
        tp.JobGraph.ring(2).with_(gpu_fraction=0.5),
        tp.JobGraph.ring(2).with_(min_utility=0.5),
        tp.JobGraph.parallel(tensor=2, data=2).grouped("tensor", within="socket"),
    ]
    return draws.sample(graphs, 3)


def some_cluster(draws: random.Random) -> tp.Cluster:
    parts = [tp.machines.get(draws.choice(MACHINES)) for _ in range(draws.randint(1, 2))]
    fabric = tp.Fabric.regular(4 * len(parts), {"leaf": 2})
    topology = tp.Topology.cluster([part for part in parts for _ in range(4)], fabric=fabric)
    hosts = [tp.HostResources(cpus=16, memory_gb=64.0)] * topology.num_machines
    return tp.Cluster(topology, hosts)


def change(cluster: tp.Cluster, draws: random.Random, number: int) -> None:
    """Start, end, drain or resume something."""
    kind = draws.randrange(4)
    free, gpu = cluster.free_gpus(), draws.randrange(cluster.topology.num_gpus)
    if kind == 0 and free:
        cluster.allocate(f"other {number}", sorted(draws.sample(free, draws.randint(1, min(6, len(free))))))
    elif kind == 1 and cluster.jobs:
        cluster.release(draws.choice(list(cluster.jobs)))
    elif kind == 2:
        cluster.drain(gpu)
    elif cluster.drained_gpus():
        cluster.undrain(cluster.drained_gpus()[0])


@given(st.integers(0, 10**6))
@example(107458)  # the same GPUs were offered where others were free
def test_a_job_decided_before_goes_where_a_new_decision_puts_it(seed: int) -> None:
    draws = random.Random(seed)
    cluster, policy = some_cluster(draws), tp.policies.get("least-time")
    jobs = some_jobs(draws)
    for number in range(12):
        job = draws.choice(jobs)
        found, anew = policy.place(job, cluster), tp.policies.get("least-time").place(job, cluster.copy())
        assert found == anew
        if found is not None and anew is not None:
            assert (found.scores, found.optimal, found.bound, found.job) == (
                anew.scores,
                anew.optimal,
                anew.bound,
                anew.job,
            )
            if draws.random() < 0.5:
                cluster.allocate(f"job {number}", found)
        change(cluster, draws, number)


def test_the_third_decision_of_a_job_takes_few_calls() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx-h100"), 100))
    cluster.allocate("other", list(range(0, 800, 3)))
    job, calls = tp.JobGraph.ring(4), 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    for _ in range(3):
        tp.place(job, cluster)
    sys.setprofile(count)
    try:
        tp.place(job, cluster)
    finally:
        sys.setprofile(None)
    assert calls <= 12


def test_only_so_many_decided_jobs_are_kept() -> None:
    cluster = tp.Cluster(tp.machines.get("dgx1-v100"))
    jobs = [tp.JobGraph.ring(2) for _ in range(3000)]
    for job in jobs:
        for _ in range(2):
            assert tp.place(job, cluster) is not None
    assert 0 < len(cluster.view(ClusterView).decided) <= 1024


def test_a_changed_option_counts_for_decided_jobs() -> None:
    fabric = tp.Fabric.regular(4, {"leaf": 2})
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("l40s-8"), fabric=fabric))
    job, policy = tp.JobGraph.ring(8), LeastTime(split=None)
    for _ in range(3):
        policy.place(job, cluster)
    policy.split = 1.0
    assert policy.place(job, cluster) == LeastTime(split=1.0).place(job, cluster.copy())


def test_a_subclass_decides_every_time() -> None:
    class Closed(LeastTime):
        is_open = True

        def find(self, job: tp.JobGraph, view: ClusterView, postponed: int = 0) -> tp.Placement | None:
            return super().find(job, view, postponed) if self.is_open else None

    policy, job, cluster = Closed(), tp.JobGraph.ring(2), tp.Cluster(tp.machines.get("dgx1-v100"))
    for _ in range(3):
        assert policy.place(job, cluster) is not None
    policy.is_open = False
    assert policy.place(job, cluster) is None


@pytest.mark.parametrize("cluster", [None, 5, "cluster"])
def test_a_wrong_cluster_is_refused_for_a_decided_job(cluster: object) -> None:
    job = tp.JobGraph.ring(2)
    for _ in range(3):
        tp.place(job, tp.Cluster(tp.machines.get("dgx1-v100")))
    with pytest.raises(ValueError, match="cluster"):
        tp.place(job, cluster)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "other",
    [{"bandwidth_sensitive": False}, {"tflop": 1e6}],
)
def test_a_job_waits_by_what_it_states_itself(other: dict[str, Any]) -> None:
    job = tp.JobGraph.from_edges(4, [(0, 1, 1.0), (1, 2, 4.0), (0, 3, 5.0)]).with_(bandwidth_sensitive=True)
    policy = tp.policies.get("least-time")

    def patience(first: tp.JobGraph | None) -> float:
        cluster = tp.Cluster(tp.Topology.cluster([tp.machines.get("dgx1-v100")] * 3))
        cluster.allocate("busy", range(5))
        if first is not None:
            policy.patience(first, cluster, 100.0)
        return policy.patience(job, cluster, 100.0)

    assert patience(job.with_(**other)) == patience(None) > 0
