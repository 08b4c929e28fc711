"""Nodes of TSUBAME's queues on uneven machines: Figs. 5 and 6 machine by machine, with every requirement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from rcuda_oracle import QUEUES
from topoplace.policies import QueuedJob


@dataclass
class Server:
    """A machine with its free GPUs that suit a job, free thousandths of CPUs and MB."""

    number: int
    gpus: list[int]
    cpus: int
    memory: int
    has_job: bool


@dataclass
class Node:
    """What each node of a job needs; of `more` nodes, a unit of CPUs more."""

    count: int
    gpus: int
    cpus: int
    unit: int
    more: int
    memory: int
    is_local: bool


def node_of(job: tp.JobGraph) -> Node | None:
    """The needs of each node; None if GPUs cannot be divided evenly."""
    apart = job.anti_affinity and job.num_tasks > 1
    count = 1 if job.single_machine else job.num_tasks if apart else job.processes
    unit = 1000 if type(job.cpus or 0) is int else 1
    each, more = divmod(round(1000 * (job.cpus or 0)) // unit, count)
    processes = job.processes if job.single_machine else 1
    memory = -int(-(1000 * (job.memory_gb or 0.0) / count / processes - 1e-6) // 1) * processes
    if job.num_tasks % count:
        return None
    is_local = job.single_machine or apart
    return Node(count, job.num_tasks // count, each * unit, unit, more, max(memory, 0), is_local)


def servers_of(cluster: tp.Cluster, job: tp.JobGraph, most_gb: float) -> list[Server]:
    """The machines of a cluster; only GPUs of up to `most_gb` GB count."""
    topology, hosts = cluster.topology, cluster.hosts
    used = {int(topology.machine_of[gpu]) for gpus in cluster.allocations.values() for gpu in gpus}
    used |= {share.machine for held in hosts.held.values() for share in held.shares}

    def suits(gpu: tp.Gpu) -> bool:
        size = gpu.memory_gb or 0.0
        return gpu.model in (job.gpu_models or [gpu.model]) and (job.gpu_memory_gb or 0.0) <= size <= most_gb

    return [
        Server(
            number,
            [g for g in cluster.free_gpus() if topology.machine_of[g] == number and suits(topology.gpus[g])],
            *((-1, -1) if number in hosts.drained else map(int, hosts.free[number, :2])),
            number in used,
        )
        for number in range(topology.num_machines)
    ]


def chosen(servers: list[Server], node: Node, *, exclusive: bool) -> list[Server] | None:
    """Exclusive machines first, then those with most GPUs; richer ones in CPUs replace the last, where they have to."""

    def is_free(server: Server) -> bool:
        return not server.has_job and len(server.gpus) >= node.gpus

    able = [server for server in servers if server.cpus >= node.cpus and server.memory >= node.memory]
    if exclusive:
        able = [server for server in able if is_free(server)]
    if node.is_local:
        able = [server for server in able if len(server.gpus) >= node.gpus]
    able.sort(key=lambda one: (not is_free(one), max(node.gpus - len(one.gpus), 0), one.number))
    first = able[: node.count]
    richer = [server for server in able if server.cpus >= node.cpus + node.unit][: node.more]
    if len(first) < node.count or len(richer) < node.more:
        return None
    late = [server for server in richer if server not in first]
    poorer = [server for server in first if server not in richer]
    leaving = poorer[len(poorer) - len(late) :]
    return [server for server in first if server not in leaving] + late


def expected(
    name: str, job: tp.JobGraph, cluster: tp.Cluster
) -> tuple[list[int], list[tuple[int, int]], list[int]] | None:
    """The GPUs, (machine, thousandths of CPUs) of each node, and the remote GPUs."""
    node, pool_of = node_of(job), cluster.hosts.pool_of()
    sizes = sorted({gpu.memory_gb or 0.0 for gpu in cluster.topology.gpus})
    for most_gb in sizes if job.gpu_memory_gb else [float("inf")]:
        servers = servers_of(cluster, job, most_gb)
        machines = node and chosen(servers, node, exclusive=name == "g-queue")
        if not node or not machines or sum(len(one.gpus) for one in servers) < job.num_tasks:
            continue
        blocks = [(one, one.gpus[: node.gpus]) for one in machines]
        for one in machines:
            one.gpus, one.has_job = one.gpus[node.gpus :], True
        lenders = sorted(servers, key=lambda one: (not one.has_job, len(one.gpus), one.number))
        lent = [gpu for one in lenders for gpu in one.gpus]
        remote: list[int] = []
        for one, block in blocks:
            while len(block) < node.gpus:
                block.append(lent.pop(0))
                if pool_of[cluster.topology.machine_of[block[-1]]] != pool_of[one.number]:
                    remote.append(block[-1])
        more = [one for one in machines if one.cpus >= node.cpus + node.unit][: node.more]
        cpus = [(one.number, node.cpus + node.unit * (one in more)) for one in machines]
        return [gpu for _, block in blocks for gpu in block], cpus, remote
    return None


@st.composite
def uneven_clusters(draw: st.DrawFn) -> tp.Cluster:
    kinds = st.tuples(st.integers(1, 3), st.sampled_from([("K20X", 6.0), ("K40", 12.0)]))
    machines = [
        tp.Topology.from_links(size, [], 12.0, model=model, memory_gb=gb)
        for size, (model, gb) in draw(st.lists(kinds, min_size=2, max_size=5))
    ]
    pools = st.sampled_from([None, None, "rack"])
    hosts = [
        tp.HostResources(
            draw(st.sampled_from([2, 4, 4.5])), draw(st.sampled_from([4.0, 8.0])), pool=draw(pools)
        )
        for _ in machines
    ]
    cluster = tp.Cluster(tp.Topology.cluster(machines), hosts)
    for gpu in draw(st.sets(st.integers(0, cluster.topology.num_gpus - 1), max_size=3)):
        cluster.allocate(f"busy-{gpu}", [gpu])
    if draw(st.booleans()):
        cluster.drain(draw(st.sampled_from(cluster.topology.machine_names)))
    return cluster


@st.composite
def demanding_jobs(draw: st.DrawFn) -> tp.JobGraph:
    size, cpus = draw(st.integers(0, 4)), draw(st.sampled_from([1, 2, 3, 5, 1.5, 0.7]))
    memory_gb = draw(st.sampled_from([None, 1.0, 3.3, 8.0]))
    if not size:
        return tp.JobGraph.without_gpus(cpus=cpus, memory_gb=memory_gb)
    place = draw(st.sampled_from(["anywhere", "anywhere", "together", "apart"]))
    return tp.JobGraph.ring(size).with_(
        cpus=cpus,
        memory_gb=memory_gb,
        processes=draw(st.integers(1, size)),
        single_machine=place == "together",
        anti_affinity=place == "apart",
        gpu_model=draw(st.sampled_from([None, None, "K40"])),
        gpu_memory_gb=draw(st.sampled_from([None, None, 4.0, 8.0])),
    )


def check(name: str, job: tp.JobGraph, placement: tp.Placement | None, cluster: tp.Cluster) -> None:
    wanted = expected(name, job, cluster)
    assert (placement is None) == (wanted is None)
    if placement is None or wanted is None:
        return
    gpus, cpus, remote = wanted
    assert list(placement.gpus) == gpus
    assert list(placement.remote) == remote
    assert placement.scores["remote_gpus"] == len(remote)
    links = [cluster.topology.bandwidth(gpus[a], gpus[b]) for a, b, _ in job.edges]
    assert placement.scores["aggregated_bandwidth"] == pytest.approx(sum(links))
    processes = job.processes if job.single_machine else 1
    shares = placement.hosts
    assert [share.machine for share in shares] == [machine for machine, _ in cpus for _ in range(processes)]
    for number, (_, of_node) in enumerate(cpus):
        own = [round(1000 * share.cpus) for share in shares[number * processes : (number + 1) * processes]]
        assert sum(own) == of_node
        assert own == sorted(own, reverse=True)
        assert own[0] - own[-1] <= (1000 if type(job.cpus) is int else 1)
    memory = (job.memory_gb or 0.0) / len(shares)
    assert [share.memory_gb for share in shares] == pytest.approx([memory] * len(shares))


@pytest.mark.parametrize("name", QUEUES)
@given(uneven_clusters(), st.lists(demanding_jobs(), min_size=1, max_size=6))
def test_nodes_are_those_of_the_figures(name: str, cluster: tp.Cluster, jobs: Sequence[tp.JobGraph]) -> None:
    """A plan starts what is placed job by job, and rejects what does not fit the idle cluster."""
    policy, idle = tp.policies.get(name), tp.Cluster(cluster.topology, cluster.hosts.resources)
    plan = policy.plan([QueuedJob(str(i), job) for i, job in enumerate(jobs)], cluster, 0.0)
    started, rejected = dict(plan.start), dict(plan.reject)
    for number, job in enumerate(jobs):
        placement = policy.place(job, cluster)
        assert placement == started.get(str(number))
        check(name, job, placement, cluster)
        explained = policy.explain(job, cluster, top=3)
        if placement is None:
            assert not explained.candidates
            assert (expected(name, job, idle) is None) == (str(number) in rejected)
            assert explained.refusal is not None
            assert explained.refusal.permanent == (str(number) in rejected)
            continue
        assert explained.candidates[0] == placement
        used: set[int] = set()
        for one in explained.candidates:
            own = {share.machine for share in one.hosts}
            assert not used & own
            used |= own
        cluster.allocate(str(number), placement)
