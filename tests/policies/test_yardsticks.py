"""What a placement is measured by: the lowest free GPUs, and the best of the idle cluster."""

from __future__ import annotations

import math
import random
from itertools import product

import pytest

import topoplace as tp
from topoplace.objectives.job_bandwidth import placed_bandwidth
from topoplace.policies.yardsticks import yardsticks
from topoplace.testing import check_placement

JOBS = (
    tp.JobGraph.ring(4),
    tp.JobGraph.allreduce(3),
    tp.JobGraph.chain(5),
    tp.JobGraph.parallel(tensor=2, data=3),
)


def half_busy(topology: tp.Topology, seed: int) -> tp.Cluster:
    cluster = tp.Cluster(topology)
    cluster.allocate("busy", random.Random(seed).sample(range(topology.num_gpus), topology.num_gpus // 3))
    return cluster


def placed(policy: str, job: tp.JobGraph, cluster: tp.Cluster) -> tp.Placement:
    placement = tp.policies.get(policy).place(job, cluster)
    assert isinstance(placement, tp.Placement)
    return placement


@pytest.mark.parametrize(
    ("machine", "policy"),
    [
        *product(
            ("dgx1-v100", "cubemesh-16", "mi250x", "dgx-h100"), ("least-time", "mapa-greedy", "topo-aware")
        ),
        *product(("gb200-nvl72",), ("least-time", "topo-aware")),
    ],
)
@pytest.mark.parametrize("job", JOBS, ids=lambda job: str(job.name) + str(job.num_tasks))
def test_no_figure_contradicts_another(machine: str, policy: str, job: tp.JobGraph) -> None:
    """What carries the bytes and how long they take say the same, and nothing is faster than the idle cluster."""
    cluster = half_busy(tp.machines.get(machine), seed=job.num_tasks)
    own = placed(policy, job, cluster)
    found = yardsticks(own, job, cluster)
    assert found is not None
    assert found.lowest is not None
    assert found.placed.seconds == own.time
    assert found.idle.seconds <= min(found.placed.seconds, found.lowest.seconds)
    for one in (found.placed, found.lowest, found.idle):
        carried = placed_bandwidth(tp.Placement(one.gpus, topology=cluster.topology, job=job))
        if one.gb_per_s:
            assert one.gb_per_s == pytest.approx(carried.gb_per_s)
            assert one.gb_per_s / found.placed.gb_per_s == pytest.approx(found.placed.seconds / one.seconds)
    if policy == "least-time":
        assert found.placed.seconds <= found.lowest.seconds * 1.01
    check_placement(tp.Placement(found.lowest.gpus, topology=cluster.topology), job, cluster)


def test_lowest_ids_of_a_machine_that_is_known() -> None:
    """GPUs 0 and 5 busy: 1, 2, 3, 4 have rings of 6 GB/s over the host, and 2, 3, 7, 6 of 40."""
    cluster = tp.Cluster(tp.machines.get("dgx1-v100"))
    cluster.allocate("busy", [0, 5])
    job = tp.JobGraph.ring(4)
    found = yardsticks(placed("least-time", job, cluster), job, cluster)
    assert found is not None
    assert found.lowest is not None
    assert (found.placed.gb_per_s, found.lowest.gb_per_s, found.idle.gb_per_s) == (40, 6, 80)
    assert found.lowest.gpus == (1, 2, 3, 4)
    assert dict(cluster.allocations) == {"busy": (0, 5)}


def test_lowest_ids_are_those_of_the_first_machine_with_room() -> None:
    """Who counts splits no job that a machine has room for."""
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx-h100"), 2))
    cluster.allocate("busy", range(5))
    job = tp.JobGraph.ring(4)
    found = yardsticks(placed("least-time", job, cluster), job, cluster)
    assert found is not None
    assert found.lowest is not None
    assert found.lowest.gpus == (8, 9, 10, 11)


@pytest.mark.parametrize(
    "demand",
    [{"single_machine": True}, {"anti_affinity": True}, {"max_machines": 2}, {"same_gpus": True}],
    ids=lambda demand: next(iter(demand)),
)
def test_lowest_ids_meet_what_the_job_requires(demand: dict[str, int]) -> None:
    cluster = half_busy(tp.Topology.cluster(tp.machines.get("dgx-a100"), 4), seed=4)
    job = tp.JobGraph.ring(4).with_(**demand)
    found = yardsticks(placed("least-time", job, cluster), job, cluster)
    assert found is not None
    assert found.lowest is not None
    check_placement(tp.Placement(found.lowest.gpus, topology=cluster.topology), job, cluster)


def test_the_share_of_a_step_follows_from_the_operations_and_the_peak() -> None:
    cluster = tp.Cluster(tp.machines.get("dgx-h100"))
    job = tp.JobGraph.parallel(tensor=8, traffic=tp.Traffic.of("llama3-8b"))
    found = yardsticks(placed("least-time", job, cluster), job, cluster)
    assert found is not None
    assert job.tflop is not None
    assert found.placed.step_s == pytest.approx(found.placed.seconds + job.tflop / (0.4 * 989.4))
    assert tp.JobGraph.ring(8).tflop is None
    assert math.isfinite(found.idle.seconds)


@pytest.mark.parametrize("job", [tp.JobGraph.ring(1), tp.JobGraph.independent(3)], ids=["one", "independent"])
def test_what_does_not_communicate_is_not_compared(job: tp.JobGraph) -> None:
    cluster = tp.Cluster(tp.machines.get("dgx-h100"))
    assert yardsticks(placed("least-time", job, cluster), job, cluster) is None
