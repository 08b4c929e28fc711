"""How many tasks a machine's free CPUs and memory serve, against counting them one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from distributions import whole
from topoplace.cluster.hosts import HostResources, host_shares, megabytes, millicpus, tasks_hosted
from topoplace.testing.reference import reference_place

MEMORY = st.sampled_from([None, 0.004, 1.0, 2.5, 7.0])


@st.composite
def jobs_with_host_needs(draw: st.DrawFn) -> tp.JobGraph:
    size = draw(st.integers(1, 7))
    cpus, memory_gb = draw(st.integers(0, 17) | st.sampled_from([0.5, 3.152, 6.75])) or None, draw(MEMORY)
    processes = draw(st.integers(1, size))
    return tp.JobGraph.ring(size).with_(cpus=cpus, memory_gb=memory_gb, processes=processes)


def counted(job: tp.JobGraph, cpus: int, memory_mb: int) -> int:
    """All tasks if the whole job fits as its processes; else single tasks, those with a CPU more first."""
    processes = job.num_tasks if job.num_tasks % job.processes else job.processes
    whole_mb = processes * megabytes((job.memory_gb or 0.0) / processes)
    if millicpus(job.cpus or 0) <= cpus and whole_mb <= memory_mb:
        return job.num_tasks
    unit = 1 if isinstance(job.cpus, float) else 1000
    each, more = divmod(millicpus(job.cpus or 0) // unit, job.num_tasks)
    each_mb = megabytes((job.memory_gb or 0.0) / job.num_tasks)
    count = 0
    while count < job.num_tasks - 1:
        cpus, memory_mb = cpus - (each + (count < more)) * unit, memory_mb - each_mb
        if cpus < 0 or memory_mb < 0:
            break
        count += 1
    return count


@given(jobs_with_host_needs(), st.lists(st.tuples(st.integers(0, 18_000), st.integers(0, 7100)), max_size=4))
def test_as_many_tasks_as_counted_one_by_one(job: tp.JobGraph, free: list[tuple[int, int]]) -> None:
    cpus = millicpus(job.cpus or 0)
    memory = sum(megabytes(share.memory_gb) for share in host_shares(job, [0] * job.num_tasks, ONE_MACHINE))
    # What the whole job needs, and a little less of either.
    free += [
        (max(cpus - less, 0), max(memory - short, 0)) for less in (0, 1, 1000, 3000) for short in (0, 1, 500)
    ]
    found = tasks_hosted(job, np.array(free, dtype=np.int64), at_best=False)
    assert found.tolist() == [counted(job, *amounts) for amounts in free]


@given(jobs_with_host_needs(), st.lists(st.integers(0, 9), min_size=1, max_size=3), st.booleans())
def test_never_is_said_only_where_no_machines_have_the_cpus(
    job: tp.JobGraph, cpus: list[int], apart: bool
) -> None:
    job = job.with_(anti_affinity=apart, memory_gb=None)
    machines = [tp.Topology.from_links(2, [], 12.0)] * len(cpus)
    hosts = [HostResources(own, 1.0) for own in cpus]
    cluster = tp.Cluster(tp.Topology.cluster(machines), hosts=hosts)
    refusal = tp.policies.get("baseline").explain(job, cluster).refusal
    if refusal is not None and refusal.permanent:
        assert reference_place(job, cluster) is None


def test_a_cpu_that_does_not_divide_is_no_reason_for_never() -> None:
    """Of two tasks with 5 CPUs, one has 3 and one has 2."""
    machine, job = tp.Topology.from_links(1, [], 12.0), tp.JobGraph.ring(2).with_(cpus=5)
    for cpus, permanent in (((3, 2), False), ((2, 3), False), ((2, 2), True), ((4, 1), True)):
        cluster = tp.Cluster(tp.Topology.cluster([machine] * 2), [HostResources(own, 1.0) for own in cpus])
        for policy in ("baseline", "mapa-greedy", "fcfs", "topo-aware"):
            refusal = tp.policies.get(policy).explain(job, cluster).refusal
            assert (refusal is not None and refusal.permanent) == permanent


def test_a_job_has_a_process_for_each_task_if_one_process_would_span_machines() -> None:
    topology = tp.Topology.from_links(4, [], machines=["a", "a", "a", "b"])
    job = tp.JobGraph.ring(4).with_(cpus=8, processes=2)
    assert [(share.machine, share.cpus) for share in host_shares(job, (0, 1, 2, 3), topology)] == [
        *((0, 2), (0, 2), (0, 2), (1, 2))
    ]


ONE_MACHINE = tp.Topology.from_links(1, [])


def test_a_job_of_cpus_alone_needs_no_free_memory() -> None:
    cluster = tp.Cluster(ONE_MACHINE, HostResources(cpus=4, memory_gb=0.0))
    placement = tp.policies.get("baseline").place(tp.JobGraph.ring(1).with_(cpus=4), cluster)
    assert isinstance(placement, tp.Placement)
    assert [(share.cpus, share.memory_gb) for share in placement.hosts] == [(4, 0.0)]


@whole
@pytest.mark.parametrize("name", ["fcfs", "topo-aware", "mapa-greedy", "fgd"])
def test_a_job_that_asks_for_no_cpus_runs_where_none_are_free(name: str) -> None:
    cluster = tp.Cluster(tp.Topology.cluster(ONE_MACHINE, count=2), HostResources(cpus=4, memory_gb=4.0))
    for machine in (0, 1):
        everything = (tp.HostShare(machine, 4, 4.0),)
        cluster.allocate(f"job{machine}", tp.Placement((), topology=cluster.topology, hosts=everything))
    job = tp.JobGraph.ring(1).with_(single_machine=True)
    placement = tp.policies.get(name).place(job, cluster)
    assert placement is not None
    assert placement.gpus == (0,)


def test_the_first_strange_name_is_reported() -> None:
    hosts = {name: HostResources(1, 1.0) for name in ("machine0", "zeta", "alpha", "mid", "beta", "omega")}
    with pytest.raises(tp.AllocationError, match="hosts: 'alpha' is not a machine"):
        tp.Cluster(ONE_MACHINE, hosts)


@pytest.mark.parametrize("machine", ["a", "b"])
def test_a_drained_machine_is_restored(machine: str) -> None:
    topology = tp.Topology.from_links(2, [], machines=["a", "b"])
    cluster = tp.Cluster(topology, HostResources(4, 8.0))
    cluster.drain(machine)
    restored = tp.Cluster.restore(cluster.snapshot())
    assert list(restored.hosts.drained) == ["ab".index(machine)]
    assert restored.snapshot() == cluster.snapshot()
