from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topoplace as tp
from drmaestro_cases import host_clusters, host_jobs, mixed_clusters
from thoroughness import share, thorough
from topoplace import kernels
from topoplace.cluster.hosts import HostResources
from topoplace.engine.machine_state import ClusterView
from topoplace.jobs.network_profile import NetworkProfile
from topoplace.policies import DRMaestro, QueuedJob
from topoplace.policies.drmaestro.beside import BesideProcess
from topoplace.policies.drmaestro.costs import SCALE, Costs
from topoplace.policies.drmaestro.free_resources import FreeColumns
from topoplace.policies.drmaestro.network import RunningTraffic
from topoplace.policies.drmaestro.phases import WAITS, Builder, Offer, Phase, cheapest
from topoplace.policies.drmaestro.policy import free_columns
from topoplace.testing import check_policy
from topoplace.testing.default_cases import default_topologies
from topoplace_lab.simulate import NetworkContention, Workload

# ---- one phase -------------------------------------------------------------------------------------------------

COSTS = st.integers(0, 6)


@st.composite
def phases(draw: st.DrawFn) -> Phase:
    tasks, places = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    jobs, kinds = draw(st.integers(1, tasks)), draw(st.integers(1, min(tasks, 2)))
    job = [*range(jobs), *(draw(st.integers(0, jobs - 1)) for _ in range(tasks - jobs))]
    kind = [*range(kinds), *(draw(st.integers(0, kinds - 1)) for _ in range(tasks - kinds))]
    preferred = draw(
        st.lists(st.tuples(st.integers(0, tasks - 1), st.integers(0, places - 1), COSTS), max_size=4)
    )
    arcs = st.tuples(st.integers(0, kinds - 1), st.integers(0, places - 1), st.integers(0, 2), COSTS)
    offered = draw(st.lists(arcs, max_size=4))

    def column(values: Any) -> Any:
        return np.array(list(values), dtype=np.int64)

    return Phase(
        *map(column, (job, kind, (draw(COSTS) for _ in range(tasks)), (draw(COSTS) for _ in range(jobs)))),
        column(draw(st.integers(0, 2)) for _ in range(places)),
        tuple(column(row[i] for row in preferred) for i in range(3)),  # type: ignore[arg-type]
        tuple(column(row[i] for row in offered) for i in range(4)),  # type: ignore[arg-type]
    )


def least_cost(phase: Phase) -> int:
    """By all ways to choose an arc for every sub-task."""
    ways: list[list[tuple[int, int, int]]] = []  # place, the aggregator's arc, cost
    for task in range(len(phase.job)):
        options = [(WAITS, -1, int(phase.unscheduled[phase.job[task]]))]
        options += [(p, -1, c) for t, p, c in zip(*phase.preferred, strict=True) if t == task]
        options += [
            (p, arc, int(c + phase.aggregated[task]))
            for arc, (k, p, _, c) in enumerate(zip(*phase.offered, strict=True))
            if k == phase.kind[task]
        ]
        ways.append(options)

    def possible(chosen: tuple[tuple[int, int, int], ...]) -> bool:
        places = [place for place, _, _ in chosen if place != WAITS]
        arcs = [arc for _, arc, _ in chosen if arc >= 0]
        return all(places.count(p) <= phase.room[p] for p in set(places)) and all(
            arcs.count(a) <= phase.offered[2][a] for a in set(arcs)
        )

    return min(sum(cost for *_, cost in chosen) for chosen in itertools.product(*ways) if possible(chosen))


@given(phases())
def test_a_phase_against_all_its_assignments(phase: Phase) -> None:
    solution = kernels.min_cost_flow(*phase.network())
    assert solution.cost == least_cost(phase)
    places = phase.solve()
    assert all(np.count_nonzero(places == place) <= room for place, room in enumerate(phase.room))
    reached = {(int(t), int(p)) for t, p, _ in zip(*phase.preferred, strict=True)}
    by_kind = {(int(k), int(p)) for k, p, capacity, _ in zip(*phase.offered, strict=True) if capacity}
    for task, place in enumerate(places.tolist()):
        assert place == WAITS or (task, place) in reached or (int(phase.kind[task]), place) in by_kind


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=12),
    st.lists(st.integers(0, 1), min_size=1, max_size=4),
    st.data(),
)
def test_the_cheapest_places_are_all_a_minimum_needs(
    places: list[tuple[int, int]], kinds: list[int], data: st.DataObject
) -> None:
    room = np.array([capacity for _, capacity in places])
    cost = {kind: np.array([c * (kind + 1) % 7 for c, _ in places]) for kind in (0, 1)}
    preferred = [
        (data.draw(st.integers(0, len(places) - 1)), data.draw(COSTS)) if data.draw(st.booleans()) else None
        for _ in kinds
    ]

    def total(count: int) -> tuple[int, int]:
        builder = Builder()
        for job, (kind, near) in enumerate(zip(kinds, preferred, strict=True)):
            builder.add(job, kind, 1, [near] if near else [])
        offers = {}
        for kind in set(kinds):
            found = cheapest(cost[kind], room > 0, count)
            offers[kind] = Offer(found, room[found], cost[kind][found])
        given_places = builder.solve(offers, room, np.full(len(kinds), 100))
        spent = 0
        for job, place in enumerate(given_places.tolist()):
            ways = [100] if place == WAITS else [int(cost[kinds[job]][place]) + 1]
            near = preferred[job]
            spent += min([*ways, near[1]] if near and near[0] == place else ways)
        return spent, int((given_places == WAITS).sum())

    assert total(len(kinds)) == total(len(places))


def test_equation_11_to_13() -> None:
    costs = Costs(goal=2.0, importance=4.0, impatience=0.5)
    utility = costs.utility(np.array([0.0, 1.0, 2.0, 3.0]))
    assert utility.tolist() == [1.0, 0.5, 0.0, -0.5 * (10 - 4) / 9]
    assert costs.place(np.array([1.0, 2.0]), 2.0).tolist() == [SCALE, 2 * SCALE]
    waits = costs.wait(np.array([4.0, 4.0, 0.0]))
    assert waits.tolist() == [502 * SCALE + 2, 502 * SCALE + 1, 500 * SCALE]
    for wrong in ({"goal": 0.5}, {"importance": 0.0}, {"importance": 10.5}, {"impatience": -1.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Costs(**wrong)


# ---- the policy ------------------------------------------------------------------------------------------------


def firestones(count: int, gpus: int = 4) -> tp.Topology:
    machine = tp.Topology.from_links(gpus, [], 12.0, model="K80", memory_gb=12.0)
    return tp.Topology.cluster(machine, count=count)


def one_gpu(**requirements: Any) -> tp.JobGraph:
    return tp.JobGraph.independent(1).with_(**{"cpus": 10, **requirements})


def queue(*jobs: tp.JobGraph, postponed: int = 0) -> list[QueuedJob]:
    return [QueuedJob(str(i), job, 0.0, postponed) for i, job in enumerate(jobs)]


def started(plan: tp.Plan) -> dict[str, tp.Placement]:
    return dict(plan.start)


@pytest.mark.parametrize("options", [{"disaggregate": False}, {"network_aware": True}], ids=str)
def test_contract(options: dict[str, Any]) -> None:
    topologies = share(default_topologies(), 0, of=3)
    assert (
        check_policy(lambda: DRMaestro(**options), topologies=topologies, states=thorough(6, 1)).placed > 30
    )


def test_a_gpu_without_cpus_beside_it_is_used_from_elsewhere() -> None:
    cluster = tp.Cluster(firestones(2), [HostResources(0, 512.0), HostResources(160, 512.0)])
    jobs = queue(*[one_gpu()] * 8)
    both = started(DRMaestro().plan(jobs, cluster, 0.0))
    assert sorted(gpu for placement in both.values() for gpu in placement.gpus) == list(range(8))
    assert {placement.hosts[0].machine for placement in both.values()} == {1}
    assert sorted(gpu for placement in both.values() for gpu in placement.remote) == [0, 1, 2, 3]
    local = started(DRMaestro(disaggregate=False).plan(jobs, cluster, 0.0))
    assert sorted(gpu for placement in local.values() for gpu in placement.gpus) == [4, 5, 6, 7]
    assert not any(placement.remote for placement in local.values())
    assert list(local) == ["0", "1", "2", "3"]  # the oldest


@given(
    st.lists(st.tuples(st.integers(0, 45), st.integers(0, 4)), min_size=1, max_size=4),
    st.integers(1, 12),
    st.booleans(),
)
def test_as_many_jobs_as_can_start_do_and_as_many_of_them_near_their_gpus(
    machines: list[tuple[int, int]], num_jobs: int, disaggregate: bool
) -> None:
    """machines: (CPUs, busy GPUs) of each; a job needs 10 CPUs and a GPU."""
    cluster = tp.Cluster(firestones(len(machines)), [HostResources(cpus, 1.0) for cpus, _ in machines])
    for i, (_, busy) in enumerate(machines):
        if busy:
            cluster.allocate(f"busy {i}", range(4 * i, 4 * i + busy))
    plan = DRMaestro(disaggregate=disaggregate).plan(queue(*[one_gpu()] * num_jobs), cluster, 0.0)
    near = sum(min(cpus // 10, 4 - busy) for cpus, busy in machines)
    anywhere = min(sum(cpus // 10 for cpus, _ in machines), sum(4 - busy for _, busy in machines))
    assert len(plan.start) == min(num_jobs, anywhere if disaggregate else near)
    assert sum(not placement.remote for _, placement in plan.start) == min(num_jobs, near)


def test_gang_rule_no_part_of_a_job_starts() -> None:
    machines = [tp.Topology.from_links(2, [], 12.0, model=model, memory_gb=12.0) for model in ("K80", "P100")]
    topology = tp.Topology.cluster(machines)
    pair = tp.JobGraph.independent(2)
    cluster = tp.Cluster(topology, HostResources(160, 512.0))
    plan = DRMaestro().plan(queue(*[pair.with_(gpu_model="K80")] * 2), cluster, 0.0)
    assert [(job_id, placement.gpus) for job_id, placement in plan.start] == [("0", (0, 1))]
    cluster.allocate("other", [0])
    plan = DRMaestro().plan(queue(pair.with_(gpu_model="K80"), one_gpu(gpu_model="K80")), cluster, 0.0)
    assert [(job_id, placement.gpus) for job_id, placement in plan.start] == [("1", (1,))]


def test_gang_rule_holds_for_processes_and_drives() -> None:
    cluster = tp.Cluster(firestones(2), [HostResources(10, 8.0, drives=1), HostResources(10, 8.0)])
    two = tp.JobGraph.independent(2).with_(processes=2, cpus=20, memory_gb=16.0)
    (placement,) = started(DRMaestro().plan(queue(two, two), cluster, 0.0)).values()
    assert [share.machine for share in placement.hosts] == [0, 1]
    assert placement.remote == ()
    plan = DRMaestro().plan(queue(one_gpu(drives=2), one_gpu(drives=1)), cluster, 0.0)
    assert [(job_id, placement.drives) for job_id, placement in plan.start] == [("1", (0,))]
    assert "drives" in plan.reject[0][1].reason


def test_gpus_of_a_pool_are_local_to_all_of_its_machines() -> None:
    hosts = [
        HostResources(160, 512.0, pool="rack"),
        HostResources(0, 512.0, pool="rack"),
        HostResources(0, 512.0),
    ]
    cluster = tp.Cluster(firestones(3), hosts)
    plan = DRMaestro().plan(queue(*[one_gpu()] * 12), cluster, 0.0)
    assert sorted(gpu for _, placement in plan.start for gpu in placement.remote) == [8, 9, 10, 11]
    pooled = DRMaestro(disaggregate=False).plan(queue(*[one_gpu()] * 12), cluster, 0.0)
    assert sorted(gpu for _, placement in pooled.start for gpu in placement.gpus) == list(range(8))
    eight = tp.JobGraph.independent(8).with_(cpus=8)
    assert DRMaestro(disaggregate=False).place(eight, cluster) is not None
    assert DRMaestro().place(eight.with_(single_machine=True), cluster) is None  # GPUs of one machine


def test_a_placement_is_of_the_very_job_that_asked() -> None:
    dgx1 = tp.machines.get("dgx1-v100")
    ring, policy = tp.JobGraph.ring(4), DRMaestro()
    jobs = [ring, tp.JobGraph.clique(4), ring.with_(name="mine"), ring.with_(bandwidth_sensitive=False)]
    for job in jobs:
        alone = DRMaestro().place(job, tp.Cluster(dgx1))
        cluster = tp.Cluster(dgx1)
        for placement in (policy.place(ring, cluster), policy.place(job, cluster)):
            assert placement is not None
        assert alone is not None
        assert placement.job is job
        assert placement.scores == alone.scores
    plan = started(policy.plan(queue(*jobs), tp.Cluster(tp.Topology.cluster(dgx1, count=2)), 0.0))
    assert [placement.job for placement in plan.values()] == jobs


def test_a_drained_machine_takes_no_process_where_nobody_told_of_resources() -> None:
    cluster = tp.Cluster(firestones(2))
    cluster.drain(cluster.topology.machine_names[0])
    placement = DRMaestro().place(tp.JobGraph.ring(4), cluster)
    assert placement is not None
    assert [share.machine for share in placement.hosts] == [1]
    assert DRMaestro().place(tp.JobGraph.ring(5), cluster) is None
    mostly = tp.Cluster(firestones(3))
    mostly.drain(mostly.topology.machine_names[0])
    spread = DRMaestro().place(tp.JobGraph.ring(5), mostly)
    assert spread is not None
    assert [share.machine for share in spread.hosts] == [1]


def test_a_process_too_wide_for_any_machine_goes_where_most_of_its_gpus_are() -> None:
    cluster = tp.Cluster(firestones(3), HostResources(16, 64.0))
    cluster.allocate("busy", [0, 1, 2, 3, 4])
    for gpus, remote in ((5, 1), (6, 2), (7, 3)):
        placement = DRMaestro().place(tp.JobGraph.ring(gpus).with_(cpus=4), cluster)
        assert placement is not None
        assert [share.machine for share in placement.hosts] == [2]
        assert len(placement.remote) == remote
    cluster.allocate("other", [8, 9])
    placement = DRMaestro().place(tp.JobGraph.ring(5).with_(cpus=4), cluster)
    assert placement is not None
    assert [share.machine for share in placement.hosts] == [1]


def test_jobs_that_ask_for_something_else_have_their_turn() -> None:
    cluster = tp.Cluster(firestones(2), [HostResources(10, 512.0), HostResources(10, 512.0)])
    large, small = one_gpu(cpus=15), one_gpu(cpus=5)
    plan = DRMaestro().plan(
        queue(large, large, small, one_gpu(cpus=8), one_gpu(cpus=11), small), cluster, 0.0
    )
    assert [job_id for job_id, _ in plan.start] == ["2", "3", "5"]
    assert [job_id for job_id, _ in plan.reject] == ["0", "1", "4"]
    assert "largest machine has 10 CPUs and" in plan.reject[0][1].reason


def test_older_jobs_go_first() -> None:
    cluster = tp.Cluster(firestones(1, gpus=1), HostResources(160, 512.0))
    jobs = [QueuedJob("young", one_gpu(cpus=11), 50.0), QueuedJob("old", one_gpu(cpus=12), 0.0)]
    waits = Costs().wait(np.array([10.0, 60.0]))
    assert waits[1] > waits[0]
    assert [job_id for job_id, _ in DRMaestro().plan(jobs[::-1], cluster, 60.0).start] == ["old"]


NW = NetworkProfile(0.17, 0.49, 0.085)


def crowded() -> tp.Cluster:
    """One machine with two free GPUs, whose network two jobs with remote GPUs load with 0.34."""
    cluster = tp.Cluster(firestones(2), [HostResources(160, 512.0), HostResources(0, 512.0)])
    for i in range(2):
        host = tp.HostShare(0, 10)
        nw = one_gpu(profile="nw")
        placement = tp.Placement((4 + i,), topology=cluster.topology, hosts=(host,), remote=(4 + i,), job=nw)
        cluster.allocate(f"nw {i}", placement)
    cluster.allocate("others", [0, 1])
    return cluster


@pytest.mark.parametrize("machines", [2, 3, 7])
def test_of_equal_jobs_the_younger_have_the_remote_gpus(machines: int) -> None:
    """All CPUs are on one machine with four GPUs, which costs the same whoever gets them."""
    job = tp.JobGraph.independent(1).with_(cpus=1, memory_gb=1.0)
    hosts = [
        HostResources(cpus=64, memory_gb=64.0),
        *[HostResources(cpus=0, memory_gb=64.0)] * (machines - 1),
    ]
    topology = tp.Topology.cluster(tp.Topology.from_links(4, [], 12.0), count=machines)
    queue = [QueuedJob(f"job-{i}", job, 0.0) for i in range(4 * machines)]
    plan = DRMaestro().plan(queue, tp.Cluster(topology, hosts), 0.0)
    assert [name for name, _ in plan.start] == [entry.job_id for entry in queue]
    assert [bool(placement.remote) for _, placement in plan.start] == [i >= 4 for i in range(4 * machines)]


def test_a_job_that_would_miss_its_goal_is_put_off_ten_times() -> None:
    cluster, policy = crowded(), DRMaestro(network_aware=True, profiles={"nw": NW})
    for postponed in (0, 9):
        plan = policy.plan(queue(one_gpu(profile="nw"), postponed=postponed), cluster, 0.0)
        assert not plan.start
        ((_, why),) = plan.defer
        assert why.reason.startswith("postponed: it would take 1.107 times as long")
    (placement,) = started(policy.plan(queue(one_gpu(profile="nw"), postponed=10), cluster, 0.0)).values()
    assert placement.gpus == (2,)
    assert placement.scores["network_load"] == pytest.approx(0.34)
    assert placement.scores["network_slowdown"] == pytest.approx(1 + 0.34 * (0.83 / 0.51 - 1) / 2)
    assert placement.scores["goal_utility"] < 0
    patient = DRMaestro(network_aware=True, profiles={"nw": NW}, costs=Costs(goal=1.2))
    second = patient.place(one_gpu(profile="nw"), cluster)
    assert second is not None
    assert second.gpus == placement.gpus
    explained = policy.explain(one_gpu(profile="nw"), cluster)
    assert explained.refusal is not None
    assert explained.refusal.reason == why.reason


def test_costs_follow_load_times_sensitivity() -> None:
    cluster = tp.Cluster(firestones(3), HostResources(160, 512.0))
    busy = tp.Placement(
        (0,), topology=cluster.topology, hosts=(tp.HostShare(1, 10),), remote=(0,), job=one_gpu(profile="nw")
    )
    cluster.allocate("busy", busy)
    aware = DRMaestro(network_aware=True, profiles={"nw": NW})
    chosen = aware.place(one_gpu(profile="nw"), cluster)
    assert chosen is not None
    assert (chosen.hosts[0].machine, chosen.gpus, chosen.remote) == (2, (8,), ())
    assert aware.place(one_gpu(profile="unknown"), cluster) is not None


def test_explain_names_what_is_missing() -> None:
    cluster = tp.Cluster(firestones(2), HostResources(10, 512.0))
    cluster.allocate("cpus", tp.Placement((), topology=cluster.topology, hosts=(tp.HostShare(0, 10),)))
    cluster.allocate("gpus", [4, 5, 6, 7])
    policy = DRMaestro(disaggregate=False)

    def reason(job: tp.JobGraph) -> str:
        deferred = policy.explain(job, cluster).refusal
        return deferred.reason if deferred else ""

    assert (
        reason(one_gpu())
        == "cannot start now: no machine has the CPUs and memory it needs free beside the GPUs it needs"
    )
    assert reason(tp.JobGraph.ring(5)).startswith("never fits: needs 5 GPUs on one machine")
    assert reason(tp.JobGraph.without_gpus(memory_gb=600)).startswith("never fits: a process needs 0 CPUs")
    assert reason(tp.JobGraph.ring(5).with_(single_machine=True)).startswith(
        "never fits: needs 5 GPUs on one machine"
    )
    apart = tp.JobGraph.independent(3).with_(anti_affinity=True)
    assert reason(apart).startswith("never fits: needs 3 GPUs on different machines, the topology has 2")
    assert reason(tp.JobGraph.without_gpus(cpus=11)).startswith("never fits: a process needs 11 CPUs")
    explained = DRMaestro().explain(one_gpu(), cluster)
    assert explained.refusal is None
    assert [candidate.gpus for candidate in explained.candidates] == [(0,)]


def test_a_job_id_is_in_the_queue_once() -> None:
    cluster, (entry,) = tp.Cluster(firestones(1), HostResources(160, 512.0)), queue(one_gpu())
    with pytest.raises(ValueError, match=r"queue\[1\].job_id = '0' is in the queue twice"):
        DRMaestro().plan([entry, entry], cluster, 0.0)
    assert list(started(DRMaestro().plan([entry], cluster, -1.0))) == ["0"]


def test_wrong_options_are_named() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"disaggregate": 1}, "disaggregate = 1"),
        ({"profiles": {"nw": 3}}, r"profiles\['nw'\] = 3"),
        ({"max_postponements": -1}, "max_postponements = -1"),
        ({"window": 0}, "window = 0"),
    ]
    for options, message in wrong:
        with pytest.raises(ValueError, match=message):
            DRMaestro(**options)
    for alone, contended, local in ((0.5, 0.4, 0.0), (1.0, 1.0, 0.0), (0.1, 0.2, 0.3)):
        with pytest.raises(ValueError, match=r"contended|alone|local"):
            NetworkProfile(alone, contended, local)


# ---- nothing is given twice ------------------------------------------------------------------------------------


@given(mixed_clusters(), host_jobs(), st.sampled_from([None, 8, 14]), st.booleans())
@settings(max_examples=thorough(3000, 100))
def test_a_lone_process_goes_where_the_flow_sends_it(
    cluster: tp.Cluster, job: tp.JobGraph, gpu_memory_gb: float | None, disaggregate: bool
) -> None:
    if job.num_tasks:
        job = job.with_(processes=1, drives=0, gpu_memory_gb=gpu_memory_gb)
    policy = DRMaestro(disaggregate=disaggregate)
    found = policy.place(job, cluster), policy.explain(job, cluster)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BesideProcess, "decides", lambda *_: False)
        assert (policy.place(job, cluster), policy.explain(job, cluster)) == found


OPTIONS = st.fixed_dictionaries({"disaggregate": st.booleans(), "network_aware": st.booleans()})


def check_start(
    job: tp.JobGraph, placement: tp.Placement, cluster: tp.Cluster, *, disaggregate: bool
) -> None:
    topology, pool_of = cluster.topology, cluster.hosts.pool_of()
    machines = topology.machine_of[list(placement.gpus)].tolist()
    assert len(placement.gpus) == job.num_tasks
    assert len(placement.hosts) == (job.num_tasks if job.anti_affinity else job.processes)
    assert sum(share.cpus for share in placement.hosts) == (job.cpus or 0)
    assert sum(share.memory_gb for share in placement.hosts) == pytest.approx(job.memory_gb or 0.0)
    assert len(placement.drives) == job.drives
    assert all(
        topology.gpus[gpu].model == (job.gpu_model or topology.gpus[gpu].model) for gpu in placement.gpus
    )
    far = [
        gpu
        for task, (gpu, machine) in enumerate(zip(placement.gpus, machines, strict=True))
        if pool_of[machine] != pool_of[placement.host_of(task)]
    ]
    assert sorted(placement.remote) == sorted(far)
    if job.anti_affinity:
        assert len(set(machines)) == len(machines)
        assert job.num_tasks == 1 or [share.machine for share in placement.hosts] == machines
    if job.single_machine:
        assert set(machines) == {placement.hosts[0].machine}
    if not disaggregate:
        assert not far


@given(host_clusters(), st.lists(host_jobs(), max_size=8), OPTIONS)
def test_plans_never_give_anything_twice(
    cluster: tp.Cluster, jobs: list[tp.JobGraph], options: dict[str, bool]
) -> None:
    policy = DRMaestro(**options, profiles={"nw": NW})
    for turn in range(3):
        entries = [QueuedJob(f"{turn} {i}", job, 0.0) for i, job in enumerate(jobs)]
        before = cluster.snapshot()
        plan = policy.plan(entries, cluster, 1.0)
        assert cluster.snapshot() == before
        for job_id, placement in plan.start:
            check_start(jobs[int(job_id.split()[1])], placement, cluster, disaggregate=policy.disaggregate)
            cluster.allocate(job_id, placement)  # refuses what is not there
        assert not {job_id for job_id, _ in plan.start} & {job_id for job_id, _ in plan.reject}
        for job_id, _ in plan.start[::2]:
            cluster.release(job_id)


@pytest.mark.parametrize("disaggregate", [True, False])
@pytest.mark.parametrize("processes", [1, 2, 4])
def test_tasks_apart_share_no_machine_in_any_way(processes: int, *, disaggregate: bool) -> None:
    """Each task has its own process, on the machine of its GPU, however many processes the job states."""
    cluster = tp.Cluster(firestones(5), HostResources(10, 512.0))
    cluster.allocate("no GPU", [0, 1, 2, 3])
    job = tp.JobGraph.ring(4).with_(cpus=8, memory_gb=8.0, processes=processes, anti_affinity=True)
    placement = DRMaestro(disaggregate=disaggregate).place(job, cluster)
    assert placement is not None
    check_start(job, placement, cluster, disaggregate=False)
    assert set(placement.hosts) == {tp.HostShare(machine, 2, 2.0) for machine in (1, 2, 3, 4)}
    cluster.allocate("one machine less", [4, 5, 6, 7])
    assert DRMaestro(disaggregate=disaggregate).place(job, cluster) is None


def test_processes_stay_apart_when_one_of_them_has_to_try_again() -> None:
    machines = [tp.Topology.from_links(size, [], 12.0, model="K80") for size in (1, 1, 1, 2)]
    jobs = queue(one_gpu(cpus=1), tp.JobGraph.ring(3).with_(cpus=1, processes=3, anti_affinity=True))
    for size in range(3):
        cluster = tp.Cluster(tp.Topology.cluster(machines), HostResources(1, 1.0))
        cluster.allocate("busy", [*range(size), 4])
        plan = DRMaestro(disaggregate=False).plan(jobs, cluster, 0.0)
        for job_id, placement in plan.start:
            check_start(jobs[int(job_id)].job, placement, cluster, disaggregate=False)
        assert [job_id for job_id, _ in plan.start] == (["0", "1"] if size < 1 else ["0"])


@given(host_clusters(), st.lists(host_jobs(), max_size=8), st.booleans())
def test_no_job_waits_for_which_there_is_a_place(
    cluster: tp.Cluster, jobs: list[tp.JobGraph], disaggregate: bool
) -> None:
    policy = DRMaestro(disaggregate=disaggregate)
    plan = policy.plan(queue(*jobs), cluster, 1.0)
    for job_id, placement in plan.start:
        cluster.allocate(job_id, placement)
    decided = {job_id for job_id, _ in (*plan.start, *plan.reject)}
    for i, job in enumerate(jobs):
        assert str(i) in decided or policy.place(job, cluster) is None


@given(host_clusters(), st.lists(host_jobs(), max_size=6), st.data())
def test_the_state_kept_is_the_state_read_anew(
    cluster: tp.Cluster, jobs: list[tp.JobGraph], data: st.DataObject
) -> None:
    policy = DRMaestro(network_aware=True, profiles={"nw": NW})
    for i, job in enumerate(jobs):
        placement = policy.place(job, cluster)
        if placement is not None:
            with cluster.what_if():
                cluster.allocate("trial", placement)
                free_columns(cluster.view(ClusterView)).free()
            cluster.allocate(str(i), placement)
        running = sorted({*cluster.allocations, *cluster.hosts.held})
        if running and data.draw(st.booleans()):
            cluster.release(data.draw(st.sampled_from(running)))
        (cluster.drain if data.draw(st.booleans()) else cluster.undrain)(0)
        kept, fresh = free_columns(cluster.view(ClusterView)).free(), FreeColumns(cluster).free()
        for name in ("hosts", "free_mask", "gpus"):
            assert (getattr(kept, name) == getattr(fresh, name)).all()
        assert kept.num_free == fresh.num_free == cluster.num_free
        network = policy.network(cluster.view(ClusterView))
        assert network.load == pytest.approx(RunningTraffic(cluster, {"nw": NW}).network().load)


@given(host_clusters(), st.lists(st.tuples(host_jobs(), st.integers(0, 5)), max_size=8), OPTIONS)
@settings(max_examples=30)
def test_simulations_end(
    cluster: tp.Cluster, jobs: list[tuple[tp.JobGraph, int]], options: dict[str, bool]
) -> None:
    workload = Workload([job for job, _ in jobs], [float(at) for _, at in jobs], [3.0] * len(jobs))
    policy = DRMaestro(**options, profiles={"nw": NW})
    result = tp.simulate(
        cluster.topology,
        workload,
        policy,
        performance=NetworkContention({"nw": NW}),
        hosts=cluster.hosts.resources,
    )
    for record in result.records:
        assert bool(record.rejected) == (record.placement is None)
        if record.placement is None:
            assert policy.explain(record.submitted.job, cluster).refusal is not None
        else:
            assert record.postponed <= 10
            assert 3.0 <= record.run_time <= 3.0 * NW.slowdown(1.0, remote=True) + 1e-9


# ---- the network -----------------------------------------------------------------------------------------------


def test_slowdown_follows_from_the_two_shares() -> None:
    assert NW.slowdown(1.0, remote=True) == pytest.approx(0.83 / 0.51)
    assert NW.slowdown(0.5, remote=True) == pytest.approx((1 + 0.83 / 0.51) / 2)
    assert NW.slowdown(3.0, remote=True) == NW.slowdown(1.0, remote=True)
    assert NW.slowdown(1.0, remote=False) == pytest.approx((1 + 0.83 / 0.51) / 2)
    assert NetworkProfile(0.0, 0.0).slowdown(1.0, remote=True) == 1.0


def test_neighbours_slow_each_other_down_while_they_run_side_by_side() -> None:
    topology = firestones(2)
    jobs = [one_gpu(profile="nw"), one_gpu(profile="nw"), tp.JobGraph.without_gpus(cpus=100)]
    workload = Workload(jobs, [0.0, 0.0, 0.0], [10.0, 10.0, 500.0])
    hosts = [HostResources(160, 512.0), HostResources(10, 512.0)]
    policy = DRMaestro(profiles={"nw": NW}, disaggregate=False)
    result = tp.simulate(topology, workload, policy, performance=NetworkContention({"nw": NW}), hosts=hosts)
    first, second, third = result.records
    assert third.run_time == 500.0
    beside = NW.slowdown(0.085, remote=False)
    assert first.placement is not None
    assert second.placement is not None
    together = first.placement.hosts[0].machine == second.placement.hosts[0].machine
    assert first.run_time == second.run_time == pytest.approx(10.0 * (beside if together else 1.0))
