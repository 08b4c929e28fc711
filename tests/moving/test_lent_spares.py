"""Lent spares: pre-emptible jobs run on them, repairs get them back, and nobody else does either."""

from __future__ import annotations

import random

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import topoplace as tp
from topoplace.cluster.spares import LENT, SPARES, preemptible_on
from topoplace.engine.plan import QueuedJob
from topoplace.errors import AllocationError
from topoplace.moving import RepairFront
from topoplace.testing import check_placement

MACHINE = tp.Topology.from_links(2, [(0, 1, 100.0)])
RACKS = tp.Topology.cluster(MACHINE, 6, racks=2, network=25.0)
"""Three racks of two machines of two GPUs."""
POLICIES = ("least-time", "best-fit", "fcfs", "topo-aware", "mapa-preserve", "g-queue")


def lent_gpus(cluster: tp.Cluster) -> set[int]:
    return {gpu for gpu, reason in cluster.held_gpus().items() if reason == LENT}


def lodgers(cluster: tp.Cluster) -> tuple[str, ...]:
    return preemptible_on(sorted(lent_gpus(cluster)), cluster.topology, cluster.native, cluster.hosts)


class History:
    """A cluster in which jobs come and go, machines break and are repaired, and spares are lent."""

    def __init__(self, draws: random.Random) -> None:
        self.draws = draws
        known = draws.choice([None, tp.HostResources(cpus=4, memory_gb=64)])
        self.cluster = tp.Cluster(RACKS, known)
        self.stoppable = draws.random() < 0.9
        """Whether the spares are lent."""
        self.hold()
        self.number = 0

    def hold(self) -> None:
        self.cluster.hold_spares(level="rack", machines=1, lent=self.stoppable)

    def start(self) -> None:
        draws, cluster = self.draws, self.cluster
        size = draws.choice([1, 2, 2, 3])
        job = draws.choice([tp.JobGraph.ring(size), tp.JobGraph.independent(size)])
        job = job.with_(priority=draws.choice([0, 0, -1, -1, -2]))
        if size % 2 == 0 and draws.random() < 0.3:
            job = job.grouped(2, within="machine")
        if cluster.hosts.resources and draws.random() < 0.4:
            job = job.with_(cpus=size * draws.choice([1, 2]))
        policy = tp.policies.get(draws.choice(["least-time", "best-fit"]))
        before = cluster.snapshot()
        placement = policy.place(job, cluster)
        assert cluster.snapshot() == before
        assert policy.has_room(job, cluster) == (placement is not None)  # type: ignore[attr-defined]
        assert bool(policy.explain(job, cluster, 1).candidates) == (placement is not None)
        if placement is None:
            return
        check_placement(placement, job, cluster)
        on_spares = lent_gpus(cluster).intersection(placement.gpus)
        assert not on_spares or job.is_preemptible
        if on_spares:
            assert policy.place(job.with_(priority=0), cluster) is None, "the spares are the last choice"
            with pytest.raises(AllocationError, match="is held: lent spare"):
                cluster.allocate("x", placement.gpus, job.with_(priority=0))
        cluster.allocate(f"job{self.number}", placement, job)
        self.number += 1

    def end(self) -> None:
        if jobs := list(self.cluster.allocations):
            self.cluster.release(self.draws.choice(jobs))

    def fail(self) -> None:
        machine = self.draws.randrange(6)
        gpus = [2 * machine, 2 * machine + 1][self.draws.randint(0, 1) :]
        self.cluster = self.cluster.with_topology(self.cluster.topology.with_unhealthy(gpus))
        for job_id in self.cluster.occupants(gpus)[1]:
            if self.cluster.runs(job_id):  # an earlier repair may have stopped it
                self.repair(job_id)

    def heal(self) -> None:
        self.cluster = self.cluster.with_topology(self.cluster.topology.with_healthy(range(12)))

    def repair(self, job_id: str) -> None:
        cluster = self.cluster
        before = cluster.snapshot()
        front = tp.repair(job_id, cluster, further=False)
        assert front == tp.repair(job_id, cluster, further=False)
        assert cluster.snapshot() == before
        self.check(front, job_id)
        if front.unrepaired:
            cluster.release(job_id)
            return
        (plan,) = front.plans
        jobs = dict(cluster.allocations)
        plan.carry_out(cluster)
        assert plan.placement is not None
        after = {one: gpus for one, gpus in jobs.items() if one not in plan.others}
        assert dict(cluster.allocations) == after | {job_id: plan.placement.gpus}

    def check(self, front: RepairFront, job_id: str) -> None:
        """Compare with repairs in clusters in which there is nothing to decide about spares."""
        cluster = self.cluster
        others = set(lodgers(cluster)) - {job_id}
        is_preemptible = cluster.jobs[job_id].is_preemptible
        stopped = set(front.plans[0].others) if front.plans else set[str]()
        assert stopped <= (set() if is_preemptible else others)
        bare = self.without_choice(others if not is_preemptible else set(), others)
        is_whole = not tp.repair(job_id, bare, further=False).unrepaired
        assert is_whole == (not front.unrepaired), "a repair that needs a lent spare gets it"
        if front.unrepaired:
            return
        for one in stopped:
            spared = self.without_choice(stopped - {one}, others)
            assert tp.repair(job_id, spared, further=False).unrepaired, f"{one} is stopped without need"
        used = {new for _, new in front.plans[0].replaced.values()}
        freed = {gpu for name in front.plans[0].spares for gpu in RACKS.gpus_of[name]}
        held = {gpu for gpu, reason in cluster.held_gpus().items() if reason in SPARES}
        assert used.intersection(held) <= (freed if not is_preemptible else freed | lent_gpus(cluster))

    def without_choice(self, gone: set[str], others: set[str]) -> tp.Cluster:
        """Return a cluster without spares and without some jobs, in which the others may not be stopped."""
        copy = self.cluster.copy()
        for one in others:
            held = copy.hosts.held.get(one)
            there = tp.Placement(copy.gpus_of(one), topology=copy.topology, hosts=held.shares if held else ())
            copy.release(one)
            if one not in gone:
                copy.record(one, there)
        copy.unhold(copy.topology.machine_names)
        return copy

    def check_state(self) -> None:
        cluster = self.cluster
        held = cluster.held_gpus()
        for job_id, gpus in cluster.allocations.items():
            on_spares = [gpu for gpu in gpus if held.get(gpu) in SPARES]
            assert not on_spares or cluster.jobs[job_id].is_preemptible
            assert all(held[gpu] == LENT for gpu in on_spares)
        taken = [gpu for gpus in cluster.allocations.values() for gpu in gpus]
        assert len(taken) == len(set(taken))

    def check_restored(self) -> None:
        """Restore the cluster as it is; its jobs are still pre-emptible, and its spares lent."""
        cluster, text = self.cluster, self.cluster.snapshot()
        again = tp.Cluster.restore(text)
        assert again.snapshot() == cluster.copy().snapshot() == text
        job = tp.JobGraph.ring(2).with_(priority=-1)
        assert tp.place(job, again) == tp.place(job, cluster)
        assert lodgers(again) == lodgers(cluster)


@settings(max_examples=10)
@given(st.integers(0, 1 << 30))
def test_lent_spares_go_to_preemptible_jobs_and_back_to_repairs(seed: int) -> None:
    draws = random.Random(seed)
    history = History(draws)
    for _ in range(12):
        draws.choice([*[history.start] * 5, history.end, *[history.fail] * 3, history.heal, history.hold])()
        history.check_state()
    history.check_restored()


def full() -> tp.Cluster:
    """Return a cluster whose spares are lent, with a gang on all other machines."""
    cluster = tp.Cluster(RACKS)
    assert cluster.hold_spares(level="rack", lent=True).held == ("machine1", "machine3", "machine5")
    cluster.allocate("gang", [0, 1, 4, 5, 8, 9], tp.JobGraph.ring(6).grouped(2, within="machine"))
    return cluster


PAIR = tp.JobGraph.ring(2)


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_lends_in_its_queue_too(name: str) -> None:
    cluster, policy = full(), tp.policies.get(name)
    low = PAIR.with_(priority=-1)
    queue = [QueuedJob("low", low, 0.0), QueuedJob("pair", PAIR, 1.0), QueuedJob("low2", low, 2.0)]
    started = dict(policy.plan(queue, cluster, 3.0).start)
    assert {"low"} <= started.keys() <= {"low", "low2"}
    assert lent_gpus(cluster).issuperset(gpu for one in started.values() for gpu in one.gpus)
    assert policy.place(PAIR, cluster) is None
    cluster.allocate("low", started["low"], low)
    assert policy.place(low, cluster) is not None


def test_one_job_stops_for_a_repair_and_the_spare_is_given_away() -> None:
    cluster = full()
    for number, gpus in enumerate(([2, 3], [6], [7], [10, 11])):
        job = tp.JobGraph.ring(len(gpus)).with_(priority=-1)
        cluster.allocate(f"low{number}", gpus, job)
    assert not cluster.hold_spares(level="rack").short, "spares in use still count"
    plan = tp.repair("gang", cluster, lost=["machine2"]).plans[0]
    assert dict(plan.others) == {"low1": ((6,), None), "low2": ((7,), None)}
    assert plan.spares == ("machine3",)
    cluster.drain("machine2")
    plan.carry_out(cluster)
    assert cluster.gpus_of("gang") == (0, 1, 6, 7, 8, 9)
    assert sorted(cluster.allocations) == ["gang", "low0", "low3"]
    assert lent_gpus(cluster) == {2, 3, 10, 11}


def test_no_job_stops_where_an_idle_gpu_does() -> None:
    cluster = tp.Cluster(RACKS)
    cluster.hold_spares(level="rack", lent=True)
    cluster.allocate("gang", [0, 1, 4, 5, 8, 9], tp.JobGraph.independent(6))
    for gpu in (2, 3, 6, 7, 10):
        cluster.allocate(f"low{gpu}", [gpu], tp.JobGraph.independent(1).with_(priority=-1))
    plan = tp.repair("gang", cluster, lost=["machine2"]).plans[0]
    assert len(plan.others) == 1
    assert 11 in {new for _, new in plan.replaced.values()}


def test_idle_spares_come_before_those_in_use() -> None:
    cluster = full()
    cluster.allocate("low", [6, 7], PAIR.with_(priority=-1))
    plan = tp.repair("gang", cluster, lost=["machine2"]).plans[0]
    assert not plan.others
    assert plan.spares != ("machine3",)


def test_a_preemptible_job_is_repaired_on_a_spare_that_stays_lent() -> None:
    cluster = full()
    cluster.allocate("low", [2, 3], PAIR.with_(priority=-1))
    cluster.allocate("lower", [6, 7], PAIR.with_(priority=-2))
    plan = tp.repair("low", cluster, lost=["machine1"]).plans[0]
    assert (plan.spares, dict(plan.others)) == ((), {})
    plan.carry_out(cluster)
    assert cluster.gpus_of("low") == (10, 11)
    assert lent_gpus(cluster) == {2, 3, 6, 7, 10, 11}
    front = tp.repair("low", cluster, lost=[10, 11])
    assert {new for _, new in front.plans[0].replaced.values()} == {2, 3}


def test_a_smaller_job_gets_the_lent_spare() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(MACHINE, 4))
    gang = tp.JobGraph.parallel(tensor=2, data=3).grouped("tensor", within="machine")
    cluster.allocate("gang", range(6), gang)
    cluster.hold(["machine3"], reason=LENT)
    cluster.allocate("low", [6], tp.JobGraph.independent(1).with_(priority=-1))
    smaller = tp.repair("gang", cluster, lost=range(4)).smaller
    assert smaller is not None
    assert (smaller.spares, dict(smaller.others)) == (("machine3",), {"low": ((6,), None)})
    smaller.carry_out(cluster)
    assert dict(cluster.allocations) == {"gang": (6, 7, 4, 5)}


def test_a_job_without_gpus_is_lent_cpus_and_stops_too() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(MACHINE, 2, racks=1), tp.HostResources(cpus=4, memory_gb=8))
    cluster.allocate("gang", tp.place(PAIR.with_(cpus=4), cluster) or ())
    cluster.hold(["machine1"], reason=LENT)
    low = tp.JobGraph.without_gpus(cpus=3).with_(priority=-1)
    placement = tp.place(low, cluster)
    assert placement is not None
    cluster.allocate("low", placement)
    with pytest.raises(AllocationError, match="machine 'machine1' is held: lent spare"):
        cluster.allocate("x", placement, low.with_(priority=0, cpus=1))
    plan = tp.repair("gang", cluster, lost=[0, 1]).plans[0]
    assert (plan.spares, dict(plan.others)) == (("machine1",), {"low": ((), None)})
    plan.carry_out(cluster)
    assert not cluster.runs("low")


def test_a_job_that_ends_soon_and_stops_anyway_is_no_trouble() -> None:
    cluster = full()
    for number, machine in enumerate((1, 3, 5)):
        cluster.allocate(f"low{number}", RACKS.gpus_of[f"machine{machine}"], PAIR.with_(priority=-1))
    front = tp.repair("gang", cluster, lost=["machine2", "machine0"], soon={"low0": 5.0, "low1": 9.0})
    assert len(front.plans[0].others) == 2


@pytest.mark.parametrize("lent", [1, None, "yes"])
def test_lent_is_a_flag(lent: object) -> None:
    cluster = tp.Cluster(RACKS)
    with pytest.raises(AllocationError, match="lent"):
        cluster.hold_spares(level="rack", lent=lent)  # type: ignore[arg-type]
    assert not cluster.held_gpus()
