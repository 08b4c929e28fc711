"""Explanations of policies that decide machine by machine."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, permutations

import pytest

import topoplace as tp
from distributions import whole
from topoplace.cluster.job_data import number_of
from topoplace.engine.admission import able_gpus, needs_of, why_not_now
from topoplace.engine.gangs.offers import offers_of
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.machines.machine_conditions import Conditions, MachineState, Neighbour, Sight
from topoplace.mig import Reslicing


def test_explain_lists_options_of_all_machines_best_first() -> None:
    dgx, minsky = tp.machines.get("dgx1-v100"), tp.machines.get("minsky")
    cluster = tp.Cluster(tp.Topology.cluster([minsky, dgx, minsky], network=12.5))
    cluster.allocate("a", [0])
    cluster.allocate("b", [4, 8])
    explained = tp.policies.get("topo-aware").explain(tp.JobGraph.clique(2), cluster, top=30)
    utilities = [candidate.scores["system_utility"] for candidate in explained.candidates]
    assert len(set(utilities)) > 2
    assert utilities == sorted(utilities, reverse=True)


@pytest.mark.parametrize("name", tp.policies.names())
def test_explain_lists_as_many_options_as_are_asked_for(name: str) -> None:
    policy, cluster = tp.policies.get(name), tp.Cluster(tp.machines.get("minsky"))
    (best,) = policy.explain(tp.JobGraph.ring(1), cluster, top=1).candidates
    assert best == policy.place(tp.JobGraph.ring(1), cluster)
    for top in (0, (1 << 30) + 1):
        with pytest.raises(ValueError, match=f"top = {top}"):
            policy.explain(tp.JobGraph.ring(1), cluster, top=top)


def test_the_bandwidth_in_use_does_not_depend_on_the_order_in_which_jobs_became_known() -> None:
    for i, amounts in enumerate(permutations((0.1, 0.2, 0.3))):
        jobs = [
            tp.JobGraph.ring(1).with_(memory_bandwidth=amount, profile=f"model{i}/1") for amount in amounts
        ]
        assert len({number_of(job) for job in jobs}) == len(jobs)
        cluster = tp.Cluster(tp.machines.get("minsky"))
        for gpu, job in enumerate(jobs):
            cluster.allocate(f"job{gpu}", [gpu], job)
        assert cluster.view(ClusterView).state(0).memory_bandwidth == math.fsum(amounts)


def test_a_job_without_a_graph_counts_as_one_that_fills_its_gpus() -> None:
    cluster = tp.Cluster(tp.machines.get("minsky"))
    cluster.allocate("unknown", [0, 1])
    (neighbour,) = cluster.view(ClusterView).state(0).neighbours
    assert (neighbour.num_tasks, neighbour.gpu_fraction) == (2, 1.0)


def test_a_job_on_several_machines_uses_memory_bandwidth_where_its_tasks_are() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("minsky"), count=2))
    cluster.allocate("job", [0, 1, 2, 4], tp.JobGraph.ring(4).with_(memory_bandwidth=8.0))
    view = cluster.view(ClusterView)
    assert [view.state(machine).memory_bandwidth for machine in (0, 1)] == [6.0, 2.0]


def test_the_range_of_communication_costs_is_that_of_all_machines() -> None:
    machines = [tp.Topology.from_links(2, [(0, 1, 50.0)]), tp.machines.get("minsky")]
    costs = [[one.distance(u, v) for u, v in combinations(range(one.num_gpus), 2)] for one in machines]
    assert max(costs[0]) < max(costs[1])
    cluster = tp.Cluster(tp.Topology.cluster(machines, network=12.5))
    request = cluster.view(ClusterView).request(tp.JobGraph.ring(2))
    assert request.communication_range == (min(map(min, costs)), max(map(max, costs)))


def test_no_more_than_2048_tables_are_kept() -> None:
    view = tp.Cluster(tp.machines.get("minsky")).view(ClusterView)
    tables = [view.table(number, object) for number in range(2049)]
    assert view.table(2048, object) is tables[2048]
    assert view.table(0, object) is not tables[0]


def test_an_idle_cluster_is_alike_but_for_jobs_and_what_is_drained() -> None:
    broken = tp.machines.get("minsky")
    broken = replace(broken, gpus=tuple(replace(gpu, healthy=gpu.index != 1) for gpu in broken.gpus))
    hosts = tp.HostResources(8, 32.0)
    cluster = tp.Cluster(tp.Topology.cluster(broken, count=2), hosts)
    cluster.allocate("job", [0, 2])
    cluster.drain("machine1")
    view = cluster.view(ClusterView)
    idle = view.idle.cluster
    assert idle.free_gpus() == tuple(range(8))
    assert idle.hosts.resources == (hosts, hosts)
    assert not idle.hosts.drained
    assert view.idle is view.idle
    assert cluster.free_gpus() == (3,)
    refusal = tp.policies.get("g-queue").explain(tp.JobGraph.ring(8).with_(processes=2), cluster).refusal
    assert refusal is not None
    assert not refusal.permanent


def test_a_rule_sees_only_what_it_asks_for() -> None:
    machine = tp.Topology.from_links(3, [], 12.0, model="A100", memory_gb=40.0)
    cluster = tp.Cluster(machine, tp.HostResources(8, 32.0))
    cluster.slice_gpu(2, ("1g.5gb",))
    cluster.allocate("share", [0], tp.JobGraph.independent(1).with_(gpu_fraction=0.25))
    cluster.allocate("whole", [1], tp.JobGraph.independent(1).with_(profile="a"))
    view = cluster.view(ClusterView)
    blind = MachineState(0, (), 0.0, is_used=False, left=(), millicpus=0, slices=())
    assert blind == MachineState(0, (), 0.0)
    for conditions in (view.conditions(Sight()), Conditions(cluster, view.classes, Sight())):
        assert conditions.of_machine(0)[1] == blind
    neighbours = (Neighbour("", 1, 1, 0.25), Neighbour("a", 1, 1))
    assert view.state(0) == blind._replace(neighbours=neighbours)
    for processes in (False, True):
        conditions = view.conditions(Sight(gpu_use=True, processes=processes))
        assert conditions.of_machine(0)[1] == blind._replace(is_used=True)
    assert view.conditions(Sight(cpus=True)).of_machine(0)[1] == blind._replace(millicpus=8000)
    shares = view.conditions(Sight(shares=True)).of_machine(0)[1]
    assert (shares.left, [gpu for gpu, _ in shares.slices]) == ((750, 0, 0), [2])
    assert shares._replace(left=(), slices=()) == blind


@whole
def test_a_process_without_gpus_is_use_of_the_machine_and_not_of_its_gpus() -> None:
    cluster = tp.Cluster(tp.machines.get("dgx1-v100"), tp.HostResources(8, 32.0))
    job = tp.JobGraph.without_gpus(cpus=1.0)
    placement = tp.policies.get("fgd").place(job, cluster)
    assert placement is not None
    cluster.allocate("preprocessing", placement, job)
    view = cluster.view(ClusterView)
    for gpu_use in (False, True):
        for processes in (False, True):
            conditions = view.conditions(Sight(gpu_use=gpu_use, processes=processes))
            assert conditions.of_machine(0)[1].is_used == processes


def test_what_a_job_needs_by_default_is_whole_gpus_as_they_are() -> None:
    machine = tp.Topology.from_links(3, [], 12.0, model="A100", memory_gb=40.0)
    cluster = tp.Cluster(machine)
    cluster.slice_gpu(2, ("1g.5gb",))
    view, one = cluster.view(ClusterView), tp.JobGraph.ring(1)
    state = view.conditions(Sight(shares=True)).of_machine(0)[1]
    request = view.request(one)
    assert able_gpus(one, cluster) == (0, 1)
    assert list(able_gpus(one, cluster, may_reslice=True)) == [0, 1, 2]
    assert request.free_on(view.classes.of(0), state) == 0b011
    assert request.free_on(view.classes.of(0), state, reslicing=Reslicing.ALL_GPUS) == 0b111
    assert offers_of(lambda *_: 9, request, view)[0].usable == 0b011
    assert offers_of(lambda *_: 9, request, view, reslicing=Reslicing.ALL_GPUS)[0].usable == 0b111
    pair = tp.JobGraph.ring(3)
    assert why_not_now(pair, cluster).reason.startswith(
        "cannot start now: needs 3 GPUs, 2 are free; 1 more is free"
    )
    assert "links" in why_not_now(pair, cluster, may_reslice=True).reason
    assert needs_of(one.with_(cpus=2)) == "needs 1 GPU"
    assert needs_of(one.with_(cpus=2), hosts=True) == "needs 1 GPU with 2 CPUs beside them"
    assert needs_of(tp.JobGraph.without_gpus(cpus=2, memory_gb=3.0)) == "needs 2 CPUs and 3 GB of host memory"
