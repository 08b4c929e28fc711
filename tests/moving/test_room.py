"""`make_room` against every choice of jobs on small machines, and its promises on larger ones."""

from __future__ import annotations

import math
import pickle
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, count, permutations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from distributions import whole
from topoplace.errors import DeadlineError
from topoplace.kernels.limits import deadline
from topoplace.moving import MoveCosts, attempts, many_machines
from topoplace.moving.cheapest_levels import CheapestLevels, Shortage
from topoplace.moving.movers import movers_of
from topoplace.moving.shortages import in_all, on_machines

STAY, MOVE, PREEMPT = 0, 1, 2
RING, CLIQUE = tp.JobGraph.ring, tp.JobGraph.clique


def cluster_of(
    topology: tp.Topology, held: dict[str, list[int]], drained: tuple[int, ...] = ()
) -> tp.Cluster:
    cluster = tp.Cluster(topology)
    for job_id, gpus in held.items():
        cluster.allocate(job_id, gpus, CLIQUE(len(gpus)))
    for gpu in drained:
        cluster.drain(gpu)
    return cluster


@st.composite
def busy_machines(draw: st.DrawFn) -> tuple[tp.Topology, dict[str, list[int]], tuple[int, ...]]:
    """One machine of 4 to 7 GPUs with random links, and jobs on some of its GPUs."""
    n = draw(st.integers(4, 7))
    pairs = list(combinations(range(n), 2))
    speeds = draw(st.lists(st.sampled_from([0.0, 25.0, 50.0]), min_size=len(pairs), max_size=len(pairs)))
    links = [(u, v, speed) for (u, v), speed in zip(pairs, speeds, strict=True) if speed]
    owners = draw(st.lists(st.sampled_from([None, "a", "b", "c", "d"]), min_size=n, max_size=n))
    held: dict[str, list[int]] = {}
    for gpu, owner in enumerate(owners):
        if owner:
            held.setdefault(owner, []).append(gpu)
    drained = draw(st.sets(st.integers(0, n - 1), max_size=2))
    return tp.Topology.from_links(n, links, 12.0), held, tuple(sorted(drained))


def fast_sets(topology: tp.Topology, job: tp.JobGraph, free: set[int], least: float) -> set[frozenset[int]]:
    """Return the sets of free GPUs on which the job's links all reach `least` GB/s, by trying every assignment."""
    return {
        frozenset(gpus)
        for gpus in permutations(sorted(free), job.num_tasks)
        if all(topology.link(gpus[a], gpus[b]).gb_per_s >= least for a, b, _ in job.edges)
    }


def least_cost(
    topology: tp.Topology,
    held: dict[str, list[int]],
    drained: tuple[int, ...],
    job: tp.JobGraph,
    least: float,
    costs: MoveCosts,
    movable: set[str],
) -> float:
    """Return the least cost over all choices of what happens to each job; moved jobs take any GPUs that are left."""
    best = math.inf
    healthy = set(range(topology.num_gpus)) - set(drained)
    for levels in product((STAY, MOVE, PREEMPT), repeat=len(held)):
        chosen = dict(zip(held, levels, strict=True))
        if any(level and job_id not in movable for job_id, level in chosen.items()):
            continue
        cost = sum(
            costs.of(job_id, len(held[job_id]))[level - 1] for job_id, level in chosen.items() if level
        )
        free = healthy - {gpu for job_id, gpus in held.items() if not chosen[job_id] for gpu in gpus}
        moved = sum(len(held[job_id]) for job_id, level in chosen.items() if level == MOVE)
        if cost < best and len(free) >= job.num_tasks + moved and fast_sets(topology, job, free, least):
            best = cost
    return best


@given(
    busy=busy_machines(),
    job=st.one_of(st.integers(1, 4).map(RING), st.integers(2, 4).map(CLIQUE)),
    least=st.sampled_from([12.0, 25.0, 50.0]),
    preempt=st.sampled_from([0.5, 3.0, math.inf]),
    factors=st.lists(st.sampled_from([0.5, 1.0, 1.7, math.inf]), min_size=4, max_size=4),
    movable=st.sets(st.sampled_from("abcd")),
)
def test_no_choice_of_jobs_is_cheaper(
    busy: Any, job: tp.JobGraph, least: float, preempt: float, factors: list[float], movable: set[str]
) -> None:
    topology, held, drained = busy
    movable &= held.keys()
    cluster = cluster_of(topology, held, drained)
    costs = MoveCosts(preempt_per_gpu=preempt, factors=dict(zip("abcd", factors, strict=True)))
    before = cluster.snapshot()
    plan = tp.make_room(
        job, cluster, movable=movable, cost=costs, policy="fcfs", min_bandwidth=least, timeout=60
    )
    assert cluster.snapshot() == before
    expected = least_cost(topology, held, drained, job, least, costs, movable)
    assert plan.cost == pytest.approx(expected)
    assert plan.optimal
    assert plan.bound == pytest.approx(expected)
    if math.isinf(expected):
        assert (plan.start, plan.move, plan.preempt) == ((), (), ())
        assert plan.defer or plan.reject
        return
    check(plan, cluster, costs)
    ((_, placement),) = plan.start
    speeds = (topology.link(placement.gpus[a], placement.gpus[b]).gb_per_s for a, b, _ in job.edges)
    assert min(speeds, default=math.inf) >= least


def check(plan: tp.Plan, cluster: tp.Cluster, costs: MoveCosts) -> None:
    """Carry the plan out on a copy; its cost is that of the jobs that really leave their GPUs."""
    after = cluster.copy()
    plan.carry_out(after)
    paid = 0.0
    for job_id, gpus in cluster.allocations.items():
        moving, preempting = costs.of(job_id, len(gpus))
        if job_id in plan.preempt:
            assert not after.gpus_of(job_id)
            paid += preempting
        elif job_id in dict(plan.move):
            assert set(after.gpus_of(job_id)) != set(gpus)
            assert after.jobs.get(job_id) == cluster.jobs.get(job_id)
            paid += moving
        else:
            assert after.gpus_of(job_id) == gpus
    assert paid == pytest.approx(getattr(plan, "cost", paid))


@given(
    owners=st.lists(st.sampled_from([None, "a", "b", "c", "d", "e"]), min_size=9, max_size=9),
    size=st.integers(2, 3),
    preempt=st.sampled_from([1.5, 4.0, math.inf]),
)
def test_moved_jobs_may_displace_others(owners: list[str | None], size: int, preempt: float) -> None:
    """Three machines of 3 GPUs; every job must be on one machine, so moved jobs have to be packed."""
    held: dict[str, list[int]] = {}
    for gpu, owner in enumerate(owners):
        if owner:
            held.setdefault(f"{owner}{gpu // 3}", []).append(gpu)
    topology = tp.Topology.cluster(tp.Topology.from_links(3, [], 12.0), 3)
    cluster = tp.Cluster(topology)
    for job_id, gpus in held.items():
        cluster.allocate(job_id, gpus, CLIQUE(len(gpus)).with_(single_machine=True))
    costs = MoveCosts(preempt_per_gpu=preempt)
    job = CLIQUE(size).with_(single_machine=True)
    plan = tp.make_room(job, cluster, cost=costs, policy="fcfs", timeout=60)
    expected = math.inf
    for levels in product((STAY, MOVE, PREEMPT), repeat=len(held)):
        cost = sum(
            costs.of(job_id, len(gpus))[level - 1]
            for (job_id, gpus), level in zip(held.items(), levels, strict=True)
            if level
        )
        if cost < expected:
            free = [3, 3, 3]
            moving = [size]
            for gpus, level in zip(held.values(), levels, strict=True):
                if level == STAY:
                    free[gpus[0] // 3] -= len(gpus)
                elif level == MOVE:
                    moving.append(len(gpus))
            if packed(moving, free):
                expected = cost
    assert plan.bound <= expected + 1e-9
    assert plan.cost >= expected - 1e-9
    assert not plan.optimal or plan.cost == pytest.approx(expected)
    if plan.start:
        check(plan, cluster, costs)


def packed(sizes: list[int], free: list[int]) -> bool:
    """Return True if jobs of these sizes fit into machines with these numbers of free GPUs, none on two."""
    if not sizes:
        return True
    for machine, room in enumerate(free):
        if room >= sizes[0]:
            left = [*free[:machine], room - sizes[0], *free[machine + 1 :]]
            if packed(sizes[1:], left):
                return True
    return False


def test_a_job_that_fits_displaces_nobody() -> None:
    cluster = cluster_of(tp.machines.get("dgx1-v100"), {"a": [0], "b": [5]})
    plan = tp.make_room(RING(4), cluster)
    assert (plan.move, plan.preempt, plan.cost, plan.optimal) == ((), (), 0.0, True)
    assert len(plan.start[0][1].gpus) == 4


def test_a_scattered_machine_is_rearranged_for_fast_links() -> None:
    cluster = cluster_of(tp.machines.get("dgx1-v100"), {"a": [0], "b": [2], "c": [4], "d": [6]})
    plan = tp.make_room(RING(3), cluster, min_bandwidth=25)
    assert (len(plan.move), plan.cost, plan.optimal) == (1, 1.0, True)
    assert plan.start[0][1].scores["bottleneck_bandwidth"] >= 25


def test_a_least_utility_is_respected_by_the_job_and_by_those_that_move() -> None:
    topology = tp.machines.get("minsky")  # two sockets of two GPUs
    cluster = tp.Cluster(topology)
    cluster.allocate("a", [0], RING(1))
    cluster.allocate("b", [2], RING(1))
    wanted = RING(2).with_(min_utility=0.9)
    plan = tp.make_room(wanted, cluster)
    assert [job_id for job_id, _ in plan.move] == ["a"]
    assert plan.start[0][1].scores["utility"] >= 0.9
    # a pair that needs a socket for itself cannot make room by being spread
    cluster = tp.Cluster(topology)
    cluster.allocate("pair", [0, 1], wanted)
    cluster.allocate("b", [2], RING(1))
    plan = tp.make_room(wanted, cluster, cost=MoveCosts(preempt_per_gpu=3))
    assert (plan.move, plan.preempt, plan.cost) == ((), ("b",), 3.0)


def test_jobs_are_pinned_and_weighed() -> None:
    cluster = cluster_of(tp.machines.get("minsky"), {"a": [0, 1], "b": [2, 3]})
    assert tp.make_room(RING(2), cluster, cost=MoveCosts(factors={"a": 2})).preempt == ("b",)
    assert tp.make_room(RING(2), cluster, cost=MoveCosts(factors={"b": 2})).preempt == ("a",)
    assert tp.make_room(RING(2), cluster, movable=["b"]).preempt == ("b",)
    assert tp.make_room(RING(2), cluster, cost=MoveCosts(factors={"a": math.inf})).preempt == ("b",)
    plan = tp.make_room(RING(2), cluster, movable=[])
    assert plan.defer[0][1].reason.startswith("no job may leave: cannot start now")
    assert (plan.cost, plan.optimal) == (math.inf, True)


def test_places_that_are_best_for_the_job_are_left_to_a_moved_one_that_fits_nowhere_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machines = {"three": tp.Topology.from_links(3, [], 12.0), "two": tp.Topology.from_links(2, [], 12.0)}
    on_one = CLIQUE(2).with_(single_machine=True)
    cluster = tp.Cluster(tp.Topology.cluster(machines))
    cluster.allocate("a", [0, 1, 3], CLIQUE(3).with_(single_machine=True))  # by hand, against its wish
    plan = tp.make_room(on_one, cluster, policy="fcfs", cost=MoveCosts(preempt=math.inf))
    assert plan.start[0][1].gpus == (3, 4)  # fcfs itself chooses 0 and 1
    assert [(job_id, where.gpus) for job_id, where in plan.move] == [("a", (0, 1, 2))]
    monkeypatch.setattr(attempts, "_MAX_TRIED", 1)
    unfinished = tp.make_room(on_one, cluster, policy="fcfs", cost=MoveCosts(preempt=math.inf))
    assert (unfinished.start, unfinished.bound) == ((), plan.cost)
    assert not unfinished.optimal


def test_a_job_whose_requirement_the_policy_refuses_does_not_move() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("minsky"), 2))
    cluster.allocate("alike", [0, 1], RING(2).with_(same_gpus=True))
    cluster.allocate("pinned", [4, 5])
    job = CLIQUE(4).with_(single_machine=True)
    costs = MoveCosts(factors={"pinned": math.inf})
    plan = tp.make_room(job, cluster, policy="mapa-greedy", cost=costs)
    assert (plan.move, plan.preempt) == ((), ("alike",))
    kept = tp.make_room(job, cluster, policy="mapa-greedy", cost=replace(costs, preempt=math.inf))
    assert (kept.start, kept.move, kept.preempt) == ((), (), ())
    assert "fit nowhere else" in kept.defer[0][1].reason


def test_a_job_that_never_fits_is_rejected() -> None:
    plan = tp.make_room(RING(5), cluster_of(tp.machines.get("minsky"), {"a": [0]}))
    assert plan.reject[0][1].permanent
    assert plan.start == ()


def test_jobs_that_find_no_place_are_named_as_the_reason() -> None:
    cluster = cluster_of(tp.machines.get("minsky"), {"a": [0, 1], "b": [2]})
    plan = tp.make_room(RING(2), cluster, cost=MoveCosts(preempt=math.inf))
    assert "fit nowhere else" in plan.defer[0][1].reason
    assert plan.optimal


@whole
def test_jobs_that_share_gpus_leave_them() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(tp.Topology.from_links(1, [], 12.0), 3))
    half = tp.JobGraph.independent(1).with_(gpu_fraction=0.5)
    for job_id, gpu in (("a", 0), ("b", 1), ("c", 2)):
        cluster.allocate(job_id, [gpu], half)
    plan = tp.make_room(tp.JobGraph.independent(1), cluster, policy="fgd")
    assert (len(plan.move), plan.cost, plan.optimal) == (1, 0.5, True)
    plan.carry_out(cluster)
    assert sorted(len(cluster.shares_of(gpu)) for gpu in range(3)) == [1, 1, 2]


def test_a_job_without_a_graph_keeps_its_models_and_stays_without_one() -> None:
    machines = {"old": tp.machines.get("minsky"), "new": tp.machines.get("dgx-a100")}
    cluster = tp.Cluster(tp.Topology.cluster(machines))
    cluster.allocate("plain", [0, 1, 2])
    plan = tp.make_room(CLIQUE(4).with_(gpu_model="P100"), cluster)
    assert plan.preempt == ("plain",)  # though the other machine is free, its GPUs are of another model
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("minsky"), 2))
    cluster.allocate("plain", [0])
    cluster.allocate("other", [4, 5])
    plan = tp.make_room(CLIQUE(4).with_(single_machine=True), cluster)
    assert [job_id for job_id, _ in plan.move] == ["plain"]
    plan.carry_out(cluster)
    assert "plain" not in cluster.jobs


def test_host_resources_are_made_free() -> None:
    topology = tp.Topology.cluster(tp.machines.get("minsky"), 2)
    cluster = tp.Cluster(topology, tp.HostResources(cpus=8, memory_gb=64))
    fcfs = tp.policies.get("fcfs")
    for job_id in ("a", "b"):
        job = RING(1).with_(cpus=6)
        placement = fcfs.place(job, cluster)
        assert placement is not None
        cluster.allocate(job_id, placement)
    plan = tp.make_room(RING(1).with_(cpus=4), cluster, policy="fcfs")
    assert (len(plan.preempt), plan.cost, plan.optimal) == (1, 10.0, True)
    plan.carry_out(cluster)


def test_large_clusters_are_proven_for_jobs_on_one_machine() -> None:
    num_machines = 30
    topology = tp.Topology.cluster(tp.machines.get("dgx1-v100"), num_machines)
    cluster = tp.Cluster(topology)
    for machine in range(num_machines):
        first = 8 * machine
        busy = 3 if machine == 17 else 5
        for gpu in range(busy):
            cluster.allocate(f"{machine}-{gpu}", [first + gpu], RING(1))
    plan = tp.make_room(CLIQUE(8).with_(single_machine=True), cluster)
    assert (plan.cost, plan.optimal) == (3.0, True)
    assert {job_id.split("-")[0] for job_id, _ in plan.move} == {"17"}
    check(plan, cluster, MoveCosts())


def test_jobs_on_several_machines_get_a_plan_and_a_bound() -> None:
    topology = tp.Topology.cluster(tp.machines.get("dgx1-v100"), 12)
    cluster = tp.Cluster(topology)
    for gpu in range(0, 96, 2):
        cluster.allocate(f"j{gpu}", [gpu], RING(1))
    plan = tp.make_room(RING(60), cluster)
    assert (len(plan.preempt), plan.cost, plan.optimal) == (12, 120.0, True)
    spread = tp.make_room(RING(24).with_(same_gpus=True), cluster)
    assert spread.start
    assert spread.bound <= spread.cost


def test_the_answer_is_the_same_each_time_and_after_pickling() -> None:
    cluster = cluster_of(tp.machines.get("cubemesh-16"), {f"j{i}": [i * 5 % 16] for i in range(12)})
    plans = [tp.make_room(RING(6), cluster, min_bandwidth=20) for _ in range(3)]
    assert plans[0] == plans[1] == plans[2]
    assert pickle.loads(pickle.dumps(plans[0])) == plans[0]
    assert pickle.loads(pickle.dumps(MoveCosts(factors={"a": 2}))) == MoveCosts(factors={"a": 2})


def test_time_that_is_up_leaves_a_bound() -> None:
    topology = tp.Topology.cluster(tp.machines.get("dgx1-v100"), 20)
    cluster = cluster_of(topology, {f"j{i}": [i] for i in range(0, 160, 2)})
    late = tp.make_room(CLIQUE(4), cluster, min_bandwidth=20, timeout=1e-9)
    plan = tp.make_room(CLIQUE(4), cluster, min_bandwidth=20, timeout=60.0)
    assert late.bound <= plan.bound <= plan.cost <= late.cost
    assert late.defer[0][1].reason == "found no rearrangement in 1e-09 s"
    assert (plan.cost, plan.bound, late.bound) == (2.0, 2.0, 0.0)


RESLICING = tp.policies.TopoAware().with_reslicing()

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"job": 3}, "job = 3"),
    ({"cluster": 3}, "cluster = 3"),
    ({"movable": "a"}, "movable = 'a': must be several job ids"),
    ({"movable": ["a", "x"]}, r"movable\[1\] = 'x' is not a running job"),
    ({"movable": [3]}, r"movable\[0\] = 3"),
    ({"cost": 3}, "cost = 3"),
    ({"policy": "best"}, "'best'"),
    ({"policy": 3}, "policy = 3"),
    ({"policy": RESLICING}, "policy = topo-aware: room is made without reslicing GPUs"),
    ({"job": RING(1).with_(mig="1g.5gb")}, "mig = '1g.5gb' cannot be honoured: room is made on whole GPUs"),
    ({"min_bandwidth": -1}, "min_bandwidth = -1"),
    ({"min_bandwidth": math.nan}, "min_bandwidth = nan"),
    ({"job_id": ""}, "job_id"),
    ({"job_id": "a"}, "job_id = 'a' is a running job"),
    ({"timeout": 0}, "timeout = 0"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=[message for _, message in WRONG])
def test_wrong_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    cluster = cluster_of(tp.machines.get("minsky"), {"a": [0, 1]})
    given = {"job": RING(4), "cluster": cluster, **arguments}
    with pytest.raises((ValueError, tp.AllocationError), match=message):
        tp.make_room(given.pop("job"), given.pop("cluster"), **given)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"move": -1}, "move = -1"),
        ({"move_per_gpu": math.nan}, "move_per_gpu = nan"),
        ({"preempt": "x"}, "preempt = 'x'"),
        ({"factors": 3}, "factors = 3"),
        ({"factors": {3: 1.0}}, "a job id in factors"),
        ({"factors": {"a": -1}}, r"factors\['a'\] = -1"),
    ],
    ids=str,
)
def test_wrong_costs_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MoveCosts(**arguments)


def test_a_plan_for_another_state_changes_nothing() -> None:
    cluster = cluster_of(tp.machines.get("minsky"), {"a": [0, 1], "b": [2, 3]})
    plan = tp.make_room(RING(2), cluster)
    cluster.release("b")
    cluster.release("a")
    before = cluster.snapshot()
    with pytest.raises(tp.AllocationError):
        plan.carry_out(cluster)
    assert cluster.snapshot() == before


def without_gpus_on(machine: int, topology: tp.Topology) -> tp.Placement:
    job = tp.JobGraph.without_gpus(cpus=4)
    return tp.Placement((), topology=topology, job=job, hosts=(tp.HostShare(machine, 4, 0.0),))


@whole
def test_jobs_without_gpus_move_too() -> None:
    topology = tp.Topology.cluster(tp.machines.get("minsky"), 2)
    cluster = tp.Cluster(topology, tp.HostResources(cpus=16, memory_gb=64))
    for machine in (0, 1):
        cluster.allocate(f"c{machine}", without_gpus_on(machine, topology))
    job = CLIQUE(4).with_(single_machine=True, cpus=16)
    for costs, paid in ((MoveCosts(move=1, preempt=10), 1.0), (MoveCosts(), 0.0)):
        plan = tp.make_room(job, cluster, policy="fgd", cost=costs)
        assert (len(plan.move), plan.preempt, plan.cost, plan.optimal) == (1, (), paid, True)
        after = cluster.copy()
        plan.carry_out(after)
        assert after.hosts.held.keys() == {"c0", "c1", "job"}
    assert tp.defragment(cluster, job, policy="fgd").after == 1


def test_a_job_whose_needs_are_unknown_keeps_its_cpus() -> None:
    cluster = tp.Cluster(tp.machines.get("minsky"), tp.HostResources(cpus=16, memory_gb=64))
    cluster.allocate("a", tp.Placement((0,), topology=cluster.topology, hosts=(tp.HostShare(0, 12, 0.0),)))
    plan = tp.make_room(RING(2), cluster, policy="fcfs", min_bandwidth=20)
    assert plan.move == ()
    cluster.allocate("b", [2])
    plan = tp.make_room(RING(2), cluster, policy="fcfs", min_bandwidth=30)
    assert [job_id for job_id, _ in plan.move] == ["b"]


@pytest.mark.parametrize("seed", range(12))
def test_more_movable_jobs_never_give_a_dearer_plan(seed: int) -> None:
    rng = random.Random(seed)
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx1-v100"), rng.choice([4, 5, 6])))
    while cluster.num_free > 2:
        size = min(rng.choice([1, 1, 1, 2]), cluster.num_free)
        cluster.allocate(f"j{len(cluster.allocations)}", rng.sample(cluster.free_gpus(), size), CLIQUE(size))
    ids = list(cluster.allocations)
    costs = MoveCosts(factors={job_id: rng.choice([1, 1, 2, 5]) for job_id in ids})
    job, movable = RING(rng.choice([4, 6, 10, 12])), rng.sample(ids, min(len(ids), 36))
    plan = tp.make_room(job, cluster, movable=movable, cost=costs, policy="fcfs", timeout=60)
    assert plan.optimal
    for number in (5, 10, 20, 30):
        fewer = rng.sample(movable, min(number, len(movable)))
        part = tp.make_room(job, cluster, movable=fewer, cost=costs, policy="fcfs", timeout=60)
        assert plan.cost <= part.cost


@pytest.mark.parametrize("size", [12, 16])
@pytest.mark.parametrize("seed", [0, 1, 4])
def test_more_than_128_movable_jobs_never_give_a_dearer_plan(seed: int, size: int) -> None:
    """Nested sets of movable jobs around 128 on full machines, for a job that needs several."""
    draws = random.Random(seed)
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx1-v100"), count=24, racks=4))
    for first in range(0, 192, 8):
        gpus = draws.sample(range(first, first + 8), 8)
        while gpus:
            taken = [gpus.pop() for _ in range(min(len(gpus), draws.choice([1, 1, 1, 2])))]
            cluster.allocate(f"job {taken[0]}", taken, tp.JobGraph.ring(len(taken)))
    jobs = draws.sample(sorted(cluster.allocations), len(cluster.allocations))
    assert len(jobs) > 140
    factors = {job: float(draws.randrange(1, 9)) for job in jobs}
    costs = [
        tp.make_room(
            tp.JobGraph.ring(size),
            cluster,
            movable=jobs[:number],
            cost=tp.MoveCosts(preempt=20, factors=factors),
            policy="best-fit",
            timeout=60,
        ).cost
        for number in (110, 128, 129, 140, len(jobs))
    ]
    assert costs == sorted(costs, reverse=True)


@pytest.fixture(scope="module")
def four_hundred_jobs() -> attempts.Attempts:
    """Jobs on one GPU of each of 300 machines of 2 GPUs, and on the second of 100."""
    machine = tp.Topology.from_links(2, [(0, 1, 50.0)], 12.0)
    cluster = tp.Cluster(tp.Topology.cluster(machine, 300))
    for gpu in (*range(0, 600, 2), *range(1, 200, 2)):
        cluster.allocate(f"j{gpu}", [gpu], RING(1))
    policy = tp.policies.get("fcfs")
    return attempts.Attempts("job", RING(401), cluster, policy, policy, movers_of(cluster, None, MoveCosts()))


PASSES: dict[str, Callable[[attempts.Attempts], object]] = {
    "the movers": lambda one: movers_of(one.cluster, None, MoveCosts()),
    "what they gain": lambda one: in_all(one.job, one.cluster, one.movers),
    "what they gain on each machine": lambda one: on_machines(RING(2), one.cluster, one.movers),
    "their highest levels": lambda one: CheapestLevels([mover.costs for mover in one.movers]),
    "their price": lambda one: many_machines._by_price(one.movers),
    "the price of machines": lambda one: many_machines._by_machine(one),
    "their release": lambda one: one.fits_without(range(400)),
}


@pytest.mark.parametrize("name", PASSES)
def test_each_pass_over_all_jobs_looks_at_the_clock(
    name: str, four_hundred_jobs: attempts.Attempts, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = four_hundred_jobs.cluster.snapshot()
    with deadline(3600):
        PASSES[name](four_hundred_jobs)
        monkeypatch.setattr("topoplace.kernels.limits.time.monotonic", lambda: math.inf)
        with pytest.raises(DeadlineError):
            PASSES[name](four_hundred_jobs)
        monkeypatch.undo()
    assert four_hundred_jobs.cluster.snapshot() == before


@pytest.mark.parametrize("call", ["make_room", "defragment"])
def test_a_plan_is_right_at_whichever_look_the_time_is_up(
    call: str, four_hundred_jobs: attempts.Attempts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look at the clock takes a second."""
    cluster = four_hundred_jobs.cluster
    before, found = cluster.snapshot(), set[bool]()
    for limit in (*range(1, 30), 40, 80, 170):
        ticks = count()
        monkeypatch.setattr("topoplace.kernels.limits.time.monotonic", lambda ticks=ticks: float(next(ticks)))
        if call == "make_room":
            plan: tp.Plan = tp.make_room(RING(220), cluster, policy="fcfs", timeout=limit)
            assert plan.bound <= plan.cost
        else:
            plan = tp.defragment(cluster, RING(2).with_(single_machine=True), policy="fcfs", timeout=limit)
        assert next(ticks) <= limit + 10
        monkeypatch.undo()
        assert cluster.snapshot() == before
        plan.carry_out(cluster.copy())
        found.add(bool(plan.start or plan.move))
    assert found == {False, True}


def test_time_ends_the_search_for_levels() -> None:
    """No job may move, and each choice of 24 pre-empted ones is as dear as the others of its size."""
    levels = CheapestLevels([(0.0, math.inf, 40.0)] * 24, [Shortage([(0, 0, 3)] * 24, 40)])

    def exclude_all() -> None:
        while (found := levels.solve()) is not None:
            levels.require({i: 1 for i, level in enumerate(found[1]) if not level})

    with deadline(0.05), pytest.raises(DeadlineError):
        exclude_all()


def test_a_search_that_takes_long_leaves_time_for_a_plan() -> None:
    """Eight of 24 jobs must go, no matter which: the proof takes long, the plan does not."""
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx1-v100"), 12))
    for start in range(0, 96, 4):
        cluster.allocate(f"j{start}", range(start, start + 4), RING(4))
    plan = tp.make_room(RING(30), cluster, cost=MoveCosts(move=math.inf), timeout=1)
    assert (len(plan.preempt), plan.cost) == (8, 320.0)
    assert plan.bound >= 300.0  # what 30 GPUs cost in part


def test_time_that_ends_amid_a_decision_leaves_plan_and_policy_as_they_were() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("torus2d-16"), 4))
    for start in range(0, 60, 4):
        cluster.allocate(f"j{start}", range(start, start + 4), CLIQUE(4))
    before = cluster.snapshot()
    policy = tp.policies.get("mapa-greedy")
    late = tp.make_room(RING(30), cluster, policy=policy, timeout=0.02)
    assert late.bound <= late.cost
    assert cluster.snapshot() == before
    fresh = tp.Cluster.restore(before)
    job = RING(4)
    assert policy.place(job, cluster) == tp.policies.get("mapa-greedy").place(job, fresh)
