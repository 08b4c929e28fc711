"""Jobs without GPUs under the default policy: they go where other jobs are already, so that whole things stay whole."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from distributions import whole
from topoplace.engine.plan import QueuedJob
from topoplace.policies import LeastTime

RACKS = tp.Topology.cluster(tp.machines.get("minsky"), 6, racks=2)
HOST = tp.HostResources(cpus=16, memory_gb=64.0)
POLICY = LeastTime()


def machine_of(placement: tp.Placement | None) -> int:
    assert placement is not None
    assert placement.gpus == ()
    (one,) = {share.machine for share in placement.hosts}
    return one


def test_a_rack_and_a_machine_stay_whole() -> None:
    """Four jobs in order: beside the busy machine until its CPUs are gone, then in its rack, then in another rack."""
    cluster = tp.Cluster(RACKS, HOST)
    cluster.allocate("gpu job", [9])
    found: list[int] = []
    for i in range(4):
        job = tp.JobGraph.without_gpus(cpus=10)
        placement = POLICY.place(job, cluster)
        found.append(machine_of(placement))
        cluster.allocate(f"cpu {i}", placement, job)  # type: ignore[arg-type]
    assert found == [2, 3, 0, 1]


def test_what_is_full_drained_or_too_small_gets_none() -> None:
    cluster = tp.Cluster(RACKS, HOST)
    job = tp.JobGraph.without_gpus(cpus=4, memory_gb=60.0)
    for machine in ("machine0", "machine1", "machine2"):
        cluster.drain(machine)
    cluster.allocate("all CPUs", POLICY.place(tp.JobGraph.without_gpus(cpus=16), cluster))  # type: ignore[arg-type]
    assert machine_of(POLICY.place(job, cluster)) == 4
    cluster.drain("machine4")
    cluster.drain("machine5")
    refusal = POLICY.explain(job, cluster).refusal
    assert refusal is not None
    assert "needs 4 CPUs and 60 GB of host memory, and no machine has that free" in refusal.reason
    never = POLICY.explain(tp.JobGraph.without_gpus(cpus=17), cluster).refusal
    assert never is not None
    assert (never.permanent, "the largest machine has 16 CPUs" in never.reason) == (True, True)


def test_a_queue_starts_them_beside_jobs_with_gpus() -> None:
    cluster = tp.Cluster(RACKS, HOST)
    queue = [
        QueuedJob("gpus", tp.JobGraph.ring(2).with_(cpus=4)),
        QueuedJob("none", tp.JobGraph.without_gpus(cpus=4)),
        QueuedJob("never", tp.JobGraph.without_gpus(cpus=400)),
    ]
    plan = POLICY.plan(queue, cluster, 0.0)
    assert [job_id for job_id, _ in plan.start] == ["gpus", "none"]
    assert [job_id for job_id, _ in plan.reject] == ["never"]
    used = {cluster.topology.machine_of[gpu] for gpu in plan.start[0][1].gpus}
    assert {machine_of(plan.start[1][1])} == used


@whole
@given(st.integers(0, 1 << 32))
def test_no_machine_breaks_less(seed: int) -> None:
    """By counting: whole racks, then whole machines, with the job on each machine that has room."""
    random, cluster = Random(seed), tp.Cluster(RACKS, HOST)
    for i in range(random.randint(0, 8)):
        cpus = random.choice((0, 4, 12))
        gpus = random.sample(cluster.free_gpus(), random.randint(0 if cpus else 1, 2))
        if gpus:
            cluster.allocate(f"job {i}", gpus)
        else:
            placement = tp.policies.get("fgd").place(tp.JobGraph.without_gpus(cpus=cpus), cluster)
            if placement:
                cluster.allocate(f"job {i}", placement)
    job = tp.JobGraph.without_gpus(cpus=random.choice((1, 6, 16)))
    found = POLICY.place(job, cluster)
    free = cluster.hosts.free[:, 0].tolist()
    roomy = [machine for machine in range(6) if free[machine] >= 1000 * (job.cpus or 0)]
    if not roomy:
        assert found is None
        return

    def whole(used: int) -> tuple[int, int]:
        busy = {int(RACKS.machine_of[gpu]) for gpus in cluster.allocations.values() for gpu in gpus}
        busy |= {machine for machine in range(6) if free[machine] < 16_000} | {used}
        idle = [machine for machine in range(6) if machine not in busy]
        per_rack = Counter(machine // 2 for machine in idle)
        return sum(count == 2 for count in per_rack.values()), len(idle)

    ranked = [machine for machines in POLICY.ranked_machines(job, cluster) for machine in machines]
    assert (ranked[0], sorted(ranked)) == (machine_of(found), roomy)
    broken = [whole(machine) for machine in ranked]
    assert broken == sorted(broken, reverse=True)
