"""`defragment` keeps its word: the number of moves, and of further jobs that fit."""

from __future__ import annotations

import random
from typing import Any

import pytest

import topoplace as tp

RING = tp.JobGraph.ring


def scattered(num_machines: int, seed: int) -> tp.Cluster:
    """Return DGX-1V machines with jobs of 1, 2 and 4 GPUs, and some GPUs free on each."""
    topology = tp.Topology.cluster(tp.machines.get("dgx1-v100"), num_machines)
    cluster, draws = tp.Cluster(topology), random.Random(seed)
    for machine in range(num_machines):
        gpus = list(range(8 * machine, 8 * machine + 8))
        draws.shuffle(gpus)
        while len(gpus) > 2:
            size = min(len(gpus), draws.choice([1, 1, 2, 4]))
            taken, gpus = gpus[:size], gpus[size:]
            if draws.random() < 0.6:
                cluster.allocate(f"j{taken[0]}", taken, RING(size))
    return cluster


def how_many_fit(job: tp.JobGraph, cluster: tp.Cluster) -> int:
    policy = tp.policies.get("topo-aware-p")
    with cluster.what_if():
        number = 0
        while (placement := policy.place(job, cluster)) is not None:
            cluster.allocate(f"wanted {number}", placement)
            number += 1
        return number


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("moves", [1, 5, 20])
def test_as_many_jobs_fit_as_it_says(seed: int, moves: int) -> None:
    cluster = scattered(8, seed)
    before = cluster.snapshot()
    wanted = tp.JobGraph.clique(8).with_(single_machine=True)
    plan = tp.defragment(cluster, moves=moves)
    assert cluster.snapshot() == before
    assert plan.before == how_many_fit(wanted, cluster)
    assert len(plan.move) <= moves
    assert (plan.start, plan.preempt, plan.defer, plan.reject) == ((), (), (), ())
    running = dict(cluster.allocations)
    plan.carry_out(cluster)
    assert cluster.allocations.keys() == running.keys()
    assert how_many_fit(wanted, cluster) >= plan.after
    changed = {job_id for job_id, gpus in cluster.allocations.items() if gpus != running[job_id]}
    assert changed == {job_id for job_id, _ in plan.move}


def test_each_further_job_takes_the_fewest_moves() -> None:
    topology = tp.Topology.cluster(tp.machines.get("minsky"), 4)
    cluster = tp.Cluster(topology)
    for job_id, gpu in (("a", 0), ("b", 1), ("c", 4), ("d", 8), ("e", 9), ("f", 10), ("g", 12), ("h", 13)):
        cluster.allocate(job_id, [gpu], RING(1))
    plan = tp.defragment(cluster, moves=1)
    assert ([job_id for job_id, _ in plan.move], plan.before, plan.after) == (["c"], 0, 1)
    plan = tp.defragment(cluster, moves=3)
    assert (len(plan.move), plan.after) == (3, 2)
    assert tp.defragment(cluster, moves=0).move == ()
    plan = tp.defragment(cluster, moves=3, movable=["d"])
    assert (plan.move, plan.after) == ((), 0)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"cluster": 3}, "cluster = 3"),
    ({"job": 3}, "job = 3"),
    ({"moves": -1}, "moves = -1"),
    ({"moves": 1.5}, "moves = 1.5"),
    ({"movable": ["x"]}, r"movable\[0\] = 'x'"),
    ({"policy": "best"}, "'best'"),
    ({"min_bandwidth": 0}, "min_bandwidth = 0"),
    ({"timeout": -1}, "timeout = -1"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=[message for _, message in WRONG])
def test_wrong_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    given = {"cluster": scattered(1, 0), "job": RING(2), **arguments}
    with pytest.raises((ValueError, tp.AllocationError), match=message):
        tp.defragment(given.pop("cluster"), given.pop("job"), **given)
