"""The queues of TSUBAME against the loops of Figs. 5 and 6, written down once more and slowly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from rcuda_oracle import (
    HOST,
    QUEUES,
    borrowing,
    cluster_of,
    job_of,
    jobs,
    servers_of,
    suitable,
    thin_nodes,
    workloads,
)
from topoplace.policies import QueuedJob
from topoplace_lab.simulate import Result, Workload, simulate

# ---- nothing is promised twice -----------------------------------------------------------------------------------


@dataclass
class Node:
    """A machine as a clerk would keep it."""

    gpus: set[int]
    cpus: int = 8
    memory: int = 22
    jobs: list[str] = field(default_factory=list)


def changes(result: Result) -> Iterator[tuple[str, tp.simulate.JobRecord]]:
    """Ends and starts in their order; at one time, those that end go first."""
    ran = [record for record in result.records if record.placement]
    events = [
        *((record.start, "start", record.submitted.index) for record in ran),
        *((record.end, "end", record.submitted.index) for record in ran),
    ]
    for _, what, index in sorted(events):
        yield what, result.records[index]


def taken_by(record: tp.simulate.JobRecord, nodes: list[Node], machine_of: list[int]) -> None:
    placement, job = record.placement, record.submitted.job
    assert placement is not None
    assert len(placement.gpus) == job.num_tasks  # all or nothing
    assert len({share.machine for share in placement.hosts}) == len(placement.hosts) == job.processes
    for share in placement.hosts:
        node = nodes[share.machine]
        node.cpus -= share.cpus
        node.memory -= int(share.memory_gb)
        assert node.cpus >= 0
        assert node.memory >= 0
        node.jobs.append(record.submitted.job_id)
    assert sum(share.cpus for share in placement.hosts) == job.cpus
    assert sum(share.memory_gb for share in placement.hosts) == job.memory_gb
    for gpu in placement.gpus:
        nodes[machine_of[gpu]].gpus.remove(gpu)
    remote = [gpu for task, gpu in enumerate(placement.gpus) if machine_of[gpu] != placement.host_of(task)]
    assert sorted(remote) == sorted(placement.remote)


@pytest.mark.parametrize("name", QUEUES)
@given(workload=workloads(), count=st.integers(1, 4))
def test_no_gpu_cpu_or_byte_is_promised_twice(name: str, workload: Workload, count: int) -> None:
    topology = thin_nodes(count)
    result = simulate(topology, workload, tp.policies.get(name), hosts=HOST)
    machine_of = topology.machine_of.tolist()
    nodes = [Node(set(range(3 * m, 3 * m + 3))) for m in range(count)]
    replay(result, nodes, machine_of, exclusive=name == "g-queue")
    for node in nodes:
        assert (len(node.gpus), node.cpus, node.memory, node.jobs) == (3, 8, 22, [])
    for record in result.records:
        possible = record.submitted.job.processes <= count
        assert bool(record.placement) == possible == (not record.rejected)


def replay(result: Result, nodes: list[Node], machine_of: list[int], *, exclusive: bool) -> None:
    for what, record in changes(result):
        placement, job_id = record.placement, record.submitted.job_id
        assert placement is not None
        if what == "start":
            taken_by(record, nodes, machine_of)
            assert not exclusive or all(nodes[share.machine].jobs == [job_id] for share in placement.hosts)
            assert not exclusive or not placement.remote
            continue
        for share in placement.hosts:
            nodes[share.machine].cpus += share.cpus
            nodes[share.machine].memory += int(share.memory_gb)
            nodes[share.machine].jobs.remove(job_id)
        for gpu in placement.gpus:
            nodes[machine_of[gpu]].gpus.add(gpu)


# ---- the figures, slowly -----------------------------------------------------------------------------------------


@st.composite
def busy_clusters(draw: st.DrawFn) -> tp.Cluster:
    """Clusters that jobs have come to and gone from."""
    cluster = cluster_of(draw(st.integers(1, 5)))
    policy = tp.policies.get(draw(st.sampled_from(QUEUES)))
    for i, job in enumerate(draw(st.lists(jobs(), max_size=8))):
        if placement := policy.place(job, cluster):
            cluster.allocate(f"job-{i}", placement)
    for job_id in draw(st.lists(st.sampled_from([f"job-{i}" for i in range(8)]), unique=True)):
        if job_id in cluster.hosts.held:
            cluster.release(job_id)
    for gpu in draw(st.lists(st.integers(0, cluster.topology.num_gpus - 1), max_size=2)):
        cluster.drain(gpu)
    return cluster


def decisions(
    policy: str, cluster: tp.Cluster, queue: list[tp.JobGraph]
) -> list[tuple[tp.JobGraph, tp.Placement | None]]:
    """Each job of the queue with the placement that one plan of the policy gives it."""
    entries = [QueuedJob(str(i), job) for i, job in enumerate(queue)]
    started = dict(tp.policies.get(policy).plan(entries, cluster, 0.0).start)
    return [(entry.job, started.get(entry.job_id)) for entry in entries]


@given(cluster=busy_clusters(), queue=st.lists(jobs(), min_size=1, max_size=8))
def test_g_queue_is_the_loop_of_figure_5(cluster: tp.Cluster, queue: list[tp.JobGraph]) -> None:
    servers = servers_of(cluster)
    for job, placement in decisions("g-queue", cluster, queue):
        found = suitable(servers, job)
        assert (placement is not None) == (len(found) == job.processes)
        if placement:
            each = job.num_tasks // job.processes
            assert [share.machine for share in placement.hosts] == [server.number for server in found]
            assert list(placement.gpus) == [gpu for server in found for gpu in server.gpus[:each]]
            assert not placement.remote
            for server in found:
                server.has_job = True


@given(cluster=busy_clusters(), queue=st.lists(jobs(), min_size=1, max_size=8))
def test_r_queue_is_the_loop_of_figure_6(cluster: tp.Cluster, queue: list[tp.JobGraph]) -> None:
    servers = servers_of(cluster)
    for job, placement in decisions("r-queue", cluster, queue):
        found = borrowing(servers, job)
        assert (placement is not None) == bool(found)
        if placement:
            assert [share.machine for share in placement.hosts] == [server.number for server, _ in found]
            assert list(placement.gpus) == [gpu for _, block in found for gpu in block]
            for server, _ in found:
                server.cpus -= job.cpus // job.processes
                server.memory -= job.memory_gb / job.processes
            for server in servers:
                server.has_job |= any(
                    int(cluster.topology.machine_of[gpu]) == server.number for gpu in placement.gpus
                )


@given(cluster=busy_clusters(), job=jobs())
def test_what_starts_in_the_g_queue_starts_in_the_r_queue(cluster: tp.Cluster, job: tp.JobGraph) -> None:
    ours, theirs = (tp.policies.get(name).place(job, cluster) for name in ("r-queue", "g-queue"))
    if theirs is not None:
        assert ours == theirs


@pytest.mark.parametrize("name", QUEUES)
@given(cluster=busy_clusters(), queue=st.lists(jobs(), max_size=6), later=jobs())
def test_what_a_cluster_remembers_changes_no_plan(
    name: str, cluster: tp.Cluster, queue: list[tp.JobGraph], later: tp.JobGraph
) -> None:
    policy = tp.policies.get(name)
    entries = [QueuedJob(str(i), job) for i, job in enumerate(queue)]
    for _ in range(3):
        plan = policy.plan(entries, cluster, 0.0)
        assert plan == policy.plan(entries, cluster.copy(), 0.0)
        for job_id, placement in plan.start:
            cluster.allocate(f"started-{job_id}", placement)
        entries = [QueuedJob("later", later), *entries]
        for job_id in list(cluster.hosts.held)[:1]:
            cluster.release(job_id)
            assert policy.plan(entries, cluster, 0.0) == policy.plan(entries, cluster.copy(), 0.0)
        entries = [entry for entry in entries if entry.job_id not in dict(plan.start)][1:]


def test_what_an_instantaneous_job_frees_is_seen() -> None:
    """Between two plans something was taken and given back, so that no more is free than at the first one."""
    workload = Workload([job_of(1, 3), job_of(1, 3)], [0.0, 0.0], [0.0, 0.0])
    for name in QUEUES:
        result = simulate(thin_nodes(1), workload, tp.policies.get(name), hosts=HOST)
        assert [record.start for record in result.records] == [0.0, 0.0]


# ---- what it is for ----------------------------------------------------------------------------------------------


def test_three_jobs_of_two_gpus_share_two_nodes() -> None:
    """Section 1.2: jobs A, B and C ask for two GPUs each, and two nodes of three GPUs should be enough."""
    queue = [QueuedJob(name, job_of(1, 2)) for name in "ABC"]
    exclusive, shared = (tp.policies.get(name).plan(queue, cluster_of(2), 0.0) for name in QUEUES)
    assert [job_id for job_id, _ in exclusive.start] == ["A", "B"]
    assert [job_id for job_id, _ in shared.start] == ["A", "B", "C"]
    last = shared.start[2][1]
    assert (last.gpus, last.remote, [share.machine for share in last.hosts]) == ((2, 5), (5,), [0])
    assert last.scores["remote_gpus"] == 1.0


def test_lenders_are_those_with_jobs_and_few_gpus() -> None:
    cluster = cluster_of(4)
    for i, (gpus, cpus) in enumerate((((0, 1, 2), 1), ((3,), 8), ((6, 7), 8))):
        share = tp.HostShare(i, cpus, 1.0)
        cluster.allocate(f"job-{i}", tp.Placement(gpus, topology=cluster.topology, hosts=(share,)))
    cluster.allocate("no-cpus", tp.Placement((), topology=cluster.topology, hosts=(tp.HostShare(3, 8, 1.0),)))
    cluster.drain(9)
    placement = tp.policies.get("r-queue").place(job_of(1, 3), cluster)
    assert placement is not None
    assert placement.hosts[0].machine == 0
    assert placement.gpus == placement.remote == (8, 4, 5)


def test_idle_machines_lend_last() -> None:
    """One with a single CPU cannot host the job, and lends although it has no job only when it has to."""
    hosts = [HOST, HOST, tp.HostResources(cpus=1, memory_gb=22.0)]
    cluster = tp.Cluster(thin_nodes(3), hosts=hosts)
    cluster.drain(6)
    cluster.drain(7)
    for machine, gpu in enumerate((0, 3)):
        share = tp.HostShare(machine, 5 * machine, 1.0)
        cluster.allocate(f"{machine}", tp.Placement((gpu,), topology=cluster.topology, hosts=(share,)))
    policy = tp.policies.get("r-queue")
    assert policy.place(job_of(1, 3, cpus=8), cluster).gpus == (1, 2, 4)
    assert policy.place(job_of(1, 5, cpus=8), cluster).gpus == (1, 2, 4, 5, 8)


@pytest.mark.parametrize("name", QUEUES)
def test_whatever_is_freed_is_tried_again(name: str) -> None:
    """A CPU, memory, a GPU, and under the g-queue also that a machine has no job any more."""
    for taken, job in (
        (tp.HostShare(0, 8, 0.0), job_of(1, 3)),
        (tp.HostShare(0, 0, 22.0), job_of(1, 3)),
        (None, job_of(1, 3)),
    ):
        cluster = tp.Cluster(thin_nodes(1), hosts=HOST)
        entries, policy = [QueuedJob("waits", job)], tp.policies.get(name)
        if taken:
            cluster.allocate("other", tp.Placement((), topology=cluster.topology, hosts=(taken,)))
        else:
            cluster.drain(0)
        assert policy.plan(entries, cluster, 0.0).start == ()
        if taken:
            cluster.release("other")
        else:
            cluster.undrain(0)
        assert [job_id for job_id, _ in policy.plan(entries, cluster, 1.0).start] == ["waits"]


def test_more_memory_or_cpus_alone_are_tried_again() -> None:
    """The machine keeps a job, and its GPUs are all free all the time."""
    for first, more in (((4, 1.0), (4, 0.0)), ((0, 11.0), (0, 11.0))):
        cluster, policy = cluster_of(1), tp.policies.get("r-queue")
        for job_id, (cpus, memory) in (("stays", first), ("goes", more)):
            share = tp.HostShare(0, cpus, memory)
            cluster.allocate(job_id, tp.Placement((), topology=cluster.topology, hosts=(share,)))
        entries = [QueuedJob("waits", job_of(1, 3, cpus=4, memory=11))]
        assert not policy.plan(entries, cluster, 0.0).start
        cluster.release("goes")
        assert len(policy.plan(entries, cluster, 1.0).start) == 1


def test_later_jobs_overtake_and_a_job_that_never_fits_is_rejected() -> None:
    queue = [QueuedJob("wide", job_of(3, 1)), QueuedJob("two", job_of(2, 3)), QueuedJob("one", job_of(1, 1))]
    cluster = cluster_of(2)
    for name in QUEUES:
        plan = tp.policies.get(name).plan(queue, cluster, 0.0)
        assert [job_id for job_id, _ in plan.start] == ["two"]
        assert [job_id for job_id, _ in plan.reject] == ["wide"]
        assert "3 nodes with 1 GPUs, 1 CPUs and 1 GB" in plan.reject[0][1].reason


@pytest.mark.parametrize("name", QUEUES)
@pytest.mark.parametrize(
    ("job", "reason"),
    [
        (tp.JobGraph.ring(3).with_(processes=2), "3 GPUs cannot be split evenly over 2 nodes"),
        (job_of(1, 1, cpus=9), "needs a node with 1 GPUs, 9 CPUs and 1 GB, the idle"),
        (job_of(1, 1, memory=23), "needs a node with 1 GPUs, 1 CPUs and 23 GB, the idle"),
        (job_of(3, 2).with_(anti_affinity=True), "needs 6 GPUs on different machines"),
        (job_of(2, 2).with_(single_machine=True), "needs 4 GPUs on one machine"),
    ],
)
def test_what_can_never_run_says_why(name: str, job: tp.JobGraph, reason: str) -> None:
    cluster = cluster_of(5)
    policy = tp.policies.get(name)
    assert policy.place(job, cluster) is None
    deferred = policy.explain(job, cluster).refusal
    assert deferred is not None
    assert deferred.reason.startswith("never fits")
    assert reason in deferred.reason


@pytest.mark.parametrize("name", QUEUES)
def test_processes_of_one_node_and_tasks_apart(name: str) -> None:
    cluster = cluster_of(3)
    together = tp.policies.get(name).place(job_of(3, 1, 2).with_(single_machine=True), cluster)
    assert together is not None
    assert (together.gpus, together.hosts) == ((0, 1, 2), (tp.HostShare(0, 2, 1.0),) * 3)
    apart = tp.policies.get(name).place(tp.JobGraph.ring(3).with_(anti_affinity=True), cluster)
    assert apart is not None
    assert apart.gpus == (0, 3, 6)


def test_a_job_apart_borrows_nothing() -> None:
    cluster = cluster_of(2)
    cluster.allocate("other", [0, 1, 2])
    assert tp.policies.get("r-queue").place(tp.JobGraph.ring(2), cluster) is not None
    assert tp.policies.get("r-queue").place(tp.JobGraph.ring(2).with_(anti_affinity=True), cluster) is None
    assert tp.policies.get("r-queue").place(job_of(2, 1), cluster).remote == (4,)


def test_without_host_resources_only_gpus_count() -> None:
    cluster, job = tp.Cluster(thin_nodes(1)), tp.JobGraph.ring(1)
    policy = tp.policies.get("r-queue")
    for i in range(3):
        placement = policy.place(job, cluster)
        assert placement is not None
        cluster.allocate(str(i), placement)
    assert policy.place(job, cluster) is None
    assert policy.explain(job, cluster).refusal is not None


def test_pooled_gpus_are_not_remote() -> None:
    hosts = tp.HostResources(cpus=8, memory_gb=22.0, pool="rack")
    cluster = tp.Cluster(thin_nodes(2), hosts=hosts)
    placement = tp.policies.get("r-queue").place(job_of(1, 5), cluster)
    assert placement is not None
    assert (placement.gpus, placement.remote) == ((0, 1, 2, 3, 4), ())
    assert tp.policies.get("g-queue").place(job_of(1, 5), cluster) is None


def test_a_drained_machine_neither_hosts_nor_lends() -> None:
    cluster = cluster_of(2)
    cluster.drain(cluster.topology.machine_names[0])
    for name in QUEUES:
        placement = tp.policies.get(name).place(job_of(1, 3), cluster)
        assert placement is not None
        assert placement.gpus == (3, 4, 5)
        assert tp.policies.get(name).place(job_of(1, 4), cluster) is None
        assert tp.policies.get(name).place(job_of(2, 1), cluster) is None


def test_partitions_are_given_and_lent_whole() -> None:
    machine = tp.Topology.from_links(4, [], 12.0)
    vm = replace(machine, partitions=[(0, 1), (2, 3), (0, 1, 2, 3)])
    cluster = tp.Cluster(tp.Topology.cluster({"vm": vm, "plain": machine}), hosts=HOST)
    policy = tp.policies.get("r-queue")
    pairs = policy.place(job_of(2, 2), cluster)
    assert pairs is not None
    assert pairs.gpus == (0, 1, 4, 5)
    three = policy.place(job_of(1, 3), cluster)
    assert three is not None
    assert three.gpus == (4, 5, 6)
    five = policy.place(job_of(1, 5), cluster)
    assert five is not None
    assert (five.gpus, five.remote) == ((0, 1, 2, 3, 4), (4,))  # 4 on "plain" would leave 1 to borrow
    cluster.drain(7)
    five = policy.place(job_of(1, 5), cluster)
    assert five is not None
    assert (five.gpus, five.remote) == ((4, 5, 6, 0, 1), (0, 1))
    assert policy.place(job_of(1, 5).with_(single_machine=True), cluster) is None


@pytest.mark.parametrize("name", QUEUES)
def test_cpus_are_counted_exactly(name: str) -> None:
    """Of two nodes with 5 CPUs, one has 3: they fit two machines of 3 and 2 CPUs, whichever is first."""
    job, policy = tp.JobGraph.ring(2).with_(processes=2, cpus=5), tp.policies.get(name)
    for cpus in ((3, 2, 0), (2, 3, 1), (2, 2, 3), (1, 2, 3), (2, 0, 3)):
        hosts = [tp.HostResources(own, 22.0) for own in cpus]
        cluster = tp.Cluster(thin_nodes(3), hosts=hosts)
        placement = policy.place(job, cluster)
        assert placement is not None
        assert sorted(share.cpus for share in placement.hosts) == [2, 3]
        cluster.allocate("job", placement)
    short = tp.Cluster(thin_nodes(3), hosts=tp.HostResources(2, 22.0))
    refusal = policy.explain(job, short).refusal
    assert refusal is not None
    assert "2 nodes with 1 GPUs, 2 or 3 CPUs" in refusal.reason


@pytest.mark.parametrize("name", QUEUES)
@given(
    tasks=st.integers(1, 6),
    processes=st.integers(1, 6),
    cpus=st.integers(0, 20),
    memory=st.sampled_from([0.1, 1.0, 10.0]),
    place=st.sampled_from([{}, {"single_machine": True}, {"anti_affinity": True}]),
    have=st.lists(st.integers(0, 8), min_size=1, max_size=4),
)
def test_every_process_has_its_share(
    name: str, tasks: int, processes: int, cpus: int, memory: float, place: dict[str, bool], have: list[int]
) -> None:
    """A job gets its exact CPUs, in as many processes as it has; it waits only if no machines have them."""
    job = tp.JobGraph.independent(tasks).with_(processes=min(processes, tasks), cpus=cpus, memory_gb=memory)
    job = job.with_(**place)
    cluster = tp.Cluster(thin_nodes(len(have)), hosts=[tp.HostResources(own, 22.0) for own in have])
    placement = tp.policies.get(name).place(job, cluster)
    if placement is not None:
        each = [share.cpus for share in placement.hosts]
        assert sum(each) == cpus
        assert max(each) - min(each) <= 1
        assert len(each) == (tasks if job.anti_affinity else job.processes)
        assert sum(share.memory_gb for share in placement.hosts) == pytest.approx(memory)
        cluster.allocate("job", placement)
        return
    nodes = 1 if job.single_machine else tasks if job.anti_affinity else job.processes
    more = [cpus // nodes + (i < cpus % nodes) for i in range(nodes)]
    enough = all(own >= asked for own, asked in zip(sorted(have, reverse=True), more, strict=False))
    assert tasks % nodes or nodes > len(have) or not enough or tasks // nodes > 3 or name == "r-queue"


@pytest.mark.parametrize("name", QUEUES)
def test_who_asks_for_more_may_get_a_partition_where_others_get_nothing(name: str) -> None:
    pair = tp.Topology.from_links(2, [], 12.0)
    halves = {"plain": pair, "whole": replace(pair, partitions=[(0, 1)])}
    cluster = tp.Cluster(tp.Topology.cluster(halves), hosts=HOST)
    cluster.allocate("on plain", tp.Placement((0, 1), topology=cluster.topology))
    entries = [QueuedJob("one", job_of(1, 1)), QueuedJob("two", job_of(1, 2))]
    started = dict(tp.policies.get(name).plan(entries, cluster, 0.0).start)
    assert {job_id: placement.gpus for job_id, placement in started.items()} == {"two": (2, 3)}


def test_partitions_are_not_lent_to_those_who_cannot_run_beside_them() -> None:
    pair = tp.Topology.from_links(2, [], 12.0)
    topology = tp.Topology.cluster({"plain": pair, "whole": replace(pair, partitions=[(0, 1)])})
    cluster = tp.Cluster(topology, hosts=[HOST, tp.HostResources(cpus=0, memory_gb=22.0)])
    cluster.allocate("on plain", tp.Placement((0,), topology=topology))
    assert tp.policies.get("r-queue").place(job_of(1, 1), cluster) is not None
    assert tp.policies.get("r-queue").place(job_of(1, 2), cluster) is None


def test_who_asks_for_less_of_anything_is_tried_after_one_without_room() -> None:
    cluster = cluster_of(2)
    for machine in range(2):
        share = tp.HostShare(machine, 4, 11.0)
        gpus = (3 * machine, 3 * machine + 1)
        cluster.allocate(f"on {machine}", tp.Placement(gpus, topology=cluster.topology, hosts=(share,)))
    for much in (job_of(1, 1, 1, 12), job_of(1, 1, 5, 1), job_of(1, 2).with_(single_machine=True)):
        entries = [QueuedJob("much", much), QueuedJob("less", job_of(1, much.num_tasks))]
        started = dict(tp.policies.get("r-queue").plan(entries, cluster, 0.0).start)
        assert list(started) == ["less"]


def test_explain_ranks_other_machines_next() -> None:
    explained = tp.policies.get("r-queue").explain(job_of(1, 3), cluster_of(3), top=2)
    assert [placement.gpus for placement in explained.candidates] == [(0, 1, 2), (3, 4, 5)]
    assert explained.refusal is None


def test_bad_queues_are_refused() -> None:
    with pytest.raises(ValueError, match=r"queue\[1\] = 3 is not a QueuedJob"):
        tp.policies.get("g-queue").plan([QueuedJob("a", job_of(1, 1)), 3], cluster_of(1), 0.0)


def test_a_single_node_with_gpus_of_its_pool_only() -> None:
    machine = tp.Topology.from_links(2, [(0, 1, 50.0)], 12.0)
    hosts = [tp.HostResources(8, 64.0, pool="p"), tp.HostResources(0, 64.0, pool="p")]
    cluster = tp.Cluster(tp.Topology.cluster(machine, count=2, network=10.0), hosts)
    cluster.allocate("held", (0, 1))
    placement = tp.policies.get("r-queue").place(tp.JobGraph.ring(2).with_(cpus=4), cluster)
    assert placement is not None
    assert (placement.gpus, placement.remote) == ((2, 3), ())
    assert placement.scores["aggregated_bandwidth"] == 50.0


def test_gpus_that_the_jobs_own_machines_leave_are_lent_first() -> None:
    machine = tp.Topology.from_links(3, [], 12.0)
    hosts = [tp.HostResources(8 if i < 2 else 0, 64.0) for i in range(6)]
    cluster = tp.Cluster(tp.Topology.cluster(machine, count=6, network=10.0), hosts)
    for first in (3, 6, 9, 12, 15):  # a job on every machine but the first; two GPUs are left on each
        cluster.allocate(f"held-{first}", (first,))
    cluster.allocate("more", (4,))
    placement = tp.policies.get("r-queue").place(tp.JobGraph.ring(4).with_(cpus=4, processes=2), cluster)
    assert placement is not None
    assert (placement.gpus, placement.remote) == ((0, 1, 5, 2), (2,))
