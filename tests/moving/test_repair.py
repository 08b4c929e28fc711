"""`repair` against every assignment on small clusters, on known cases, and its arguments."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from dataclasses import replace
from itertools import permutations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import topoplace as tp
from topoplace.errors import AllocationError
from topoplace.moving import MoveCosts, RepairFront
from topoplace.testing import check_placement


def running(cluster: tp.Cluster, job: tp.JobGraph, gpus: tuple[int, ...]) -> tp.Cluster:
    cluster.allocate("gang", tp.Placement(gpus, topology=cluster.topology, job=job))
    return cluster


def front_of(front: RepairFront) -> dict[int, float]:
    return {plan.moved.all: round(plan.time, 9) for plan in front.plans}


MACHINE = tp.Topology.from_links(2, [(0, 1, 100.0)])
RACKS = tp.Topology.cluster(MACHINE, 4, racks=2, network=25.0)
"""Two racks of two machines of two GPUs."""


@st.composite
def failures(draw: st.DrawFn) -> tuple[tp.Cluster, tp.JobGraph, tuple[int, ...], list[int]]:
    """A job of two to four tasks, perhaps in pairs or with CPUs, other busy GPUs, and one or two lost GPUs."""
    size = draw(st.sampled_from([2, 3, 4]))
    job = draw(
        st.sampled_from([tp.JobGraph.ring(size), tp.JobGraph.chain(size), tp.JobGraph.independent(size)])
    )
    level = draw(st.sampled_from([None, "machine", "rack"]))
    if level and size > 2:
        pairs = tuple(
            tp.Group((i, i + 1), within=level) for i in range(0, draw(st.sampled_from([2, size - 1])), 2)
        )
        job = job.with_(groups=pairs)
    order = draw(st.permutations(range(8)))
    gpus = tuple(order[:size])
    if cpus := draw(st.sampled_from([0, 2])):
        job = job.with_(cpus=cpus * size)
    cluster = tp.Cluster(RACKS, tp.HostResources(cpus=4, memory_gb=64))
    each = tuple(tp.HostShare(gpu // 2, cpus) for gpu in gpus if cpus)
    cluster.allocate("gang", tp.Placement(gpus, topology=RACKS, job=job, hosts=each))
    for i, gpu in enumerate(order[size : draw(st.integers(size, 7))]):
        share = tp.HostShare(gpu // 2, draw(st.sampled_from([1, 2])))
        cluster.allocate(f"other{i}", tp.Placement((gpu,), topology=RACKS, hosts=(share,)))
    if cpus and draw(st.booleans()):
        machine = draw(st.integers(0, 3))
        if cluster.hosts.left(machine).cpus:
            cluster.allocate("no GPUs", tp.Placement((), topology=RACKS, hosts=(tp.HostShare(machine, 1),)))
    return cluster, job, gpus, draw(st.lists(st.sampled_from(gpus), min_size=1, max_size=2, unique=True))


def is_together(job: tp.JobGraph, gpus: tuple[int, ...]) -> bool:
    size = {"machine": 2, "rack": 4}
    return all(
        len({gpus[task] // size[group.within or ""] for task in group.tasks}) == 1 for group in job.groups
    )


def has_cpus(job: tp.JobGraph, gpus: tuple[int, ...], cluster: tp.Cluster) -> bool:
    needed = np.bincount([gpu // 2 for gpu in gpus], minlength=4) * (job.cpus or 0) / job.num_tasks
    return bool((needed * 1000 <= cluster.hosts.free[:, 0]).all())


@given(failures())
def test_the_front_is_that_of_all_assignments(
    failure: tuple[tp.Cluster, tp.JobGraph, tuple[int, ...], list[int]],
) -> None:
    cluster, job, gpus, lost = failure
    before = cluster.snapshot()
    front = tp.repair("gang", cluster, lost=lost)
    assert cluster.snapshot() == before
    without = cluster.copy()
    without.release("gang")
    free = [gpu for gpu in without.free_gpus() if gpu not in lost]
    least: dict[int, float] = {}
    for tried in permutations(free, job.num_tasks):
        if is_together(job, tried) and has_cpus(job, tried, without):
            moves = sum(a != b for a, b in zip(gpus, tried, strict=True))
            seconds = tp.communication_time(job, tried, cluster.topology, cluster=without).seconds
            least[moves] = min(least.get(moves, math.inf), seconds)
    if not least:
        assert front.unrepaired
        return
    assert not front.unrepaired
    assert front.fewest
    expected: dict[int, float] = {}
    for moves in sorted(least):
        if not expected or least[moves] < min(expected.values()) * (1 - 1e-9):
            expected[moves] = least[moves]
    assert front_of(front) == {moves: round(seconds, 9) for moves, seconds in expected.items()}
    front.plans[-1].carry_out(cluster)
    assert cluster.gpus_of("gang") == front.plans[-1].placement.gpus  # type: ignore[union-attr]
    assert not set(cluster.gpus_of("gang")) & set(lost)


def test_more_moves_on_a_dgx_1_make_a_ring_faster() -> None:
    cluster = running(tp.Cluster(tp.machines.get("dgx1-v100")), tp.JobGraph.ring(4), (0, 1, 2, 3))
    front = tp.repair("gang", cluster, lost=[3])
    assert front_of(front) == {1: 0.0375, 2: 0.025, 4: 0.01875}
    assert front.fewest
    assert front.best(steps_left=50).moved.all == 1
    assert front.best(steps_left=100_000).moved.all == 4
    assert front.best(steps_left=1000, costs=MoveCosts(move_per_gpu=60)).moved.all == 1


def test_a_healthy_task_steps_aside_for_a_group() -> None:
    one = tp.Topology.from_links(1, [])
    job = tp.JobGraph.chain(3).with_(groups=(tp.Group((0, 1), within="rack"),))
    cluster = running(tp.Cluster(tp.Topology.cluster(one, 6, racks=3, network=50.0)), job, (0, 1, 2))
    for gpu in (4, 5):
        cluster.allocate(f"other{gpu}", [gpu])
    (plan,) = tp.repair("gang", cluster, lost=[0]).plans
    assert plan.replaced == {0: (0, 2), 2: (2, 3)}
    assert plan.time == pytest.approx(0.02)
    assert tuple(plan.moved) == (1, 2, 0)


def test_what_cannot_be_repaired_is_named_and_the_rest_repaired() -> None:
    one = tp.Topology.from_links(1, [])
    job = tp.JobGraph.independent(4).grouped(2, within="rack")
    cluster = running(tp.Cluster(tp.Topology.cluster(one, 6, racks=3)), job, (0, 1, 3, 4))
    cluster.allocate("other", [2])
    front = tp.repair("gang", cluster, lost=[0, 3])
    assert front.plans[0].replaced == {2: (3, 5)}
    assert list(front.unrepaired) == [0]
    assert front.unrepaired[0].startswith("no GPU is left in rack 'rack0', where the rest of its group is")
    assert not front.fewest
    assert front.plans[0].time == math.inf
    with pytest.raises(AllocationError, match="tasks remain without a GPU"):
        front.plans[0].carry_out(cluster)


def test_a_lost_machine_of_a_large_gang_moves_its_tasks_alone() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx-h100"), 64, racks=16))
    job = tp.JobGraph.parallel(tensor=8, data=60).grouped("tensor", within="machine")
    running(cluster, job, tuple(range(480)))
    front = tp.repair("gang", cluster, lost=range(8, 16))
    assert front.fewest
    assert tuple(front.plans[0].moved) == (1, 8, 0)
    assert list(front.plans[0].replaced) == list(range(8, 16))


def test_a_group_goes_to_the_rack_that_its_machine_was_in() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx-h100"), 64, racks=16))
    job = tp.JobGraph.parallel(tensor=8, pipeline=4, data=12).grouped("tensor", within="machine")
    busy = [*range(30), *range(32, 50)]  # the second rack has machines to spare, the others too
    running(cluster, job, tuple(8 * machine + local for machine in busy for local in range(8)))
    front = tp.repair("gang", cluster, lost=range(160, 168), further=False)
    assert len(front.plans) == 1
    assert {new // 8 for _, new in front.plans[0].replaced.values()} == {30}


def test_a_job_stays_on_drained_gpus_and_leaves_unhealthy_ones() -> None:
    machine = tp.machines.get("dgx-h100")
    cluster = running(tp.Cluster(machine.with_unhealthy([1])), tp.JobGraph.ring(2), (0, 2))
    cluster.take_health(machine.with_unhealthy([2]))
    cluster.drain(0)
    cluster.hold([5])
    plan = tp.repair("gang", cluster).plans[0]
    assert plan.replaced.keys() == {1}
    assert plan.replaced[1][1] not in (2, 5)
    plan.carry_out(cluster)
    assert cluster.gpus_of("gang")[0] == 0


def test_a_plan_that_is_out_of_date_changes_nothing() -> None:
    cluster = running(tp.Cluster(tp.machines.get("dgx-h100")), tp.JobGraph.ring(2), (0, 1))
    plan = tp.repair("gang", cluster, lost=[1]).plans[0]
    new = plan.replaced[1][1]
    with cluster.what_if():
        cluster.allocate("other", [new])
        with pytest.raises(AllocationError):
            plan.carry_out(cluster)
        assert cluster.gpus_of("gang") == (0, 1)
    with cluster.what_if():
        cluster.drain(new)
        with pytest.raises(AllocationError, match=f"GPU {new} is out of service"):
            plan.carry_out(cluster)
    cluster.release("gang")
    with pytest.raises(AllocationError, match="does not hold the GPUs of this plan any more"):
        plan.carry_out(cluster)


@pytest.mark.parametrize(
    ("job_id", "lost", "error", "message"),
    [
        ("none", [0], AllocationError, "no job 'none' with GPUs runs"),
        ("gang", [7], ValueError, r"lost\[0\] = 7: job 'gang' does not hold this GPU"),
        ("gang", [0, 99], ValueError, r"lost\[1\] = 99"),
        ("gang", [], ValueError, "lost is empty, and no GPU of job 'gang' is unhealthy"),
        ("gang", None, ValueError, "lost is empty"),
        ("gang", 3, ValueError, "lost = 3"),
    ],
)
def test_wrong_arguments_are_named(
    job_id: str, lost: list[int] | None, error: type[ValueError], message: str
) -> None:
    cluster = running(tp.Cluster(tp.machines.get("dgx-h100")), tp.JobGraph.ring(2), (0, 1))
    with pytest.raises(error, match=message):
        tp.repair(job_id, cluster, lost=lost)


def test_requirements_that_repairs_do_not_honour_are_named() -> None:
    cluster = running(tp.Cluster(RACKS), tp.JobGraph.ring(2).with_(max_machines=2), (0, 4))
    with pytest.raises(ValueError, match="job 'gang': repairs do not honour max_machines"):
        tp.repair("gang", cluster, lost=[0])
    shared = tp.Cluster(tp.machines.get("dgx-h100"))
    shared.record("gang", [0, 1], gpu_fraction=0.5)
    with pytest.raises(ValueError, match="do not move jobs that share GPUs"):
        tp.repair("gang", shared, lost=[0])


@settings(max_examples=15)
@given(st.integers(0, 1 << 30))
def test_a_job_that_is_spread_stays_so(seed: int) -> None:
    """Lose one machine: what stays, stays, and each other rack has room for the tasks that its best machine has."""
    draws = random.Random(seed)
    cluster = tp.Cluster(tp.Topology.cluster(tp.Topology.from_links(3, []), 8, racks=2, network=25.0))
    machines = [2 * rack + draws.randint(0, 1) for rack in draws.sample(range(4), draws.randint(1, 3))]
    gpus = [3 * machine + local for machine in machines for local in range(draws.randint(1, 2))]
    job = draws.choice([tp.JobGraph.ring, tp.JobGraph.independent])(len(gpus)).with_(spread="rack")
    running(cluster, job, tuple(gpus))
    for gpu in draws.sample(cluster.free_gpus(), draws.randint(0, 20 - len(gpus))):
        cluster.allocate(f"other{gpu}", [gpu])
    lost = [gpu for gpu in gpus if gpu // 3 == machines[0]]
    front = tp.repair("gang", cluster, lost=[f"machine{machines[0]}"])
    free = Counter(gpu // 3 for gpu in cluster.free_gpus() if gpu // 3 != machines[0])
    kept = {machine // 2: machine for machine in machines[1:]}
    room = [
        free[kept[rack]] if rack in kept else max(free[2 * rack], free[2 * rack + 1]) for rack in range(4)
    ]
    assert not front.complete
    if sum(room) < len(lost):
        assert front.unrepaired
        return
    assert front.plans[0].moved.all == front.bound == len(lost)
    for plan in front.plans:
        assert plan.placement is not None
        with cluster.what_if():
            cluster.release("gang")
            check_placement(plan.placement, job, cluster)


def test_a_full_cluster_has_no_plan() -> None:
    cluster = running(tp.Cluster(MACHINE), tp.JobGraph.ring(2), (0, 1))
    for lost in ([0], [0, 1]):
        front = tp.repair("gang", cluster, lost=lost)
        assert (front.plans, front.unrepaired) == ((), dict.fromkeys(lost, "no GPU that it may use is left"))
        with pytest.raises(ValueError, match="there is no plan for all tasks"):
            front.best(steps_left=1)


def test_a_search_without_time_ends() -> None:
    cluster = running(tp.Cluster(tp.machines.get("dgx1-v100")), tp.JobGraph.ring(4), (0, 1, 2, 3))
    front = tp.repair("gang", cluster, lost=[3], timeout=1e-9)
    assert len(front.plans) >= 1


@pytest.mark.parametrize("cpus", [6, 8])
def test_tasks_go_where_their_cpus_are(cpus: int) -> None:
    cluster = tp.Cluster(RACKS, tp.HostResources(cpus=5, memory_gb=64))
    job = tp.JobGraph.ring(4).with_(cpus=cpus, memory_gb=8)
    cluster.allocate("gang", tp.Placement((0, 1, 2, 3), topology=RACKS, job=job, hosts=shares(cpus)))
    cluster.allocate("other", tp.Placement((4,), topology=RACKS, hosts=(tp.HostShare(2, 4, 1.0),)))
    front = tp.repair("gang", cluster, lost=[3])
    assert front.plans[0].replaced == {3: (3, 6)}  # GPU 5 is free on a machine with one CPU
    front.plans[0].carry_out(cluster)
    assert cluster.hosts.held["gang"].shares == (*shares(cpus)[:3], replace(shares(cpus)[3], machine=3))


def shares(cpus: int) -> tuple[tp.HostShare, ...]:
    each, more = divmod(cpus, 4)
    return tuple(tp.HostShare(task // 2, each + (task < more), 2.0) for task in range(4))


def test_what_a_host_gave_each_pod_moves_with_it() -> None:
    machine = tp.machines.get("dgx-h100")
    topology = tp.Topology.cluster(machine, 3)
    cluster = tp.Cluster(topology, tp.HostResources(cpus=64, memory_gb=512))
    pods = (tp.HostShare(0, 10.5, 100.0), tp.HostShare(1, 20, 50.0))
    cluster.record("gang", tp.Placement((0, 1, 8, 9), topology=topology, hosts=pods))
    plan = tp.repair("gang", cluster, lost=[9]).plans[0]
    assert plan.replaced.keys() == {3}
    cluster.allocate("other", tp.Placement(tuple(range(10, 16)), topology=topology))
    plan = tp.repair("gang", cluster, lost=[9]).plans[0]
    assert plan.replaced.keys() == {2, 3}  # a pod is on one machine
    plan.carry_out(cluster)
    there = int(topology.machine_of[plan.placement.gpus[2]])  # type: ignore[union-attr]
    assert cluster.hosts.held["gang"].shares == (pods[0], replace(pods[1], machine=there))
    cluster.hold(["machine0", "machine1", "machine2"], reason="maintenance")
    front = tp.repair("gang", cluster, lost=[0])
    assert front.unrepaired[0].endswith("no other machine has room for all")


def test_what_moves_with_no_task_is_refused() -> None:
    cluster = tp.Cluster(MACHINE, tp.HostResources(cpus=16, memory_gb=64, drives=1))
    cluster.record("gang", tp.Placement((0,), topology=MACHINE, drives=(0,)))
    with pytest.raises(ValueError, match="job 'gang': repairs do not move drives or remote GPUs"):
        tp.repair("gang", cluster, lost=[0])
    cluster = tp.Cluster(RACKS, tp.HostResources(cpus=16, memory_gb=64))
    share = tp.HostShare(0, 1)
    cluster.record("pods", tp.Placement((0, 1, 2), topology=RACKS, hosts=(share, share)))
    with pytest.raises(ValueError, match="a job of 3 tasks in 2 processes of a host"):
        tp.repair("pods", cluster, lost=[1])
    cluster.record("apart", tp.Placement((4, 5), topology=RACKS, hosts=(share, share)))
    with pytest.raises(ValueError, match="CPUs that are not with their GPUs: process 0"):
        tp.repair("apart", cluster, lost=[4])


def test_tasks_that_must_be_on_different_machines_stay_so() -> None:
    cluster = running(tp.Cluster(RACKS), tp.JobGraph.ring(2).with_(anti_affinity=True), (0, 2))
    cluster.allocate("other", [1])
    assert tp.repair("gang", cluster, lost=[0]).plans[0].replaced[0] == (0, 4)


def test_a_task_goes_to_a_machine_that_the_job_uses() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx-h100"), 2))
    cluster.allocate("gang", [8, 9], tp.JobGraph.ring(2))
    plan = tp.repair("gang", cluster, lost=[8]).plans[0]
    assert tuple(plan.moved) == (0, 0, 1)
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx-h100"), 2))
    cluster.allocate("gang", [8, 9])
    assert tuple(tp.repair("gang", cluster, lost=[8]).plans[0].moved) == (0, 0, 1)


def test_tasks_stay_on_a_drained_machine_with_their_cpus() -> None:
    cluster = tp.Cluster(RACKS, tp.HostResources(cpus=4, memory_gb=64))
    job = tp.JobGraph.ring(4).with_(cpus=8)
    placement = tp.place(job, cluster)
    assert placement is not None
    cluster.allocate("gang", placement)
    cluster.drain("machine0")
    plan = tp.repair("gang", cluster, lost=[3]).plans[0]
    assert plan.replaced.keys() == {cluster.gpus_of("gang").index(3)}
    plan.carry_out(cluster)
    assert set(cluster.hosts.drained) == {0}


def test_a_job_without_room_goes_on_with_fewer_replicas() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx1-v100"), 4, racks=2))
    job = tp.JobGraph.parallel(tensor=4, data=8).grouped("tensor", within="machine")
    running(cluster, job, tuple(range(32)))
    front = tp.repair("gang", cluster, lost=[3, 9])
    assert not front.plans
    smaller = front.smaller
    assert smaller is not None
    assert (smaller.moved.all, smaller.given_back) == (0, (0, 1, 2, 8, 10, 11))
    left = tp.JobGraph.parallel(tensor=4, data=6).grouped("tensor", within="machine")
    after = smaller.placement.job  # type: ignore[union-attr]
    assert after is not None
    assert set(after.collectives) == set(left.collectives)
    assert after.groups == left.groups
    smaller.carry_out(cluster)
    assert cluster.jobs["gang"].num_tasks == 24


def test_a_replica_is_given_up_for_another_one() -> None:
    cluster = tp.Cluster(RACKS, tp.HostResources(cpus=8, memory_gb=64))
    job = tp.JobGraph.parallel(tensor=2, data=4).with_(cpus=8, memory_gb=8)
    placement = tp.place(job, cluster)
    assert placement is not None
    cluster.allocate("gang", placement)
    gpus = cluster.gpus_of("gang")
    smaller = tp.repair("gang", cluster, lost=[gpus[1], gpus[4]]).smaller
    assert smaller is not None
    assert smaller.placement.job.num_tasks == 6  # type: ignore[union-attr]
    assert smaller.moved.all == 1
    smaller.carry_out(cluster)
    assert sum(share.cpus for share in cluster.hosts.held["gang"].shares) == 6


def test_experts_are_not_given_up() -> None:
    cluster = running(tp.Cluster(RACKS), tp.JobGraph.parallel(data=8, expert=4), tuple(range(8)))
    assert tp.repair("gang", cluster, lost=[0]).smaller is None


def test_gpus_that_are_free_soon_are_waited_for() -> None:
    cluster = running(tp.Cluster(RACKS), tp.JobGraph.ring(2), (0, 1))
    for i, gpus in enumerate([(2, 3), (4, 5), (6, 7)]):
        cluster.allocate(f"other{i}", gpus)
    front = tp.repair("gang", cluster, lost=[1], soon={"other2": 60, "other1": 30.5})
    assert not front.plans
    assert front.waiting is not None
    assert (front.waiting.wait, front.waiting.replaced) == (30.5, {1: (1, 4)})
    with pytest.raises(AllocationError, match=r"gpus\[1\] = 4 is held by job 'other1'"):
        front.waiting.carry_out(cluster)
    assert cluster.gpus_of("gang") == (0, 1)
    cluster.release("other0")
    assert tp.repair("gang", cluster, lost=[1], soon={"other1": 30}).waiting is None
    with pytest.raises(ValueError, match=r"soon\['gang'\]: no other job of this id runs"):
        tp.repair("gang", cluster, lost=[1], soon={"gang": 30})
    with pytest.raises(ValueError, match=r"soon\['other1'\] = -1"):
        tp.repair("gang", cluster, lost=[1], soon={"other1": -1})
    with pytest.raises(ValueError, match="a job in soon = 1 is not"):
        tp.repair("gang", cluster, lost=[1], soon={1: 30})  # type: ignore[dict-item]


def test_other_jobs_make_way_within_a_budget() -> None:
    job = tp.JobGraph.ring(2).with_(single_machine=True)
    cluster = running(tp.Cluster(RACKS), job, (0, 1))
    for i, gpu in enumerate([2, 4, 6]):
        cluster.allocate(f"one{i}", [gpu], tp.JobGraph.ring(1))
    assert tp.repair("gang", cluster, lost=[1]).making_way is None
    plan = tp.repair("gang", cluster, lost=[1], budget=1).making_way
    assert plan is not None
    assert plan.replaced.keys() == {0, 1}
    (other,) = plan.others
    assert set(plan.placement.gpus) == {cluster.gpus_of(other)[0], cluster.gpus_of(other)[0] + 1}  # type: ignore[union-attr]
    plan.carry_out(cluster)
    assert cluster.gpus_of(other) == plan.others[other][1].gpus  # type: ignore[union-attr]
    for gpu in cluster.free_gpus():
        cluster.allocate(f"last{gpu}", [gpu])
    lost = [cluster.gpus_of("gang")[0]]
    costs = MoveCosts(preempt_per_gpu=5)
    plan = tp.repair("gang", cluster, lost=lost, budget=6, costs=costs).making_way
    assert plan is not None
    moved, stopped = sorted(plan.others, key=lambda other: plan.others[other][1] is None)
    assert tp.repair("gang", cluster, lost=lost, budget=5, costs=costs).making_way is None
    plan.carry_out(cluster)
    assert moved in cluster.allocations
    assert stopped not in cluster.allocations
    with pytest.raises(ValueError, match="budget = -1"):
        tp.repair("gang", cluster, budget=-1)


def test_spares_are_used_last() -> None:
    cluster = running(tp.Cluster(RACKS), tp.JobGraph.ring(2), (0, 1))
    cluster.allocate("other", [2, 4])
    assert cluster.hold_spares(level="rack").held == ("machine3",)
    plan = tp.repair("gang", cluster, lost=[1]).plans[0]
    assert (plan.replaced, plan.spares) == ({1: (1, 3)}, ())
    cluster.allocate("more", [3, 5])
    plan = tp.repair("gang", cluster, lost=[1]).plans[0]
    assert (plan.replaced, plan.spares) == ({1: (1, 6)}, ("machine3",))
    cluster.hold([6], reason="maintenance")
    front = tp.repair("gang", cluster, lost=[1])
    assert front.plans[0].replaced == {1: (1, 7)}
    front.plans[0].carry_out(cluster)
    assert cluster.gpus_of("gang") == (0, 7)


def test_leaving_a_slow_gpu_pays_after_some_steps() -> None:
    topology = tp.machines.get("dgx-h100").with_degraded({3: 0.5})
    cluster = running(tp.Cluster(topology), tp.JobGraph.ring(4), (0, 1, 2, 3))
    front = tp.repair("gang", cluster, lost=[3])
    saved = front.stay - front.plans[0].time
    assert saved > 0
    costs = MoveCosts(move_per_gpu=60)
    steps = front.pays_after(costs=costs)
    assert steps == math.ceil(60 / saved)
    cluster = running(tp.Cluster(topology.with_unhealthy([3])), tp.JobGraph.ring(2), (0, 1))
    assert tp.repair("gang", cluster, lost=[1]).pays_after() == math.inf
    cluster.take_health(topology.with_unhealthy([1]))
    front = tp.repair("gang", cluster)
    assert (front.stay, front.pays_after()) == (math.inf, 0)


def test_every_plan_that_uses_spares_releases_them() -> None:
    pairs = tp.JobGraph.parallel(tensor=2, data=2).grouped("tensor", within="machine")
    topology = tp.Topology.cluster(MACHINE, 3)
    cluster = running(tp.Cluster(topology), pairs, (0, 1, 2, 3))
    cluster.hold(["machine2"])
    smaller = tp.repair("gang", cluster, lost=[0, 1, 2]).smaller
    assert smaller is not None
    assert smaller.spares == ("machine2",)
    smaller.carry_out(cluster)
    cluster = running(tp.Cluster(topology), tp.JobGraph.ring(2).with_(single_machine=True), (0, 1))
    cluster.allocate("moved", [2], tp.JobGraph.independent(1))
    cluster.allocate("other", [4])
    cluster.hold([5])
    plan = tp.repair("gang", cluster, lost=[0, 1], budget=3).making_way
    assert plan is not None
    assert plan.spares == ("machine2",)
    plan.carry_out(cluster)
    assert cluster.gpus_of("moved") == (5,)


def test_a_spare_machine_keeps_what_is_held_for_another_reason() -> None:
    cluster = running(tp.Cluster(tp.Topology.cluster(MACHINE, 2)), tp.JobGraph.independent(2), (0, 1))
    cluster.hold(["machine1"])
    cluster.hold([3], reason="maintenance")
    tp.repair("gang", cluster, lost=[0]).plans[0].carry_out(cluster)
    assert cluster.held_gpus() == {3: "maintenance"}


def test_only_tasks_of_the_job_get_its_drained_gpus() -> None:
    cluster = running(
        tp.Cluster(tp.Topology.cluster(MACHINE, 2)), tp.JobGraph.ring(2).with_(single_machine=True), (0, 1)
    )
    cluster.allocate("other", [2], tp.JobGraph.independent(1))
    cluster.drain(1)
    plan = tp.repair("gang", cluster, lost=[0], budget=99).making_way
    assert plan is not None
    assert plan.others == {"other": ((2,), None)}
    alone = tp.Topology.cluster(tp.Topology.from_links(1, []), 5, racks=3)
    job = tp.JobGraph.chain(3).with_(groups=(tp.Group((1, 2), within="rack"),))
    cluster = running(tp.Cluster(alone), job, (0, 3, 4))
    cluster.drain(0)
    cluster.drain(1)
    tp.repair("gang", cluster, lost=[3]).plans[0].carry_out(cluster)
    assert set(cluster.gpus_of("gang")) == {0, 2, 4}


def test_nothing_is_proven_of_tasks_with_unequal_cpus() -> None:
    topology = tp.Topology.cluster(MACHINE, 3)
    cluster = tp.Cluster(topology, [tp.HostResources(cpus, 64) for cpus in (8, 2, 8)])
    job = tp.JobGraph.ring(2).with_(cpus=5)
    shares = (tp.HostShare(0, 3), tp.HostShare(1, 2))
    cluster.allocate("gang", tp.Placement((0, 2), topology=topology, job=job, hosts=shares))
    front = tp.repair("gang", cluster, lost=[0])  # GPU 1 would do, with the 3 CPUs there
    assert (front.bound, front.complete) == (1, False)


def test_many_lost_replicas_do_not_outlast_the_timeout() -> None:
    job = tp.JobGraph.parallel(tensor=8, data=64).grouped("tensor", within="machine")
    cluster = running(
        tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx-h100"), 64)), job, tuple(range(512))
    )
    start = time.monotonic()
    front = tp.repair("gang", cluster, lost=range(0, 512, 8), timeout=0.01)
    assert len(front.unrepaired) == 64
    assert front.smaller is None
    assert time.monotonic() - start < 2


def test_a_machine_is_lost_by_its_name() -> None:
    cluster = running(tp.Cluster(RACKS), tp.JobGraph.ring(3), (0, 1, 2))
    assert tp.repair("gang", cluster, lost=["machine0"]).plans[0].replaced.keys() == {0, 1}
    with pytest.raises(ValueError, match=r"lost\[1\] = 'machine3': .* no GPU of a machine 'machine3'"):
        tp.repair("gang", cluster, lost=[0, "machine3"])


def test_a_job_of_unknown_graph_stays_unknown() -> None:
    cluster = tp.Cluster(RACKS)
    cluster.allocate("gang", [0, 1])
    front = tp.repair("gang", cluster, lost=[0])
    assert not front.complete
    front.plans[0].carry_out(cluster)
    assert "gang" not in cluster.jobs


def test_others_that_moved_in_the_meantime_stay() -> None:
    cluster = running(tp.Cluster(MACHINE), tp.JobGraph.ring(1), (0,))
    cluster.allocate("other", [1])
    plan = tp.repair("gang", cluster, lost=[0], budget=10).making_way
    assert plan is not None
    cluster.release("other")
    with pytest.raises(AllocationError, match="job 'other' does not hold the GPUs of this plan any more"):
        plan.carry_out(cluster)
    assert cluster.gpus_of("gang") == (0,)


@pytest.mark.parametrize("seed", range(6))
def test_a_front_is_not_complete_without_the_fewest_moves(seed: int) -> None:
    rng, topology = random.Random(seed), tp.Topology.cluster(tp.machines.get("dgx-a100"), 24, racks=4)
    gpus, sizes = list[int](), list[int]()
    for own in topology.gpus_of.values():
        left = rng.sample(own, len(own))
        while left and rng.random() < 0.85:
            sizes.append(min(len(left), rng.choice([2, 3, 3, 4, 5])))
            gpus += [left.pop() for _ in range(sizes[-1])]
    job = tp.JobGraph.independent(len(gpus)).grouped(sizes, within="machine")
    cluster = running(tp.Cluster(topology), job, tuple(gpus))
    for gpu in cluster.free_gpus():
        if rng.random() < 0.5:
            cluster.allocate(f"busy{gpu}", [gpu])
    front = tp.repair("gang", cluster, lost=rng.sample(gpus, 3), timeout=0.02)
    assert not front.complete or front.fewest
