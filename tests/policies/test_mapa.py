from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brute_force
import topoplace as tp
from distributions import whole
from topoplace.engine.plan import QueuedJob
from topoplace.testing import check_policy
from topoplace.testing.strategies import cluster_topologies, clusters, job_graphs, topologies

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_policy.py"
HighestIds = runpy.run_path(str(EXAMPLE))["HighestIds"]
POLICIES = tp.policies.names()
MAPA = POLICIES[:4]
SHARING = [name for name in POLICIES if name != "g-queue"]
"""Those that may put several jobs on a machine."""


@whole
def test_names() -> None:
    assert MAPA == ("baseline", "mapa-topo-aware", "mapa-greedy", "mapa-preserve")
    assert POLICIES[4:] == (
        "least-time",
        "fcfs",
        "best-fit",
        "topo-aware",
        "topo-aware-p",
        "drmaestro",
        "g-queue",
        "r-queue",
        "fgd",
        "least-stranded",
        "dot-product",
        "vector-best-fit",
        "vector-worst-fit",
        "gpu-packing",
        "gpu-clustering",
        "random-fit",
        "two-choices",
        "kueue-best-fit",
        "kueue-least-free",
        "kueue-balanced",
        "slurm-tree",
        "slurm-block",
        "volcano-binpack",
        "kubernetes-default",
        "nvidia-allocator",
    )
    assert [tp.policies.get(name).name for name in POLICIES] == list(POLICIES)


def test_unknown_name_suggests_close_ones() -> None:
    with pytest.raises(ValueError, match="'mapa-greedi': no such policy; did you mean mapa-greedy"):
        tp.policies.get("mapa-greedi")


def test_the_example_keeps_the_contract() -> None:
    assert check_policy(HighestIds, states=1).policy == "highest-ids"


def test_the_example_is_shown_in_the_docs_as_it_is() -> None:
    shown = (EXAMPLE.parents[1] / "docs" / "policies.md").read_text("utf-8")
    code = EXAMPLE.read_text("utf-8")
    assert code[code.index("class HighestIds") : code.index("\n\nif __name__")].rstrip() in shown


@pytest.mark.parametrize("name", MAPA)
@given(job=job_graphs(max_tasks=4), cluster=clusters(topologies(max_gpus=6)))
def test_ranking_against_brute_force(name: str, job: tp.JobGraph, cluster: tp.Cluster) -> None:
    free = cluster.free_gpus()
    expected = brute_force.ranking(name, job, cluster.topology, free, free)
    policy = tp.policies.get(name)
    explained = policy.explain(job, cluster, top=6)
    assert [placement.gpus for placement in explained.candidates] == expected[:6]
    placement = policy.place(job, cluster)
    assert (placement.gpus if placement else None) == (expected[0] if expected else None)
    assert (explained.refusal is None) == bool(expected)
    if placement:
        assert placement.optimal


@pytest.mark.parametrize("name", MAPA)
@given(job=job_graphs(max_tasks=3), cluster=clusters(topologies(min_gpus=3, max_gpus=6)), data=st.data())
def test_required_gpus_are_part_of_the_best(
    name: str, job: tp.JobGraph, cluster: tp.Cluster, data: st.DataObject
) -> None:
    free = cluster.free_gpus()
    chosen = (
        data.draw(st.sets(st.sampled_from(free), min_size=1, max_size=job.num_tasks)) if free else set[int]()
    )
    ranking = brute_force.ranking(name, job, cluster.topology, free, free)
    policy = tp.policies.get(name)
    assert isinstance(policy, tp.policies.SearchPolicy)
    placement = policy.best(job, cluster, frozenset(free), frozenset(chosen))
    assert (placement and placement.gpus) == next((gpus for gpus in ranking if chosen.issubset(gpus)), None)


def machine_key(
    name: str, job: tp.JobGraph, machine: tp.Topology, free: list[int], gpus: tuple[int, ...]
) -> brute_force.Key:
    """Return what a policy compares between machines, by its definition; smaller is better."""
    if name == "mapa-preserve" and not (job.bandwidth_sensitive and job.edges):
        after, before = (brute_force.preserved(machine, free, taken) for taken in (gpus, ()))
        return (before - after, -brute_force.aggregated(job, machine, gpus))
    if name == "mapa-preserve":
        return (-brute_force.effective(job, machine, gpus),)
    if name == "mapa-greedy":
        return (-brute_force.aggregated(job, machine, gpus),)
    return (-brute_force.together(machine, gpus),) if name == "mapa-topo-aware" else ()


@pytest.mark.parametrize("name", MAPA)
@given(job=job_graphs(min_tasks=2, max_tasks=4), cluster=clusters(cluster_topologies(max_machines=4)))
def test_the_best_machine_against_brute_force(name: str, job: tp.JobGraph, cluster: tp.Cluster) -> None:
    topology, found = cluster.topology, []
    for number, (machine_name, gpus) in enumerate(topology.gpus_of.items()):
        machine = topology.machine(machine_name)
        free = [i for i, gpu in enumerate(gpus) if gpu in cluster.free_gpus()]
        for best in brute_force.ranking(name, job, machine, free, free)[:1]:
            key = machine_key(name, job, machine, free, best)
            found.append((key, number, tuple(gpus[i] for i in best)))
    placement = tp.policies.get(name).place(job, cluster)
    if found:
        assert placement is not None
        assert placement.gpus == min(found)[2]
    elif next(brute_force.placements(job, topology, cluster.free_gpus()), None) is None:
        assert placement is None
    else:
        assert placement is not None
        of_machines = [set(gpus) & set(cluster.free_gpus()) for gpus in topology.gpus_of.values()]
        rooms = sorted(map(len, of_machines), reverse=True)
        fewest = next(k for k in range(1, len(rooms) + 1) if sum(rooms[:k]) >= job.num_tasks)
        used = len({int(topology.machine_of[gpu]) for gpu in placement.gpus})
        bandwidth = topology.bandwidth_matrix()
        assert used == fewest or (bandwidth + np.eye(topology.num_gpus) == 0).any()


@given(job=job_graphs(min_tasks=6, max_tasks=6), cluster=clusters(topologies(min_gpus=6, max_gpus=7)))
@settings(max_examples=15)
def test_beyond_the_fitted_range_preserve_takes_bottleneck_and_sum(
    job: tp.JobGraph, cluster: tp.Cluster
) -> None:
    job = job.with_(bandwidth_sensitive=True)
    free = cluster.free_gpus()
    expected = brute_force.ranking("mapa-preserve", job, cluster.topology, free, free)
    placement = tp.policies.Preserve().place(job, cluster)
    assert (placement.gpus if placement else None) == (expected[0] if expected else None)
    if placement:
        assert placement.scores["effective_bandwidth_extrapolated"] == 1.0


def test_eq2_can_be_forced_beyond_its_range() -> None:
    cluster = tp.Cluster(tp.machines.get("dgx1-v100"))
    job = tp.JobGraph.ring(8).with_(bandwidth_sensitive=True)
    trusted, forced = (tp.policies.Preserve(force_eq2=force).place(job, cluster) for force in (False, True))
    assert trusted is not None
    assert forced is not None
    assert trusted.scores["effective_bandwidth"] == pytest.approx(161.9, abs=0.1)
    assert forced.scores["effective_bandwidth"] == pytest.approx(182.8, abs=0.1)
    assert forced.scores["aggregated_bandwidth"] < trusted.scores["aggregated_bandwidth"]


@pytest.mark.parametrize("name", ["mapa-greedy", "mapa-preserve"])
@given(job=job_graphs(max_tasks=4), cluster=clusters(topologies(max_gpus=7)))
def test_freeing_gpus_never_lowers_the_best_score(name: str, job: tp.JobGraph, cluster: tp.Cluster) -> None:
    job = job.with_(bandwidth_sensitive=True)
    score = "aggregated_bandwidth" if name == "mapa-greedy" else "effective_bandwidth"
    policy = tp.policies.get(name)
    before = policy.place(job, cluster)
    for gpu in cluster.drained_gpus():
        cluster.undrain(gpu)
    for job_id in tuple(cluster.allocations):
        cluster.release(job_id)
        after = policy.place(job, cluster)
        if before is not None:
            assert after is not None
            assert after.scores[score] >= before.scores[score]
        before = after


# ---- requirements and reasons ------------------------------------------------------------------------------------


def mixed_cluster() -> tp.Cluster:
    """Two machines: four V100 of 16 GB, then four P100 of 32 GB."""
    gpus = [
        tp.Gpu(i, f"GPU{i % 4}", "V100" if i < 4 else "P100", "ab"[i // 4], 0, 16.0 if i < 4 else 32.0)
        for i in range(8)
    ]
    return tp.Cluster(tp.Topology(tuple(gpus)))


@pytest.mark.parametrize("name", SHARING)
def test_requirements_choose_the_gpus(name: str) -> None:
    cluster, policy = mixed_cluster(), tp.policies.get(name)
    cluster.allocate("other", [0])
    ring = tp.JobGraph.ring(3)
    for job, allowed in (
        (ring.with_(gpu_model="P100"), {4, 5, 6, 7}),
        (ring.with_(gpu_model="V100"), {1, 2, 3}),
        (ring.with_(gpu_memory_gb=20.0), {4, 5, 6, 7}),
    ):
        placement = policy.place(job, cluster)
        assert placement is not None
        assert set(placement.gpus) <= allowed
    apart = policy.place(tp.JobGraph.ring(2).with_(anti_affinity=True), cluster)
    assert apart is not None
    assert sorted(apart.gpus) == [1, 4]
    assert apart.optimal == (name == "least-time")  # which has a bound for several machines
    together = policy.place(tp.JobGraph.ring(4).with_(single_machine=True), cluster)
    assert together is not None
    assert set(together.gpus) == {4, 5, 6, 7}


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        (tp.JobGraph.ring(9), "never fits: needs 9 GPUs, the topology has 8"),
        (
            tp.JobGraph.ring(5).with_(single_machine=True),
            "never fits: needs 5 GPUs on one machine, the topology has 4",
        ),
        (
            tp.JobGraph.ring(3).with_(anti_affinity=True),
            "never fits: needs 3 GPUs on different machines, the topology has 2",
        ),
        (tp.JobGraph.ring(2).with_(gpu_model="H100"), "never fits: needs 2 H100 GPUs, the topology has 0"),
        (tp.JobGraph.ring(4).with_(gpu_model="V100"), "cannot start now: needs 4 V100 GPUs, 3 are free"),
        (
            tp.JobGraph.ring(2).with_(gpu_memory_gb=80.0),
            "never fits: needs 2 GPUs of 80 GB or more, the topology has 0",
        ),
    ],
)
def test_reasons(job: tp.JobGraph, reason: str) -> None:
    cluster = mixed_cluster()
    cluster.allocate("other", [0])
    for name in POLICIES:
        policy = tp.policies.get(name)
        assert policy.place(job, cluster) is None
        deferred = policy.explain(job, cluster).refusal
        assert deferred is not None
        assert deferred.reason == reason


def test_no_link_is_a_reason() -> None:
    cluster = tp.Cluster(tp.Topology.from_links(4, [(0, 1, 50.0)], default=0.0))
    policy = tp.policies.get("mapa-greedy")
    deferred = policy.explain(tp.JobGraph.ring(3), cluster).refusal
    assert deferred is not None
    assert "no 3 of the 4 free GPUs have links" in deferred.reason


def test_baseline_looks_on_where_the_lowest_ids_have_no_link() -> None:
    cluster = tp.Cluster(tp.Topology.from_links(4, [(1, 3, 50.0)], default=0.0))
    placement = tp.policies.Baseline().place(tp.JobGraph.ring(2), cluster)
    assert placement is not None
    assert placement.gpus == (1, 3)


def test_below_the_minimum_effective_bandwidth_a_sensitive_job_waits() -> None:
    cluster = tp.Cluster(tp.machines.get("dgx1-v100"))
    cluster.allocate("other", [1, 2, 3, 4, 5, 6])
    pair = tp.JobGraph.ring(2)  # GPUs 0 and 7 have no NVLink: 10.084 GB/s
    patient = tp.policies.Preserve(min_effective_bandwidth=12.0)
    assert patient.place(pair, cluster) is not None
    assert tp.policies.Preserve().place(pair.with_(bandwidth_sensitive=True), cluster) is not None
    assert patient.place(pair.with_(bandwidth_sensitive=True), cluster) is None
    explained = patient.explain(pair.with_(bandwidth_sensitive=True), cluster)
    assert explained.refusal is not None
    assert (
        explained.refusal.reason
        == "waits: the best effective bandwidth now is 10.084 GB/s, the minimum is 12"
    )
    assert explained.candidates[0].gpus == (0, 7)


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": 0},
        {"min_effective_bandwidth": float("nan")},
        {"coefficients": (1.0,)},
    ],
)
def test_options_are_checked(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        tp.policies.get("mapa-preserve", **options)


# ---- the queue ---------------------------------------------------------------------------------------------------


def test_plan_starts_from_the_head_and_sets_aside_what_never_fits() -> None:
    cluster = tp.Cluster(tp.machines.get("summit"))
    queue = [QueuedJob(f"job-{i}", tp.JobGraph.ring(k)) for i, k in enumerate((2, 7, 3, 2, 1))]
    plan = tp.policies.get("baseline").plan(queue, cluster, 0.0)
    assert [(job_id, placement.gpus) for job_id, placement in plan.start] == [
        ("job-0", (0, 1)),
        ("job-2", (2, 3, 4)),
    ]
    assert [job_id for job_id, _ in plan.reject] == ["job-1"]
    assert cluster.num_free == 6


def test_a_search_without_end_stops_at_the_same_place_every_time():
    bandwidth = np.full((256, 256), 50.0)
    for first in range(0, 256, 8):
        bandwidth[first : first + 8, first : first + 8] = 450.0
    np.fill_diagonal(bandwidth, 0.0)
    cluster = tp.Cluster(tp.Topology.from_matrix(bandwidth))
    policy = tp.policies.get("mapa-preserve", max_nodes=20_000)
    placements = [policy.place(tp.JobGraph.ring(12), cluster) for _ in range(2)]
    assert placements[0] == placements[1]
    assert len(placements[0].gpus) == 12
    assert not placements[0].optimal


@pytest.mark.parametrize(
    "limits", [{"max_nodes": 0}, {"max_nodes": 2**60}, {"max_nodes": 2**63}, {"timeout": 0.0}]
)
def test_limits_that_cannot_be_are_refused(limits: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(limits))):
        tp.policies.get("mapa-greedy", **limits)


def test_the_largest_limit_can_be_used() -> None:
    policy = tp.policies.get("mapa-greedy", max_nodes=(2**63 - 1) // 8)
    assert policy.place(tp.JobGraph.ring(2), tp.Cluster(tp.machines.get("minsky")))


def test_without_sockets_it_says_that_it_is_baseline() -> None:
    topology = tp.Topology.from_links(4, [(0, 1, 50.0), (2, 3, 50.0)], name="flat")
    policy, job = tp.policies.MapaTopoAware(), tp.JobGraph.ring(2)
    with pytest.warns(UserWarning, match=r"'flat' has no sockets: mapa-topo-aware is the policy baseline"):
        placed = policy.place(job, tp.Cluster(topology))
    assert placed is not None
    assert placed.gpus == (0, 1)
    assert policy.place(job, tp.Cluster(topology)) == placed  # it says so once


def test_a_later_socket_may_have_the_lower_gpus() -> None:
    """GPU 0 has no links, so that its socket offers 5 and 6; the other one has 1 and 7."""
    links = [(5, 6, 50.0), (1, 7, 50.0), (2, 3, 50.0)]
    sockets = [0, 1, 2, 2, 2, 0, 0, 1]
    topology = tp.Topology.from_links(8, links, 0.0, sockets=sockets)
    placement = tp.policies.MapaTopoAware().place(tp.JobGraph.ring(2), tp.Cluster(topology))
    assert placement is not None
    assert placement.gpus == (1, 7)


def test_a_large_gang_gets_the_fastest_slowest_link() -> None:
    """With so few nodes, the search ends on what the division among the machines gave already."""
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("minsky"), count=6, network=12.5))
    job = tp.JobGraph.ring(18).with_(bandwidth_sensitive=True)
    placement = tp.policies.Preserve(max_nodes=200).place(job, cluster)
    assert placement is not None
    assert placement.scores["bottleneck_bandwidth"] == 12.5
    assert not placement.optimal
