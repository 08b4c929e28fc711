"""The four policies of SC'17 against brute force, and against themselves on a cluster built from scratch."""

from __future__ import annotations

import dataclasses
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topoplace as tp
from distributions import whole
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.plan import QueuedJob
from topoplace.jobs.performance_profile import PerformanceProfile
from topoplace.objectives import communication_cost, fragmentation, interference
from topoplace.objectives.authors_utility import authors_utility
from topoplace.objectives.colocation import worst_ratio
from topoplace.policies.sc17.topo_aware import _unions
from topoplace.testing.strategies import cluster_topologies, clusters, job_graphs, topologies

SC17 = ("fcfs", "best-fit", "topo-aware", "topo-aware-p")
PROFILE = PerformanceProfile(
    {
        **{("net/1", size, "intra-socket"): 100.0 for size in (1, 2, 3)},
        ("net/1", 2, "inter-socket"): 125.0,
        ("big/9", 1, "intra-socket"): 100.0,
        ("big/9", 2, "intra-socket"): 100.0,
    },
    {
        **{("net/1", a, "net/1", b): 100.0 + 10 * a + b + 25 * (a == 2) for a in (1, 2) for b in (1, 2)},
        ("net/1", 1, "big/9", 1): 140.0,
        ("big/9", 1, "net/1", 1): 101.0,
    },
)
WORST = {
    ("net/1", 1): 100 / 146,  # two of net/1 next to it
    ("net/1", 2): 100 / 147,  # next to two of net/1; on two sockets 100 / 125
    ("net/1", 3): 1.0,
    ("big/9", 1): 100 / 140,  # net/1 next to it
    ("big/9", 2): 1.0,
}
"""The least of the ratios in `PROFILE` that a kind of job has to do with."""
MINSKY = tp.machines.get("minsky")


def job_of(size: int, name: str = "net/1", least: float = 0.0) -> tp.JobGraph:
    return tp.JobGraph.clique(size).with_(profile=name, min_utility=least)


def racks(count: int = 6) -> tp.Topology:
    return tp.Topology.cluster(MINSKY, count=count, racks=2)


# ---- the best placement ------------------------------------------------------------------------------------------


def system_utility(job: tp.JobGraph, gpus: tuple[int, ...], cluster: tp.Cluster) -> float:
    """Eq. 1 by the definitions alone, for jobs on one Minsky whose worst pair costs 20."""
    topology = cluster.topology
    cost = communication_cost(job, gpus, topology)
    least = {1: 0.0, 2: 1.0, 3: 41.0, 4: 82.0}[job.num_tasks]
    most = {1: 0.0, 2: 20.0, 3: 41.0, 4: 82.0}[job.num_tasks]
    sockets = {topology.socket_of[gpu] for gpu in gpus}
    others = [
        (graph.profile or "", graph.num_tasks)
        for other, graph in cluster.jobs.items()
        if sockets & {topology.socket_of[gpu] for gpu in cluster.allocations[other]}
    ]
    where = "intra-socket" if len(sockets) == 1 else "inter-socket"
    shared = interference(PROFILE, (job.profile or "", job.num_tasks), where, others)[1]
    lost = (cost - least) / (most - least) if most > least else 0.0
    worst = WORST.get((job.profile or "", job.num_tasks), 100 / 147)
    lost += (min((1 - shared) / (1 - worst), 1.0) if worst < 1 else 0.0) + fragmentation(
        gpus, topology, cluster.free_gpus()
    )
    return 1 - lost / 3


@given(data=st.data())
def test_topo_aware_finds_the_highest_system_utility_of_a_machine(data: st.DataObject) -> None:
    cluster = tp.Cluster(MINSKY)
    kinds = st.tuples(st.sampled_from(["net/1", "big/9"]), st.integers(1, 2))
    for number, (name, size) in enumerate(data.draw(st.lists(kinds, max_size=3))):
        free = cluster.free_gpus()
        if size < len(free):
            order = data.draw(st.permutations(free))
            cluster.allocate(str(number), order[:size], job_of(size, name))
    job = job_of(data.draw(st.integers(1, cluster.num_free)))
    placement = tp.policies.TopoAware(profile=PROFILE).place(job, cluster)
    assert placement is not None
    every = permutations(cluster.free_gpus(), job.num_tasks)
    best = max(system_utility(job, gpus, cluster) for gpus in every)
    assert placement.scores["system_utility"] == pytest.approx(best, abs=1e-9)
    assert system_utility(job, placement.gpus, cluster) == pytest.approx(best, abs=1e-9)


@given(
    job=job_graphs(max_tasks=4), cluster=clusters(topologies(max_gpus=6) | cluster_topologies(max_machines=2))
)
def test_communication_is_least_where_the_job_landed(job: tp.JobGraph, cluster: tp.Cluster) -> None:
    placement = tp.policies.TopoAware().place(job, cluster)
    if placement is None or len({cluster.topology.machine_of[gpu] for gpu in placement.gpus}) > 1:
        return
    cost = communication_cost(job, placement.gpus, cluster.topology)
    assert placement.scores["communication_cost"] == pytest.approx(cost)
    orders = permutations(placement.gpus)
    least = min(communication_cost(job, order, cluster.topology) for order in orders)
    assert cost == pytest.approx(least)


@pytest.mark.parametrize("name", SC17)
@given(data=st.data())
@settings(max_examples=30)
def test_what_is_kept_between_decisions_never_changes_one(name: str, data: st.DataObject) -> None:
    topology = data.draw(st.sampled_from([racks(4), tp.machines.get("dgx1-v100"), tp.machines.get("dgx2")]))
    cluster, policy = tp.Cluster(topology), tp.policies.get(name, profile=PROFILE)
    sizes, names = st.integers(1, 5), st.sampled_from(["net/1", "big/9", "other"])
    patterns = st.sampled_from(
        [tp.JobGraph.clique, tp.JobGraph.star, tp.JobGraph.chain, tp.JobGraph.independent]
    )
    for step in range(data.draw(st.integers(1, 8))):
        least = data.draw(st.sampled_from([0.0, 0.4, 0.6]))
        job = data.draw(patterns)(data.draw(sizes)).with_(profile=data.draw(names), min_utility=least)
        if data.draw(st.booleans()) and cluster.allocations:
            cluster.release(data.draw(st.sampled_from(sorted(cluster.allocations))))
        if data.draw(st.integers(0, 5)) == 0:
            cluster.drain(data.draw(st.integers(0, topology.num_gpus - 1)))
        with cluster.what_if() as state:
            state.allocate("trial", state.free_gpus()[:2], job_of(2)) if state.num_free > 1 else None
            policy.place(job, state)
        kept, fresh = policy.place(job, cluster), policy.place(job, tp.Cluster.restore(cluster.snapshot()))
        assert kept == fresh
        if kept:
            assert kept.scores == fresh.scores
            cluster.allocate(str(step), kept)


def test_a_socket_stays_whole_unless_interference_costs_more() -> None:
    cluster = tp.Cluster(MINSKY)
    cluster.allocate("first", [0], job_of(1))
    for policy, name, gpu in (
        (tp.policies.TopoAware(), "net/1", 1),
        (tp.policies.TopoAware(profile=PROFILE), "net/1", 1),  # 11 % slower each, of 46 % at worst
        (tp.policies.TopoAware(profile=PROFILE), "big/9", 2),  # the first would be 40 % slower
    ):
        placement = policy.place(job_of(1, name), cluster)
        assert placement is not None
        assert placement.gpus == (gpu,)


def test_of_links_equally_near_the_faster_ones_are_taken() -> None:
    dgx = tp.machines.get("dgx1-v100")
    placement = tp.policies.TopoAware().place(tp.JobGraph.ring(3), tp.Cluster(dgx))
    assert placement is not None
    assert placement.scores["communication_cost"] == 3.0
    assert placement.scores["aggregated_bandwidth"] == 125.0


@pytest.mark.parametrize(("sockets", "choices"), [(4, 6 + 4 + 1), (5, 1)])
def test_sets_of_sockets_are_tried_where_they_are_at_most_four(sockets: int, choices: int) -> None:
    """Three tasks fit on every two, three or four sockets of two GPUs each; of five, all together are tried."""
    size = 2 * sockets
    topology = tp.Topology.from_links(size, [], 12.0, sockets=[gpu // 2 for gpu in range(size)])
    view = tp.Cluster(topology).view(ClusterView)
    policy, request, machine_class = tp.policies.TopoAware(), view.request(job_of(3)), view.classes.of(0)
    assert len(_unions(machine_class, (1 << size) - 1, 3)) == choices
    assert 1 <= len(list(policy.mappings(request, machine_class, (1 << size) - 1))) <= choices


# ---- waiting -----------------------------------------------------------------------------------------------------


def one_gpu_free_in_each_socket() -> tp.Cluster:
    cluster = tp.Cluster(MINSKY)
    cluster.allocate("a", [0], job_of(1))
    cluster.allocate("b", [2], job_of(1))
    return cluster


def test_a_job_waits_for_its_least_utility() -> None:
    cluster, job = one_gpu_free_in_each_socket(), job_of(2, least=0.5)
    at_once, patient = (tp.policies.get(name, profile=PROFILE) for name in SC17[2:])
    taken = at_once.place(job, cluster)
    assert taken is not None
    assert taken.gpus == (1, 3)
    assert taken.scores["utility"] < 0.5
    assert patient.place(job, cluster) is None
    explained = patient.explain(job, cluster)
    assert [candidate.gpus for candidate in explained.candidates] == [(1, 3)]
    assert explained.refusal is not None
    assert "asked for" in explained.refusal.reason
    cluster.release("a")
    packed = patient.place(job, cluster)
    assert packed is not None
    assert packed.gpus == (0, 1)


def test_a_job_that_fits_a_machine_badly_is_not_spread_instead() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(MINSKY, count=2))
    cluster.allocate("a", [0], job_of(1))
    cluster.allocate("b", [2], job_of(1))
    cluster.allocate("c", [4, 5, 6], job_of(3))
    policy, job = tp.policies.TopoAwareP(profile=PROFILE), job_of(2, least=0.3)
    assert policy.place(job, cluster) is None
    cluster.allocate("d", [1], job_of(1))  # now no machine has two
    assert policy.place(job, cluster) is None
    spread = policy.place(job.with_(min_utility=0.0), cluster)
    assert spread is not None
    assert spread.gpus == (3, 7)
    assert spread.scores["utility"] < 0.3


def test_a_younger_job_overtakes_one_that_waits() -> None:
    cluster = one_gpu_free_in_each_socket()
    queue = [QueuedJob("old", job_of(2, least=0.5)), QueuedJob("young", job_of(1))]
    plan = tp.policies.TopoAwareP(profile=PROFILE).plan(queue, cluster, 0.0)
    assert [job_id for job_id, _ in plan.start] == ["young"]
    assert [job_id for job_id, _ in plan.defer] == ["old"]
    assert tp.policies.FirstComeFirstServed().plan(queue, cluster, 0.0).start[0][0] == "old"


def test_a_limit_on_postponements_ends_the_wait() -> None:
    cluster, policy = (
        one_gpu_free_in_each_socket(),
        tp.policies.TopoAwareP(profile=PROFILE, max_postponements=2),
    )
    job = job_of(2, least=0.5)
    for postponed, starts in ((0, 0), (1, 0), (2, 1)):
        plan = policy.plan([QueuedJob("old", job, 0.0, postponed)], cluster, 0.0)
        assert (len(plan.start), len(plan.defer)) == (starts, 1 - starts)


@pytest.mark.parametrize("name", SC17[1:])
def test_a_job_too_large_for_now_lets_others_pass(name: str) -> None:
    cluster = one_gpu_free_in_each_socket()
    queue = [QueuedJob("large", job_of(3)), QueuedJob("small", job_of(1)), QueuedJob("never", job_of(9))]
    plan = tp.policies.get(name).plan(queue, cluster, 0.0)
    assert [job_id for job_id, _ in plan.start] == ["small"]
    assert [job_id for job_id, _ in plan.reject] == ["never"]
    assert tp.policies.get("fcfs").plan(queue, cluster, 0.0).start == ()


# ---- constraints -------------------------------------------------------------------------------------------------


def test_memory_bandwidth_is_shared_by_the_jobs_of_a_machine() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(MINSKY, count=2))
    policy = tp.policies.TopoAware(memory_bandwidth=100.0)
    job = job_of(1).with_(memory_bandwidth=60.0)
    machines = []
    for number in range(2):
        placement = policy.place(job, cluster)
        assert placement is not None
        machines.append(placement.gpus[0] // 4)
        cluster.allocate(str(number), placement)
    assert sorted(machines) == [0, 1]
    assert policy.place(job, cluster) is None
    reason = policy.explain(job, cluster).refusal
    assert reason is not None
    assert "memory bandwidth" in reason.reason
    cluster.release("0")
    assert policy.place(job, cluster) is not None
    too_much = policy.explain(job_of(2).with_(memory_bandwidth=300.0, single_machine=True), cluster).refusal
    assert too_much is not None
    assert too_much.reason.startswith("never fits: needs 300 GB/s")


@pytest.mark.parametrize("name", SC17)
def test_requirements_of_where_to_run(name: str) -> None:
    cluster, policy = tp.Cluster(racks()), tp.policies.get(name)
    assert policy.place(job_of(5).with_(single_machine=True), cluster) is None
    apart = policy.place(job_of(3).with_(anti_affinity=True), cluster)
    assert apart is not None
    assert len({gpu // 4 for gpu in apart.gpus}) == 3
    assert policy.place(job_of(7).with_(anti_affinity=True), cluster) is None


def test_a_large_job_gets_few_machines_near_each_other() -> None:
    cluster = tp.Cluster(racks())  # three racks of two machines
    cluster.allocate("other", [0])
    placement = tp.policies.TopoAware().place(job_of(8), cluster)
    assert placement is not None
    assert sorted(placement.gpus) == list(range(8, 16))  # the first rack has only seven free
    small = tp.policies.TopoAware().place(job_of(7), cluster)
    assert small is not None
    assert {gpu // 8 for gpu in small.gpus} == {0}
    assert placement.scores["utility"] == pytest.approx(1.0)  # no better place on the idle cluster
    fits_one = tp.policies.TopoAware().place(job_of(4), cluster)
    assert fits_one is not None
    assert len({gpu // 4 for gpu in fits_one.gpus}) == 1


def test_best_fit_fills_up_before_it_opens_a_machine() -> None:
    cluster = tp.Cluster(racks())
    cluster.allocate("other", [8, 9, 10])
    first = tp.policies.BestFit().place(job_of(1), cluster)
    assert first is not None
    assert first.gpus == (11,)
    pair = tp.policies.BestFit().place(job_of(2), cluster)
    assert pair is not None
    assert pair.gpus == (0, 1)


def test_best_fit_fills_the_socket_with_the_least_left() -> None:
    cluster = tp.Cluster(tp.machines.get("dgx1-v100"))
    cluster.allocate("other", [0, 1, 4, 5, 6])
    for size, gpus in ((1, (7,)), (2, (2, 3)), (3, (7, 2, 3))):
        placement = tp.policies.BestFit().place(job_of(size), cluster)
        assert placement is not None
        assert placement.gpus == gpus


def test_best_fit_to_the_letter_takes_the_most_used_socket_first() -> None:
    cluster = tp.Cluster(racks())
    cluster.allocate("other", [8])  # the machine of GPUs 8 to 11 has one GPU free on its first socket
    for reading, gpus in (("sockets", (10, 11)), ("domains", (9, 10))):
        placement = tp.policies.BestFit(reading=reading).place(job_of(2), cluster)  # type: ignore[arg-type]
        assert placement is not None
        assert placement.gpus == gpus
    with pytest.raises(ValueError, match="reading = 'machines'"):
        tp.policies.BestFit(reading="machines")  # type: ignore[arg-type]


# ---- the formula -------------------------------------------------------------------------------------------------


def test_the_worst_case_is_that_of_the_kind_of_job() -> None:
    for (name, size), worst in WORST.items():
        assert worst_ratio(PROFILE, (name, size)) == pytest.approx(worst)
    assert worst_ratio(PROFILE, ("unknown", 1)) == pytest.approx(100 / 147)
    assert worst_ratio(None, ("net/1", 1)) == 1.0
    spread = PerformanceProfile({("a", 2, "intra-socket"): 100.0, ("a", 2, "inter-socket"): 130.0})
    assert worst_ratio(spread, ("a", 2)) == pytest.approx(100 / 130)


def test_the_weights_are_those_of_eq1() -> None:
    costs = tp.objectives.Costs(2, 20.0, 1.0, 20.0, 0.8, 0.9, 0.6, 0.5)
    utility = tp.objectives.Utility(0.5, 0.3, 0.2)
    assert utility.system(costs) == pytest.approx(1 - 0.5 * 1.0 - 0.3 * 0.25 - 0.2 * 0.5)
    assert utility.job(costs) == pytest.approx(1 - (0.5 * 1.0 + 0.3 * 0.5) / 0.8)
    with pytest.raises(ValueError, match=r"sum to 1\.1: must be 1"):
        tp.objectives.Utility(0.5, 0.5, 0.1)
    with pytest.raises(ValueError, match=r"interference = -0\.5"):
        tp.objectives.Utility(1.0, -0.5, 0.5)


@given(
    weights=st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 9)),
    parts=st.tuples(*[st.floats(0, 1)] * 4),
)
def test_utilities_are_from_0_to_1_and_fall_with_every_cost(
    weights: tuple[int, ...], parts: tuple[float, ...]
) -> None:
    utility = tp.objectives.Utility(*(weight / sum(weights) for weight in weights))
    communication, suffered, shared, fragments = parts
    costs = tp.objectives.Costs(2, communication, 0.0, 1.0, suffered, shared, 0.0, fragments)
    ideal = tp.objectives.Costs(2, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0)
    for value in (utility.job, utility.system):
        assert -1e-9 <= value(costs) <= value(ideal) == pytest.approx(1.0)


def test_the_authors_formula_is_theirs() -> None:
    policy = tp.policies.TopoAwareP(profile=PROFILE, utility="authors")
    cluster = one_gpu_free_in_each_socket()
    assert policy.place(job_of(2, least=0.3), cluster) is None
    placement = tp.policies.TopoAware(utility="authors").place(job_of(2), tp.Cluster(MINSKY))
    assert placement is not None
    assert placement.gpus == (0, 1)
    assert placement.scores["utility"] == pytest.approx(1.0)
    costs = tp.objectives.Costs(2, 20.0, 1.0, 20.0, 0.8, 0.9, 0.6, 0.25)
    formula = tp.objectives.AuthorsUtility()
    assert formula.job(costs) == pytest.approx(authors_utility(19 / 40, 0.8))
    assert formula.system(costs) == pytest.approx(authors_utility(19 / 40, 0.9, 0.25))
    with pytest.raises(ValueError, match="utility = 'mine'"):
        tp.policies.TopoAware(utility="mine")  # type: ignore[arg-type]


# ---- several machines --------------------------------------------------------------------------------------------


@given(data=st.data())
@settings(max_examples=60)
def test_a_large_job_gets_the_fewest_machines_and_of_these_the_nearest(data: st.DataObject) -> None:
    cluster = tp.Cluster(racks())
    for machine in range(6):
        busy = data.draw(st.integers(0, 4))
        if busy:
            cluster.allocate(f"m{machine}", range(4 * machine, 4 * machine + busy))
    free = [sum(gpu // 4 == machine for gpu in cluster.free_gpus()) for machine in range(6)]
    size = data.draw(st.integers(max(max(free), 1) + 1, 24))
    placement = tp.policies.TopoAware().place(tp.JobGraph.ring(size), cluster)
    enough = [
        chosen
        for count in range(1, 7)
        for chosen in combinations(range(6), count)
        if sum(free[machine] for machine in chosen) >= size
    ]
    if not enough:
        assert placement is None
        return
    assert placement is not None
    used = {gpu // 4 for gpu in placement.gpus}
    fewest = len(enough[0])
    assert len(used) == fewest
    in_one_rack = any(
        len({machine // 2 for machine in chosen}) == 1 for chosen in enough if len(chosen) == fewest
    )
    assert (len({machine // 2 for machine in used}) == 1) == in_one_rack


@pytest.mark.parametrize("name", SC17)
@pytest.mark.parametrize(
    ("machines", "limit", "size", "apart"), [(4, 30, 4, False), (2, 60, 4, False), (4, 60, 2, True)]
)
def test_machines_share_the_memory_bandwidth_of_a_job(
    name: str, machines: int, limit: float, size: int, apart: bool
) -> None:
    cluster = tp.Cluster(tp.Topology.cluster(MINSKY, count=machines))
    policy = tp.policies.get(name, memory_bandwidth=limit)
    job = job_of(size).with_(memory_bandwidth=100.0, anti_affinity=apart)
    placement = policy.place(job, cluster)
    assert placement is not None
    on = [gpu // 4 for gpu in placement.gpus]
    assert max(map(on.count, on)) * 100.0 / size <= limit
    if not apart:
        smaller = tp.Cluster(tp.Topology.cluster(MINSKY, count=machines - 1))
        assert policy.plan([QueuedJob("a", job)], smaller, 0.0).reject


@pytest.mark.parametrize("name", SC17)
def test_partitions_of_several_machines_add_up(name: str) -> None:
    parts = [
        (0, 1, 2, 3),
        (4, 5, 6, 7),
        *((gpu, gpu + 1) for gpu in range(0, 8, 2)),
        *((gpu,) for gpu in range(8)),
    ]
    machine = dataclasses.replace(tp.machines.get("dgx1-v100"), partitions=tuple(parts))
    cluster = tp.Cluster(tp.Topology.cluster(machine, count=2))
    for job_id, gpus in (("a", (0,)), ("b", (4,)), ("c", (8, 9, 10, 11))):
        cluster.allocate(job_id, gpus)
    placement = tp.policies.get(name).place(job_of(5), cluster)
    assert placement is not None
    assert cluster.topology.is_legal(placement.gpus)
    cluster.allocate("job", placement)


def test_a_waiting_job_takes_the_machines_where_it_is_worth_enough() -> None:
    profile = PerformanceProfile(
        {("n", 7, "intra-socket"): 100.0, ("v", 1, "intra-socket"): 100.0}, {("n", 7, "v", 1): 300.0}
    )
    cluster = tp.Cluster(racks(4))
    cluster.allocate("v", [0], job_of(1, "v"))
    placement = tp.policies.TopoAwareP(profile=profile).place(job_of(7, "n", least=0.8), cluster)
    assert placement is not None
    assert min(placement.gpus) >= 8
    assert placement.scores["utility"] == pytest.approx(1.0)


def test_broken_gpus_are_no_measure_of_what_is_possible() -> None:
    topology = tp.Topology.cluster(MINSKY, count=2).with_unhealthy([3, 7])
    placement = tp.policies.TopoAwareP().place(job_of(4, least=0.9), tp.Cluster(topology))
    assert placement is not None
    assert placement.scores["utility"] == pytest.approx(1.0)


@pytest.mark.parametrize("name", SC17)
def test_a_job_goes_where_its_tasks_can_reach_each_other(name: str) -> None:
    links = np.zeros((3, 3))
    links[0, 1] = links[1, 0] = 25.0  # GPU 2 of each machine reaches nobody inside
    topology = tp.Topology.cluster(tp.Topology.from_matrix(links), count=2)
    placement = tp.policies.get(name).place(tp.JobGraph.ring(3), tp.Cluster(topology))
    assert placement is not None
    assert placement.scores["bottleneck_bandwidth"] > 0
    alone = tp.policies.get(name).explain(tp.JobGraph.ring(3), tp.Cluster(tp.Topology.from_matrix(links)))
    assert alone.refusal is not None
    assert "have links for every edge" in alone.refusal.reason


def test_the_worst_placement_of_a_job_is_worth_nothing_to_it() -> None:
    dgx = tp.machines.get("dgx1-v100")
    worst = max(permutations(range(8), 4), key=lambda gpus: communication_cost(job_of(4), gpus, dgx))
    cluster = tp.Cluster(dgx)
    cluster.allocate("other", sorted(set(range(8)) - set(worst)))
    placement = tp.policies.TopoAware(utility=tp.objectives.Utility(1.0, 0.0, 0.0)).place(job_of(4), cluster)
    assert placement is not None
    assert placement.scores["utility"] == pytest.approx(0.0)


# ---- as a queue --------------------------------------------------------------------------------------------------


def test_a_job_that_never_fits_does_not_block_the_queue() -> None:
    cluster = tp.Cluster(MINSKY)
    cluster.allocate("busy", [0])
    queue = [QueuedJob("never", job_of(4).with_(gpu_model="none such")), QueuedJob("next", job_of(1))]
    plan = tp.policies.get("fcfs").plan(queue, cluster, 0.0)
    assert [job_id for job_id, _ in plan.reject] == ["never"]
    assert [job_id for job_id, _ in plan.start] == ["next"]


@whole
def test_every_job_starts_where_postponements_are_limited() -> None:
    topology = MINSKY.with_unhealthy([1, 3])
    jobs = [job_of(2, least=0.9)] * 5
    workload = tp.simulate.Workload(jobs, [0.0] * 5, [10.0] * 5)
    policy = tp.policies.TopoAwareP(profile=PROFILE, max_postponements=3)
    result = tp.simulate(topology, workload, policy)
    assert all(record.placement for record in result.records)
    patient = tp.simulate(topology, workload, tp.policies.TopoAwareP(profile=PROFILE))
    assert all("asked for" in record.rejected for record in patient.records)


def test_policies_of_other_options_do_not_share_their_verdicts() -> None:
    cluster = tp.Cluster(MINSKY)
    job = job_of(2).with_(memory_bandwidth=60.0)
    cluster.allocate("x", [0, 1], job)
    small, big = (tp.policies.TopoAware(memory_bandwidth=limit) for limit in (20.0, 100.0))
    queue = [QueuedJob("q", job)]
    assert small.plan(queue, cluster, 0.0).reject
    assert not big.plan(queue, cluster, 0.0).reject
    cluster.release("x")
    assert big.plan(queue, cluster, 0.0).start


def test_reasons_name_the_jobs_own_threshold() -> None:
    queue = [QueuedJob(str(least), job_of(2, least=least)) for least in (0.5, 0.9)]
    plan = tp.policies.TopoAwareP(profile=PROFILE).plan(queue, one_gpu_free_in_each_socket(), 0.0)
    assert [reason.reason.rpartition(" now, ")[2].split()[0] for _, reason in plan.defer] == ["0.5", "0.9"]


def test_many_kinds_of_jobs_are_forgotten_and_seen_anew() -> None:
    cluster, policy = tp.Cluster(racks()), tp.policies.TopoAware()
    for number in range(3000):
        placement = policy.place(tp.JobGraph.ring(2).with_(profile=f"p{number}"), cluster)
        assert placement is not None
        assert placement.gpus == (0, 1)


# ---- running jobs are protected ----------------------------------------------------------------------------------


def _sockets(cluster: tp.Cluster, gpus: tuple[int, ...]) -> set[tuple[int, int]]:
    topology = cluster.topology
    return {(int(topology.machine_of[gpu]), int(topology.socket_of[gpu])) for gpu in gpus}


def _most_slowed(cluster: tp.Cluster, job: tp.JobGraph, gpus: tuple[int, ...]) -> float:
    """The largest factor by which the job would slow one that runs on a socket of `gpus`, by definition."""
    there = _sockets(cluster, gpus)
    return max(
        (
            PROFILE.slowdown(other.profile or "", other.num_tasks, job.profile or "", job.num_tasks)
            for job_id, other in cluster.jobs.items()
            if there & _sockets(cluster, cluster.gpus_of(job_id))
        ),
        default=1.0,
    )


@given(
    st.lists(st.tuples(st.sampled_from(["net/1", "big/9"]), st.sampled_from([1, 2])), min_size=1, max_size=9),
    st.sampled_from([1.0, 1.05, 1.2, 1.45]),
    st.sampled_from([0.0, 0.5]),
)
def test_a_placement_slows_no_running_job_more_than_allowed(
    kinds: list[tuple[str, int]], limit: float, least: float
) -> None:
    cluster = tp.Cluster(racks(2))
    protecting = tp.policies.TopoAwareP(profile=PROFILE, protect_running=limit)
    free = tp.policies.TopoAwareP(profile=PROFILE)
    for number, (name, size) in enumerate(kinds):
        job = job_of(size, name, least).with_(single_machine=True)
        placement = protecting.place(job, cluster)
        if placement is not None:
            assert _most_slowed(cluster, job, placement.gpus) <= limit + 1e-9
            cluster.allocate(str(number), placement)
            continue
        if free.place(job, cluster) is not None:
            refusal = protecting.explain(job, cluster).refusal
            assert refusal is not None
            assert refusal.reason.startswith("postponed: ")
        if not least:  # no other placement would do
            for gpus in permutations(cluster.free_gpus(), size):
                if len({machine for machine, _ in _sockets(cluster, gpus)}) == 1:
                    assert _most_slowed(cluster, job, gpus) > limit


def test_a_job_waits_rather_than_slowing_another() -> None:
    cluster = tp.Cluster(MINSKY)
    for number, gpu in enumerate((0, 2)):
        cluster.allocate(str(number), [gpu], job_of(1, "net/1"))
    job = job_of(1, "big/9")  # next to it, net/1 takes 140 s instead of 100
    assert tp.policies.TopoAwareP(profile=PROFILE).place(job, cluster)
    policy = tp.policies.TopoAwareP(profile=PROFILE, protect_running=1.39)
    refusal = policy.explain(job, cluster).refusal
    assert refusal is not None
    assert refusal.reason == "postponed: it would slow a running job by more than 39.0% now"
    assert policy.plan([QueuedJob("waits", job)], cluster, 0.0).defer
    assert tp.policies.TopoAwareP(profile=PROFILE, protect_running=1.41).place(job, cluster)
    patient = tp.policies.TopoAwareP(profile=PROFILE, protect_running=1.0, max_postponements=2)
    assert patient.plan([QueuedJob("tired", job, postponed=2)], cluster, 0.0).start


@pytest.mark.parametrize("limit", [0.99, -1.0, float("nan"), float("inf"), "2", True])
def test_a_protection_that_is_none_is_refused(limit: object) -> None:
    with pytest.raises(ValueError, match="protect_running = "):
        tp.policies.TopoAwareP(profile=PROFILE, protect_running=limit)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="protect_running needs a profile"):
        tp.policies.TopoAwareP(protect_running=1.0)


@pytest.mark.parametrize("name", ["fcfs", "best-fit"])
def test_gpus_with_a_path_are_taken_if_the_lowest_have_none(name: str) -> None:
    cluster = tp.Cluster(tp.Topology.from_links(4, [(2, 3, 50.0)], 0.0))
    placement = tp.policies.get(name).place(tp.JobGraph.ring(2).with_(single_machine=True), cluster)
    assert placement is not None
    assert placement.gpus == (2, 3)


@pytest.mark.parametrize("postponements", [-1, (1 << 30) + 1])
def test_a_number_of_postponements_that_cannot_be_meant_is_refused(postponements: int) -> None:
    with pytest.raises(ValueError, match=f"max_postponements = {postponements}"):
        tp.policies.TopoAwareP(max_postponements=postponements)
