"""Rings over machines whose GPUs are not all alike, against every set of GPUs; moves, against every division."""

from __future__ import annotations

import math
from itertools import combinations, product
from random import Random

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, example, given, settings

import topoplace as tp

SLACK = 1.01
KINDS = {"ring": tp.JobGraph.ring, "allreduce": tp.JobGraph.allreduce}


def busy_machines(name: str, machines: int, busy: int, random: Random) -> tp.Cluster:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get(name), machines, racks=2))
    for i, gpu in enumerate(random.sample(cluster.free_gpus(), busy)):
        cluster.allocate(f"busy{i}", [gpu])
    return cluster


@given(
    st.sampled_from(["dgx1-v100", "dgx1-p100", "minsky", "mi300x"]),
    st.sampled_from(sorted(KINDS)),
    st.integers(3, 7),
    st.integers(0, 3),
    st.randoms(use_true_random=False),
)
def test_a_ring_is_as_fast_as_on_any_set(name: str, kind: str, size: int, more: int, random: Random) -> None:
    machine, job = tp.machines.get(name), KINDS[kind](size)
    machines = -(-2 * size // machine.num_gpus) + 1
    cluster = busy_machines(name, machines, machines * machine.num_gpus - size - more, random)
    free = np.bincount(cluster.topology.machine_of[list(cluster.free_gpus())])
    assume(free.max() < size)  # a job that fits one machine is split only if that is much faster
    every = [
        tp.communication_time(job, gpus, cluster.topology).seconds
        for gpus in combinations(cluster.free_gpus(), size)
    ]
    found = tp.place(job, cluster)
    assert found is not None
    assert found.time <= min(every) * SLACK
    assert found.bound is None or found.bound <= min(every) * (1 + 1e-9)
    assert not found.optimal or found.time <= min(every) * SLACK


@given(
    st.sampled_from(["dgx1-v100", "minsky", "mi300x"]),
    st.sampled_from([{"anti_affinity": True}, {"groups": (tp.Group((0, 1), within="machine"),)}]),
    st.sampled_from([None, 2]),
    st.sampled_from([4, 6]),
    st.randoms(use_true_random=False),
)
@settings(max_examples=40)
def test_what_a_ring_requires_holds_beside_its_bound(
    name: str, requirement: dict[str, object], grouped: int | None, size: int, random: Random
) -> None:
    cluster = busy_machines(name, 6, random.randint(0, 6), random)
    job = tp.JobGraph.ring(size)
    job = job.grouped(grouped, within="machine") if grouped else job.with_(**requirement)
    found = tp.place(job, cluster)
    if found is None:
        free = set(cluster.topology.machine_of[list(cluster.free_gpus())].tolist())
        assert job.anti_affinity
        assert len(free) < size
        return
    machines = cluster.topology.machine_of[list(found.gpus)].tolist()
    assert not job.anti_affinity or len(set(machines)) == size
    assert all(len({machines[task] for task in group.tasks}) == 1 for group in job.groups)
    assert found.bound is None or found.bound <= found.time * (1 + 1e-9)
    cluster.allocate("gang", found)
    front = tp.repair("gang", cluster, lost=[random.choice(found.gpus)])
    assert front.unrepaired or front.fewest


@pytest.mark.parametrize("seed", range(8))
def test_a_ring_over_sixteen_machines_is_proven(seed: int) -> None:
    random = Random(seed)
    cluster = busy_machines("dgx1-v100", 16, random.randrange(16, 72), random)
    found = tp.place(tp.JobGraph.ring(random.choice([24, 32, 48])), cluster)
    assert found is not None
    assert found.optimal


def fewest_moves(kept: list[int], room: list[int], size: int, least: int) -> float:
    """The moves of the best division in which each machine that is used has at least so many tasks; by its totals."""
    stay = {0: 0}
    for own, most in zip(kept, room, strict=True):
        reached: dict[int, int] = {}
        for total, count in product(stay, (0, *range(least, most + 1))):
            if total + count <= size:
                reached[total + count] = max(reached.get(total + count, -1), stay[total] + min(count, own))
        stay = reached
    return size - stay[size] if size in stay else math.inf


@given(st.sampled_from(sorted(KINDS)), st.sampled_from([16, 48, 64]), st.randoms(use_true_random=False))
@example("ring", 96, Random(3))
@settings(max_examples=20)
def test_a_large_gang_is_repaired_with_the_fewest_moves(kind: str, size: int, random: Random) -> None:
    machines = size // 8 + random.choice([2, 4, 8])
    cluster = busy_machines("dgx-h100", machines, random.randrange(8 * machines - size), random)
    placement = tp.place(KINDS[kind](size), cluster)
    assert placement is not None
    cluster.allocate("gang", placement)
    machine_of = cluster.topology.machine_of
    lost = set(random.sample(placement.gpus, random.randint(1, 4)))
    if random.random() < 0.5:
        lost |= {gpu for gpu in placement.gpus if machine_of[gpu] == machine_of[min(lost)]}
    assume(len(lost) < size)
    front = tp.repair("gang", cluster, lost=lost, timeout=60.0)
    kept = np.bincount(machine_of[[gpu for gpu in placement.gpus if gpu not in lost]], minlength=machines)
    room = kept + np.bincount(machine_of[list(cluster.free_gpus())], minlength=machines)
    least = [fewest_moves(kept.tolist(), room.tolist(), size, count) for count in range(1, 9)]
    assert bool(front.unrepaired) == math.isinf(least[0])
    if not front.unrepaired:
        assert front.complete
        counts = [
            np.bincount(machine_of[list(plan.placement.gpus)]) for plan in front.plans if plan.placement
        ]
        fewest = [int(one[one > 0].min()) for one in counts]  # the slowest machine has the fewest adapters
        moves = [plan.moved.all for plan in front.plans]
        assert moves == [least[count - 1] for count in fewest]
        assert moves == sorted({moved for moved in least if not math.isinf(moved)})


def machines_of_units(free: list[list[int]], units: int, size: int) -> list[tuple[int, ...]]:
    """Each way to put units of so many tasks on machines with these free GPUs."""
    room = [len(gpus) // size for gpus in free]
    every = product(range(len(free)), repeat=units)
    return [one for one in every if all(one.count(machine) <= most for machine, most in enumerate(room))]


def seconds_and_moves(
    job: tp.JobGraph,
    machines: tuple[int, ...],
    free: list[list[int]],
    old: dict[int, int],
    topology: tp.Topology,
) -> tuple[float, int]:
    """The time with each group on its machine, where tasks keep their old GPU if they can, and how many do not."""
    left = [list(gpus) for gpus in free]
    placed: dict[int, int] = {}
    tasks = [
        (task, machine) for group, machine in zip(job.groups, machines, strict=True) for task in group.tasks
    ]
    for task, machine in tasks:
        if old.get(task) in left[machine]:
            placed[task] = old[task]
            left[machine].remove(old[task])
    moves = job.num_tasks - len(placed)
    for task, machine in tasks:
        if task not in placed:
            placed[task] = left[machine].pop(0)
    gpus = [placed[task] for task in range(job.num_tasks)]
    return tp.communication_time(job, gpus, topology).seconds, moves


@given(
    st.sampled_from([(1, 4), (2, 2), (4, 1), (2, 1), (3, 1)]),
    st.sampled_from([2, 4]),
    st.randoms(use_true_random=False),
)
@settings(max_examples=40)
def test_groups_in_stages_are_as_fast_as_in_any_division(
    degrees: tuple[int, int], tensor: int, random: Random
) -> None:
    pipeline, data = degrees
    job = tp.JobGraph.parallel(tensor=tensor, pipeline=pipeline, data=data).grouped(
        "tensor", within="machine"
    )
    cluster = busy_machines("dgx-h100", 3, random.randint(0, 24 - job.num_tasks), random)
    topology = cluster.topology
    free = [[gpu for gpu in gpus if gpu in cluster.free_gpus()] for gpus in topology.gpus_of.values()]
    every = machines_of_units(free, pipeline * data, tensor)
    found = tp.place(job, cluster)
    assert (found is None) == (not every)
    if found is None:
        return
    least = min(seconds_and_moves(job, one, free, {}, topology)[0] for one in every)
    assert found.time <= least * SLACK
    assert found.bound is None or found.bound <= least * (1 + 1e-9)

    cluster.allocate("gang", found)
    lost = random.choice(found.gpus)
    old = {task: gpu for task, gpu in enumerate(found.gpus) if gpu != lost}
    left = [[gpu for gpu in gpus if gpu != lost] for gpus in free]
    front = tp.repair("gang", cluster, lost=[lost])
    repairs = [
        seconds_and_moves(job, one, left, old, topology)
        for one in machines_of_units(left, pipeline * data, tensor)
    ]
    assert bool(front.unrepaired) == (not repairs)
    if repairs:
        moves = [plan.moved.all for plan in front.plans]
        assert moves[0] == min(moved for _, moved in repairs)
        for plan, following in zip(front.plans, [*moves[1:], math.inf], strict=True):
            fastest = min(seconds for seconds, moved in repairs if moved < following)
            assert not front.complete or plan.time <= fastest * SLACK
