"""Every requirement of a job is honoured by every policy in every call, or refused by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import topoplace as tp
from topoplace.discovery.nvidia import gpu_list
from topoplace.engine.plan import QueuedJob
from topoplace.jobs.requirements import REQUIREMENTS
from topoplace.topology.fabric import Level
from topoplace_lab.sharing.sharing_policy import SharingPolicy
from topoplace_lab.simulate import Workload, simulate

HOST = tp.HostResources(cpus=8, memory_gb=64.0, drives=2)
RING = tp.JobGraph.ring(2)
UTILITY_POLICIES = frozenset(("fcfs", "best-fit", "topo-aware", "topo-aware-p", "nvidia-allocator"))
POLICIES = tuple(tp.policies.names())
SIX = tp.JobGraph.ring(6)
SHARING = frozenset(name for name in POLICIES if isinstance(tp.policies.get(name), SharingPolicy))
BY_MACHINES = UTILITY_POLICIES.union(POLICIES[:6], SHARING)
KUEUE = frozenset(("kueue-best-fit", "kueue-least-free", "kueue-balanced"))
BY_LEVEL = KUEUE | {"volcano-binpack"}
SCHEDULERS = BY_LEVEL | {"slurm-tree", "slurm-block", "kubernetes-default"}


def topology() -> tp.Topology:
    """Return machines of four GPUs: in rack a, V100 of 32 GB and A100 of 40 GB, in rack b, V100 of 16 GB."""
    pairs = [(0, 1, 50.0), (2, 3, 50.0)]
    large, small = (
        tp.Topology.from_links(4, pairs, 12.0, model="V100", memory_gb=memory) for memory in (32.0, 16.0)
    )
    newer = tp.Topology.from_links(4, pairs, 12.0, model="A100", memory_gb=40.0)
    fabric = tp.Fabric(("large", "small", "newer"), (Level("rack", ("a", "b", "a")),))
    return tp.Topology.cluster({"large": large, "small": small, "newer": newer}, fabric=fabric, network=12.5)


TOPOLOGY = topology()


def models(placement: tp.Placement) -> set[str | None]:
    return {TOPOLOGY.gpus[gpu].model for gpu in placement.gpus}


def memories(placement: tp.Placement) -> set[float | None]:
    return {TOPOLOGY.gpus[gpu].memory_gb for gpu in placement.gpus}


def machines(placement: tp.Placement) -> list[str]:
    return [TOPOLOGY.gpus[gpu].machine for gpu in placement.gpus]


Case = tuple[str, tp.JobGraph, Callable[[tp.Placement], bool], frozenset[str]]
EVERY = frozenset(POLICIES)
CASES: list[Case] = [
    ("gpu_model", RING.with_(gpu_model="A100"), lambda found: models(found) == {"A100"}, EVERY),
    (
        "gpu_model",
        RING.with_(gpu_model=["H100", "A100"]),
        lambda found: models(found) == {"A100"},
        EVERY,
    ),
    ("gpu_memory_gb", RING.with_(gpu_memory_gb=8), lambda found: memories(found) == {16.0}, EVERY),
    ("gpu_memory_gb", RING.with_(gpu_memory_gb=17), lambda found: memories(found) == {32.0}, EVERY),
    ("gpu_memory_gb", RING.with_(gpu_memory_gb=40), lambda found: memories(found) == {40.0}, EVERY),
    ("single_machine", RING.with_(single_machine=True), lambda found: len(set(machines(found))) == 1, EVERY),
    ("anti_affinity", RING.with_(anti_affinity=True), lambda found: len(set(machines(found))) == 2, EVERY),
    ("cpus", RING.with_(cpus=7), lambda found: sum(share.cpus for share in found.hosts) == 7, EVERY),
    (
        "memory_gb",
        RING.with_(memory_gb=48),
        lambda found: sum(share.memory_gb for share in found.hosts) == 48,
        EVERY,
    ),
    (
        "processes",
        RING.with_(processes=2, cpus=6),
        lambda found: [share.cpus for share in found.hosts] == [3, 3],
        EVERY,
    ),
    ("drives", RING.with_(drives=2), lambda found: len(found.drives) == 2, frozenset(("drmaestro",))),
    (
        "min_utility",
        RING.with_(min_utility=0.5),
        lambda found: "utility" in found.scores,
        UTILITY_POLICIES | {"least-time"},
    ),
    ("memory_bandwidth", RING.with_(memory_bandwidth=10), lambda found: True, frozenset()),
    (
        "within",
        SIX.with_(within="rack"),
        lambda found: set(machines(found)) == {"large", "newer"},
        BY_MACHINES | BY_LEVEL | {"slurm-tree"},
    ),
    (
        "prefer",
        SIX.with_(prefer="rack"),
        lambda found: set(machines(found)) == {"large", "newer"},
        BY_MACHINES | BY_LEVEL,
    ),
    (
        "spread",
        SIX.with_(spread="rack"),
        lambda found: "small" in machines(found) and len(set(machines(found))) == 2,
        BY_MACHINES,
    ),
    ("max_machines", SIX.with_(max_machines=2), lambda found: len(set(machines(found))) == 2, BY_MACHINES),
    (
        "same_gpus",
        SIX.with_(same_gpus=True),
        lambda found: sorted(gpu % 4 for gpu in found.gpus) == [0, 0, 1, 1, 2, 2],
        UTILITY_POLICIES | SHARING | {"least-time"},
    ),
    (
        "groups",
        SIX.grouped(3, within="machine").grouped(6, within="rack"),
        lambda found: machines(found) in (["large"] * 3 + ["newer"] * 3, ["newer"] * 3 + ["large"] * 3),
        BY_MACHINES | KUEUE | {"slurm-tree", "volcano-binpack"},
    ),
    (
        "groups",
        SIX.grouped([4, 2], within="machine").grouped(6, prefer="rack"),
        lambda found: set(machines(found)) == {"large", "newer"},
        BY_MACHINES,
    ),
    (
        "balanced",
        SIX.with_(balanced="machine"),
        lambda found: sorted(Counter(machines(found)).values()) == [3, 3],
        BY_MACHINES,
    ),
    ("gpu_fraction", RING.with_(gpu_fraction=0.5), lambda found: True, SHARING | BY_MACHINES | SCHEDULERS),
]


def test_the_table_has_every_requirement() -> None:
    assert {field for field, *_ in CASES} | {"mig"} == set(REQUIREMENTS)  # see test_parts_of_gpus.py
    for field, job, *_ in CASES:
        assert field in job.requirements


@pytest.mark.parametrize("policy_name", POLICIES)
@pytest.mark.parametrize(
    ("field", "job", "holds", "honoured_by"), CASES, ids=[f"{i} {case[0]}" for i, case in enumerate(CASES)]
)
def test_a_requirement_is_honoured_or_refused_by_name(
    field: str,
    job: tp.JobGraph,
    holds: Callable[[tp.Placement], bool],
    honoured_by: frozenset[str],
    policy_name: str,
) -> None:
    policy, cluster = tp.policies.get(policy_name), tp.Cluster(TOPOLOGY, hosts=HOST)
    explained = policy.explain(job, cluster)
    plan = policy.plan([QueuedJob("job", job)], cluster, 0.0)
    (record,) = simulate(TOPOLOGY, Workload([job], [0.0], [1.0]), policy, hosts=HOST).records
    if policy_name in honoured_by:
        placement = policy.place(job, cluster)
        assert placement is not None
        assert holds(placement)
        assert explained.refusal is None
        assert holds(explained.candidates[0])
        assert holds(dict(plan.start)["job"])
        assert record.placement is not None
        assert holds(record.placement)
        return
    for_field = rf"^{field}( = | cannot be honoured)"
    with pytest.raises(ValueError, match=for_field):
        policy.place(job, cluster)
    assert explained.refusal is not None
    assert explained.refusal.permanent
    refusals = (explained.refusal.reason, dict(plan.reject)["job"].reason, record.rejected)
    assert all(
        reason is not None and reason.startswith((f"{field} = ", f"{field} cannot")) for reason in refusals
    )


@pytest.mark.parametrize("policy_name", POLICIES)
@pytest.mark.parametrize("requirement", [{"cpus": 1}, {"memory_gb": 1.0}, {"drives": 1}])
def test_host_resources_are_refused_where_the_cluster_knows_none(
    requirement: dict[str, Any], policy_name: str
) -> None:
    (field,) = requirement
    policy, cluster, job = tp.policies.get(policy_name), tp.Cluster(TOPOLOGY), RING.with_(**requirement)
    with pytest.raises(ValueError, match=rf"^{field} = 1 cannot be honoured"):
        policy.place(job, cluster)
    assert policy.explain(job, cluster).refusal is not None
    assert [job_id for job_id, _ in policy.plan([QueuedJob("job", job)], cluster, 0.0).reject] == ["job"]


@pytest.mark.parametrize("policy_name", POLICIES)
@pytest.mark.parametrize("by_plan", [True, False], ids=["plan", "place"])
@pytest.mark.parametrize(
    "job",
    [
        tp.JobGraph.ring(1).with_(cpus=5),
        tp.JobGraph.ring(2).with_(cpus=5, memory_gb=20.0, single_machine=True),
        tp.JobGraph.ring(1).with_(memory_gb=40.0),
    ],
    ids=["cpus", "both", "memory"],
)
def test_no_machine_hosts_more_than_it_has(policy_name: str, job: tp.JobGraph, *, by_plan: bool) -> None:
    """One such job fits on each of the three machines, however many GPUs it has free."""
    policy, cluster = tp.policies.get(policy_name), tp.Cluster(TOPOLOGY, hosts=HOST)
    if by_plan:
        queue = [QueuedJob(str(i), job, float(i)) for i in range(5)]
        for job_id, placement in policy.plan(queue, cluster, 5.0).start:
            cluster.allocate(job_id, placement)
    else:
        while placement := policy.place(job, cluster):
            cluster.allocate(str(len(cluster.jobs)), placement)
    assert Counter(gpu // 4 for gpus in cluster.allocations.values() for gpu in gpus).keys() == {0, 1, 2}
    assert len(cluster.jobs) == 3
    assert policy.explain(job, cluster).refusal is not None
    cluster.release("0")
    assert policy.place(job, cluster) is not None


@pytest.mark.parametrize(
    "policy_name", sorted(EVERY - {"drmaestro", "g-queue", "r-queue", "kubernetes-default"})
)
def test_a_job_takes_what_each_machine_can_host(policy_name: str) -> None:
    """Four tasks of 3 CPUs: two fit on a machine of 8 CPUs, so the job needs two machines."""
    policy, cluster = tp.policies.get(policy_name), tp.Cluster(TOPOLOGY, hosts=HOST)
    placement = policy.place(tp.JobGraph.ring(4).with_(cpus=12), cluster)
    assert placement is not None
    assert sorted(Counter(machines(placement)).values()) == [2, 2]
    assert placement.optimal == (policy_name == "least-time")  # which has a bound for several machines
    cluster.allocate("job", placement)
    refusal = policy.explain(tp.JobGraph.ring(7).with_(cpus=28), tp.Cluster(TOPOLOGY, hosts=HOST)).refusal
    assert refusal is not None
    assert refusal.permanent
    assert "28 CPUs" in refusal.reason


@pytest.mark.parametrize("policy_name", POLICIES)
def test_an_unknown_memory_suits_no_job_that_states_one(policy_name: str) -> None:
    cluster, policy = tp.Cluster(tp.Topology.from_links(2, [], 12.0)), tp.policies.get(policy_name)
    assert policy.place(tp.JobGraph.ring(1).with_(gpu_memory_gb=1.0), cluster) is None


def test_memory_bandwidth_counts_where_the_policy_knows_that_of_machines() -> None:
    policy = tp.policies.get("topo-aware", memory_bandwidth=15.0)
    cluster, job = tp.Cluster(TOPOLOGY), RING.with_(memory_bandwidth=10.0, single_machine=True)
    for number in range(3):
        placement = policy.place(job, cluster)
        assert placement is not None
        cluster.allocate(str(number), placement)
    assert policy.place(job, cluster) is None


@pytest.mark.parametrize("policy_name", POLICIES)
def test_a_job_gets_the_smallest_slice_that_suits(policy_name: str) -> None:
    slices = "".join(
        f"  MIG {profile} Device {i}: (UUID: MIG-{i})\n"
        for i, profile in enumerate(("3g.20gb", "2g.10gb", "1g.5gb"))
    )
    cluster = tp.Cluster(gpu_list.parse(f"GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-0)\n{slices}"))
    placement = tp.policies.get(policy_name).place(tp.JobGraph.ring(1).with_(gpu_memory_gb=8), cluster)
    assert placement is not None
    assert cluster.topology.gpus[placement.gpus[0]].memory_gb == 10.0


def partitioned_pair() -> tp.Topology:
    """Return two machines of four GPUs, each given out one by one, in pairs or as a whole."""
    machine = tp.Topology.from_links(4, [(0, 1, 50.0), (2, 3, 50.0)], 12.0)
    parts = ((0,), (1,), (2,), (3,), (0, 1), (2, 3), (0, 1, 2, 3))
    return tp.Topology.cluster([replace(machine, partitions=parts)] * 2, network=12.5)


@pytest.mark.parametrize("policy_name", sorted(EVERY - {"drmaestro", "g-queue", "r-queue"}))
@pytest.mark.parametrize("job", [tp.JobGraph.ring(3), tp.JobGraph.ring(2).with_(cpus=14)], ids=["3", "CPUs"])
def test_partitions_of_two_machines_are_joined(job: tp.JobGraph, policy_name: str) -> None:
    """Three GPUs are a pair and a single one; of two tasks that need 7 of 8 CPUs each, a machine hosts one."""
    cluster = tp.Cluster(partitioned_pair(), hosts=HOST)
    placement = tp.policies.get(policy_name).place(job, cluster)
    assert placement is not None
    assert {gpu // 4 for gpu in placement.gpus} == {0, 1}
    assert not placement.optimal
    cluster.allocate("job", placement)


@pytest.mark.parametrize("policy_name", POLICIES)
def test_no_job_is_refused_for_ever_that_fits_partitions(policy_name: str) -> None:
    cluster = tp.Cluster(partitioned_pair())
    explained = tp.policies.get(policy_name).explain(tp.JobGraph.ring(3), cluster)
    assert explained.refusal is None or "the topology has" not in explained.refusal.reason


@pytest.mark.parametrize("policy_name", POLICIES)
@pytest.mark.parametrize("requirement", [{"min_utility": 0.1}, {"gpu_fraction": 0.5}])
def test_a_refused_job_does_not_spoil_an_equal_one(policy_name: str, requirement: dict[str, Any]) -> None:
    queue = [QueuedJob("first", RING.with_(**requirement)), QueuedJob("second", RING)]
    assert "second" in dict(tp.policies.get(policy_name).plan(queue, tp.Cluster(TOPOLOGY), 0.0).start)


def test_all_gpus_count_where_a_machine_hosts_the_whole_job() -> None:
    """On a DGX-1, GPUs 0 and 3 have a double NVLink, GPUs 0 and 1 a single one; the CPUs suffice for one such job."""
    cluster = tp.Cluster(tp.machines.get("dgx1-v100"), hosts=HOST)
    placement = tp.policies.get("mapa-greedy").place(RING.with_(cpus=8), cluster)
    assert placement is not None
    assert placement.gpus == (0, 3)
    assert placement.optimal


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("busy", [(), (1, 2), (2,), (2, 6, 10), (0, 5, 6, 9)])
def test_anti_affinity_means_nothing_to_a_single_task(name: str, busy: tuple[int, ...]) -> None:
    cluster, policy, job = tp.Cluster(TOPOLOGY), tp.policies.get(name), tp.JobGraph.ring(1)
    if busy:
        cluster.allocate("busy", busy)
    alone, apart = (policy.place(one, cluster) for one in (job, job.with_(anti_affinity=True)))
    assert (apart and (apart.gpus, apart.scores)) == (alone and (alone.gpus, alone.scores))
    assert alone or name == "g-queue"  # which gives a job whole machines
