"""DRMaestro's options, fixed partitions, and the load at which a network is as slow as it gets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest

import topoplace as tp
from thoroughness import share, thorough
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.plan import QueuedJob
from topoplace.jobs.network_profile import NetworkProfile
from topoplace.policies.drmaestro.costs import Costs, Prices
from topoplace.policies.drmaestro.decision import Candidate, Decision
from topoplace.policies.drmaestro.network import NetworkLoad, RunningTraffic
from topoplace.policies.drmaestro.phases import room
from topoplace.policies.drmaestro.policy import DRMaestro, free_columns
from topoplace.testing import check_policy
from topoplace.testing.default_cases import default_topologies


@pytest.mark.parametrize(
    "options",
    [
        {"disaggregate": 1},
        {"network_aware": None},
        {"profiles": []},
        {"profiles": {"net": 0.5}},
        {"costs": 1.0},
        {"max_postponements": -1},
        {"window": 0},
        {"gpu_topology": 1},
    ],
    ids=str,
)
def test_options_that_cannot_be_are_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        tp.policies.get("drmaestro", **options)


def test_the_least_options_can_be_used() -> None:
    policy = tp.policies.get("drmaestro", max_postponements=0, window=1)
    assert policy.place(tp.JobGraph.ring(2), tp.Cluster(tp.machines.get("minsky")))


@pytest.mark.parametrize("disaggregate", [True, False])
@pytest.mark.parametrize("processes", [1, 2])
def test_a_job_gets_a_partition_of_its_size(disaggregate: bool, processes: int) -> None:
    topology = replace(tp.machines.get("minsky"), partitions=((0,), (0, 1), (2, 3), (1, 2, 3)))
    policy = tp.policies.get("drmaestro", disaggregate=disaggregate)
    cluster = tp.Cluster(topology)
    for gpus in ((0, 1), (2, 3)):
        placement = policy.place(tp.JobGraph.ring(2).with_(processes=processes), cluster)
        assert isinstance(placement, tp.Placement)
        assert sorted(placement.gpus) == list(gpus)
        cluster.allocate(str(gpus), placement)
    cluster.release("(2, 3)")
    assert policy.place(tp.JobGraph.ring(1), cluster) is None  # GPU 0, a partition alone, is taken


def test_processes_are_beside_their_first_gpus_in_partitions() -> None:
    """Three tasks of two processes: the second process has the third task, whose GPU is on the other machine."""
    pair, one = tp.Topology.from_links(2, [], 12.0), tp.Topology.from_links(1, [], 12.0)
    machines = {"pair": replace(pair, partitions=((0, 1),)), "one": replace(one, partitions=((0,),))}
    for cpus, starts in ((2, True), (1, False)):
        hosts = [tp.HostResources(2, 4.0), tp.HostResources(cpus, 4.0)]
        cluster = tp.Cluster(tp.Topology.cluster(machines), hosts)
        job = tp.JobGraph.ring(3).with_(processes=2, cpus=4, memory_gb=8.0)
        placement = DRMaestro().place(job, cluster)
        assert (
            placement is not None
        ) == starts  # with as many CPUs as the processes need, and not with fewer
        if placement:
            assert placement.gpus == (0, 1, 2)
            assert placement.hosts == (tp.HostShare(0, 2, 4.0), tp.HostShare(1, 2, 4.0))
            assert placement.remote == ()
        view = cluster.view(ClusterView)
        bundles = DRMaestro().bundles(view.request(job), view)
        assert room(free_columns(view).free(), bundles) == 2**30  # whatever partitions allow


def test_jobs_with_drives_or_without_gpus_take_no_partition() -> None:
    pair = replace(tp.Topology.from_links(2, [], 12.0), partitions=((0, 1),))
    cluster = tp.Cluster(tp.Topology.cluster(pair, count=1), tp.HostResources(4, 4.0, drives=1))
    both = tp.JobGraph.ring(2).with_(cpus=1)
    assert DRMaestro().place(both, cluster) is not None
    assert DRMaestro().place(both.with_(drives=1), cluster) is None
    without = DRMaestro().place(tp.JobGraph.without_gpus(cpus=4), cluster)
    assert without is not None
    assert without.gpus == ()
    cluster.allocate("without", without)
    assert DRMaestro().place(tp.JobGraph.without_gpus(cpus=1), cluster) is None
    assert DRMaestro().place(both, cluster) is None


@pytest.mark.parametrize("retry", [True, False])
def test_a_resource_that_jobs_do_not_ask_for_limits_no_batch(retry: bool) -> None:
    """All four start at once, on machines without memory or drives."""
    cluster = tp.Cluster(
        tp.Topology.cluster(tp.machines.get("minsky"), count=1), tp.HostResources(4, 0.0, drives=0)
    )
    for job in (tp.JobGraph.independent(1).with_(cpus=1), tp.JobGraph.independent(1)):
        queue = [QueuedJob(str(i), job, float(i)) for i in range(4)]
        assert len(DRMaestro(retry=retry).plan(queue, cluster, 9.0).start) == 4


def test_a_process_that_does_not_fit_is_placed_again_in_the_same_decision() -> None:
    """The flow puts the first two jobs on one machine, which has CPUs for one of them; the third has no machine."""
    machine = tp.Topology.from_links(4, [], 12.0, model="K80", memory_gb=12.0)
    cluster = tp.Cluster(tp.Topology.cluster(machine, count=2), tp.HostResources(20, 60.0))
    one, view = tp.JobGraph.independent(1), cluster.view(ClusterView)
    asked = [(10, 10.0), (20, 5.0), (0, 61.0)]
    jobs = [one.with_(cpus=cpus, memory_gb=memory_gb) for cpus, memory_gb in asked]
    policy, free = DRMaestro(), free_columns(view).free()
    decision = policy.decision(view, free, policy.network(view))
    batch = [
        Candidate(QueuedJob(str(i), job), policy.bundles(view.request(job), view), 0.0)
        for i, job in enumerate(jobs)
    ]
    assert [job.entry.job_id for job, _ in decision.run(batch)] == ["0", "1"]
    assert decision.disturbed


@pytest.mark.parametrize(("load", "is_postponed"), [(0.5, False), (0.51, True)])
def test_a_job_that_just_reaches_its_goal_starts(load: float, is_postponed: bool) -> None:
    """A full network doubles the run time of the job, and its goal is 1.5 times that of an idle one."""
    cluster = tp.Cluster(tp.machines.get("minsky"), tp.HostResources(8, 8.0))
    job = tp.JobGraph.independent(1).with_(cpus=1, profile="asks")
    policy = DRMaestro(
        network_aware=True, profiles={"asks": NetworkProfile(0.5, 0.75, 0.5)}, costs=Costs(goal=1.5)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunningTraffic, "network", lambda self: NetworkLoad(np.array([load]), np.zeros(1)))
        assert (policy.place(job, cluster) is None) == is_postponed
        refusal = policy.explain(job, cluster).refusal
    assert (refusal is not None and refusal.reason.startswith("postponed: ")) == is_postponed


def test_a_network_beyond_its_capacity_slows_no_further() -> None:
    load = NetworkLoad(np.array([0.5, 1.0, 3.0]), np.array([0.0, 0.0, 0.2]))
    profile = NetworkProfile(0.1, 0.4)
    half, full, over = load.slowdown(profile, remote=True).tolist()
    sensitivity = profile.sensitivity(remote=True)
    assert half == pytest.approx(1 + sensitivity / 2)
    assert full == pytest.approx(1 + sensitivity)
    assert over == pytest.approx(full + 0.2 * profile.traffic(remote=True))


def test_a_job_with_too_few_local_gpus_leaves_them_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Phase 1 is replaced by one that puts every process on the only machine, however many GPUs are left there."""
    monkeypatch.setattr(Decision, "_hosts", lambda self, jobs, left: [[0] for _ in jobs])
    machine = tp.Topology.from_links(3, [], 12.0, model="K80", memory_gb=12.0)
    cluster = tp.Cluster(tp.Topology.cluster(machine, count=1), tp.HostResources(160, 512.0))
    jobs = [tp.JobGraph.independent(size).with_(cpus=2) for size in (2, 2, 1)]
    entries = [QueuedJob(str(i), job, 0.0) for i, job in enumerate(jobs)]
    plan = DRMaestro(disaggregate=False).plan(entries, cluster, 0.0)
    assert [(job_id, placement.gpus) for job_id, placement in plan.start] == [("0", (0, 1)), ("2", (2,))]


def of_two_sizes(loads: tuple[float, float]) -> tp.Placement:
    """The placement of a job on one of two machines with GPUs of 12 and 24 GB, whose networks have these loads."""
    machines = [tp.Topology.from_links(1, [], 12.0, model="K80", memory_gb=gb) for gb in (24.0, 12.0)]
    cluster = tp.Cluster(tp.Topology.cluster(machines), tp.HostResources(160, 512.0))
    profiles = {
        "asks": NetworkProfile(0.5, 0.75, 0.5)
    }  # a full network doubles its time, wherever its GPUs are
    job = tp.JobGraph.independent(1).with_(cpus=1, gpu_memory_gb=8.0, profile="asks")
    policy = DRMaestro(network_aware=True, profiles=profiles)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunningTraffic, "network", lambda self: NetworkLoad(np.array(loads), np.zeros(2)))
        placement = policy.place(job, cluster)
    assert placement is not None
    return placement


def test_memory_decides_between_gpus_that_are_equally_near() -> None:
    assert of_two_sizes((0.0, 0.0)).gpus == (1,)
    assert of_two_sizes((0.0, 0.0009)).gpus == (1,)  # a step of memory is worth a slowdown of 0.1 %
    assert of_two_sizes((0.0, 0.0012)).gpus == (0,)


def cluster_with_cpus(*cpus: int) -> tp.Cluster:
    """Machines of four GPUs, with as many logical CPUs free as given."""
    machine = tp.Topology.from_links(4, [], 12.0, model="K80", memory_gb=12.0)
    return tp.Cluster(
        tp.Topology.cluster(machine, count=len(cpus)), [tp.HostResources(each, 512.0) for each in cpus]
    )


def test_jobs_without_a_place_are_asked_about_once_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[int] = []
    run = Decision.run

    def counted(self: Decision, batch: Any) -> Any:
        batches.append(len(batch))
        return run(self, batch)

    monkeypatch.setattr(Decision, "run", counted)
    kinds = [tp.JobGraph.independent(1).with_(cpus=cpus) for cpus in (9, 10, 12)]
    queue = [QueuedJob(str(i), kinds[i % 3], float(i)) for i in range(300)]
    policy = DRMaestro(disaggregate=False)
    assert policy.plan(queue, cluster_with_cpus(8, 8), 1000.0).start == ()
    assert batches == []  # eight GPUs are free, but no machine has nine CPUs
    started = [name for name, _ in policy.plan(queue, cluster_with_cpus(24, 10), 1000.0).start]
    assert started == ["0", "1", "2"]
    assert sum(batches) < 20


@pytest.mark.parametrize("disaggregate", [True, False])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_as_many_jobs_start_as_there_is_room(disaggregate: bool, size: int) -> None:
    """For jobs of one process with local GPUs, the bound on a batch is exact; with remote ones it is a bound."""
    cluster = cluster_with_cpus(24, 9, 40, 5)
    policy = DRMaestro(disaggregate=disaggregate)
    job = tp.JobGraph.independent(size).with_(cpus=8, processes=1)
    view = cluster.view(ClusterView)
    most = room(free_columns(view).free(), policy.bundles(view.request(job), view))
    queue = [QueuedJob(str(i), job, float(i)) for i in range(20)]
    assert len(policy.plan(queue, cluster, 100.0).start) == most
    assert most == ({1: 9, 2: 8, 3: 5} if disaggregate else {1: 8, 2: 5, 3: 3})[size]


def test_jobs_that_disturbed_each_other_are_retried_oldest_first() -> None:
    """Two jobs fit on the machine with CPUs; the flow does not see that jobs of different sizes share its CPUs."""
    cluster = cluster_with_cpus(20)
    kinds = [tp.JobGraph.independent(1).with_(cpus=cpus) for cpus in (10, 9, 8, 7)]
    queue = [QueuedJob(str(i), kinds[i], float(i)) for i in range(4)]
    plan = DRMaestro(disaggregate=False).plan(queue, cluster, 1.0)
    assert [name for name, _ in plan.start] == ["0", "1"]


def dgx_cluster(*busy: tuple[int, ...]) -> tp.Cluster:
    """DGX-1 machines with these GPUs busy on each, by their numbers on the machine."""
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx1-v100"), count=len(busy)))
    for machine, gpus in enumerate(busy):
        if gpus:
            cluster.allocate(f"other-{machine}", tuple(8 * machine + gpu for gpu in gpus))
    return cluster


@pytest.mark.parametrize("disaggregate", [True, False])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_a_job_gets_the_gpus_of_its_machine_that_are_nearest_to_each_other(
    disaggregate: bool, size: int
) -> None:
    cluster, job = dgx_cluster((0, 5)), tp.JobGraph.ring(size)
    linked = DRMaestro(gpu_topology=True, disaggregate=disaggregate).place(job, cluster)
    best = tp.policies.TopoAware().place(job, cluster)
    assert linked is not None
    assert best is not None
    cost = [tp.objectives.communication_cost(job, each.gpus, cluster.topology) for each in (linked, best)]
    assert cost[0] == cost[1]
    assert linked.remote == ()


def test_the_machine_with_gpus_near_to_each_other_costs_less() -> None:
    cluster, job = dgx_cluster((1, 2, 3, 4, 5, 6), (1, 2, 4, 5, 6, 7), ()), tp.JobGraph.ring(2)
    assert DRMaestro().place(job, cluster).gpus == (0, 7)  # type: ignore[union-attr]  # without a link
    policy = DRMaestro(gpu_topology=True)
    assert policy.place(job, cluster).gpus == (8, 11)  # type: ignore[union-attr]  # a double NVLink
    queue = [QueuedJob(str(i), job, 0.0) for i in range(6)]
    plan = policy.plan(queue, cluster, 0.0)
    assert len(plan.start) == 6
    assert len({gpu for _, placement in plan.start for gpu in placement.gpus}) == 12


def test_links_do_not_count_for_jobs_that_they_do_not_change() -> None:
    cluster = dgx_cluster((0, 5))
    for job in (tp.JobGraph.independent(3), tp.JobGraph.ring(1), tp.JobGraph.ring(4).with_(processes=2)):
        assert DRMaestro(gpu_topology=True).place(job, cluster) == DRMaestro().place(job, cluster)


def test_near_gpus_are_chosen_among_those_of_the_least_memory_that_is_enough() -> None:
    described = [tp.Gpu(i, f"GPU{i}", memory_gb=24.0 if i == 1 else 12.0) for i in range(4)]
    links = [(0, 1, 50.0), (2, 3, 50.0)]
    topology = replace(tp.Topology.from_links(4, links, 12.0), gpus=tuple(described))
    job = tp.JobGraph.ring(2).with_(gpu_memory_gb=8.0)
    placement = DRMaestro(gpu_topology=True).place(job, tp.Cluster(topology))
    assert placement is not None
    assert sorted(placement.gpus) == [2, 3]


@pytest.mark.parametrize(("waiting", "first"), [("seconds", "early"), ("rounds", "late")])
def test_waiting_in_rounds_counts_the_plans_that_left_a_job_waiting(
    waiting: Literal["seconds", "rounds"], first: str
) -> None:
    """Two machines have CPUs for a job each, and one of them has GPUs; the job that waited longer goes first."""
    cluster = cluster_with_cpus(12, 12)
    cluster.allocate("other", (4, 5, 6, 7))
    kinds = [tp.JobGraph.independent(1).with_(cpus=cpus, memory_gb=400.0) for cpus in (10, 9)]
    early, late = QueuedJob("early", kinds[0], 0.0), QueuedJob("late", kinds[1], 5.0)
    policy = DRMaestro(disaggregate=False, costs=Costs(waiting=waiting))
    cluster.allocate("others", (0, 1, 2, 3))
    assert policy.plan([late], cluster, 9.0).start == ()
    cluster.release("others")
    rounds = policy.rounds(cluster.view(ClusterView))
    assert rounds.waited == ({"late": 1} if waiting == "rounds" else {})
    assert [name for name, _ in policy.plan([early, late], cluster, 9.0).start] == [first]
    assert rounds.waited == ({"early": 1} if waiting == "rounds" else {})


def test_load_over_that_of_the_fullest_machine() -> None:
    load = NetworkLoad(np.array([0.1, 0.2, 0.0]), np.array([5.0, 5.0, 5.0]))
    profile = NetworkProfile(0.1, 0.4)
    sensitivity = profile.sensitivity(remote=True)
    prices = Prices(Costs(load="fullest"), load)
    assert prices.slowdown(profile, remote=True).tolist() == pytest.approx(
        [1 + sensitivity / 2, 1 + sensitivity, 1.0]
    )
    assert prices.shared(profile, remote=True) == 0
    idle = Prices(Costs(load="fullest"), NetworkLoad.none(2))
    assert idle.slowdown(profile, remote=True).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "options",
    [{"gpu_topology": True}, {"costs": Costs(waiting="rounds", load="fullest"), "network_aware": True}],
    ids=str,
)
def test_the_contract_holds_with_the_options(options: dict[str, Any]) -> None:
    topologies = share(default_topologies(), 1, of=3)
    assert (
        check_policy(lambda: DRMaestro(**options), topologies=topologies, states=thorough(6, 1)).placed > 30
    )
