"""The counts of machines in the reason why a gang waits: every machine is in exactly one of them."""

from __future__ import annotations

import re
from random import Random

import pytest

import topoplace as tp
from topoplace.engine.gangs.machine_counts import Standing, standings
from topoplace.engine.gangs.offers import offers_of
from topoplace.engine.machine_state import ClusterView

MACHINES = 16
RACK = 4


def random_state(random: Random) -> tp.Cluster:
    """Return two kinds of machines, with jobs, drained GPUs, and little CPU on some machines."""
    kinds = [tp.machines.get("minsky"), tp.machines.get("dgx1-v100")]
    fabric = tp.Fabric.regular(MACHINES, {"rack": RACK})
    topology = tp.Topology.cluster([random.choice(kinds) for _ in range(MACHINES)], fabric=fabric)
    hosts = [tp.HostResources(random.choice((0, 4, 64)), 256.0) for _ in range(MACHINES)]
    cluster = tp.Cluster(topology, hosts)
    for machine, gpus in topology.gpus_of.items():
        taken = random.sample(gpus, random.choice((0, 1, len(gpus) // 2, len(gpus) - 1, len(gpus))))
        if taken and random.random() < 0.5:
            cluster.allocate(machine, tuple(sorted(taken)))
        for gpu in taken:
            cluster.drain(gpu)
    return cluster


def standing_of(machine: int, job: tp.JobGraph, cluster: tp.Cluster) -> Standing:
    gpus = [cluster.topology.gpus[gpu] for gpu in cluster.topology.gpus_of[f"machine{machine:02}"]]
    suited = [gpu.index for gpu in gpus if not job.gpu_model or gpu.model == job.gpu_model]
    if not suited:
        return Standing.UNSUITED
    if not set(suited) & set(cluster.free_gpus()):
        return Standing.TAKEN
    if cluster.hosts.left(machine).cpus < (job.cpus or 0) / job.num_tasks:
        return Standing.NO_HOST
    return Standing.SERVES


@pytest.mark.parametrize("seed", range(60))
def test_counts_add_up_to_all_machines(seed: int) -> None:
    random = Random(seed)
    cluster = random_state(random)
    model = random.choice((None, cluster.topology.gpus[0].model))
    size = random.choice((8, 12, 24))
    job = tp.JobGraph.ring(size).with_(
        within="rack", gpu_model=model, cpus=random.choice((None, size, 2 * size))
    )
    view = cluster.view(ClusterView)
    request = view.request(job)
    found = standings(request, view, offers_of(lambda request, _: request.size, request, view)).tolist()
    assert found == [standing_of(machine, job, cluster) for machine in range(MACHINES)]
    for name in ("topo-aware", "mapa-greedy"):
        refusal = tp.policies.get(name).explain(job, cluster).refusal
        if refusal is None or refusal.permanent:
            continue
        *_, whole = refusal.reason.split("; ")
        assert total(whole, f"all {MACHINES} machines") == MACHINES
        if inside := re.search(r"the most are in rack 'rack\d': ([^;]*)", refusal.reason):
            assert total(inside[1], f"its {RACK} machines") == RACK


def total(counts: str, machines: str) -> int:
    """Return the sum of the numbers with which the parts of a list of counts begin."""
    first, *others = counts.split(", ")
    assert f" of {machines} have " in first
    return sum(int(part.split()[0]) for part in (first, *others))


def test_lack_of_memory_bandwidth_is_named() -> None:
    fabric = tp.Fabric.regular(2, {"rack": 2})
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("minsky"), fabric=fabric))
    cluster.allocate("a", (0, 1, 2))
    greedy = tp.JobGraph.independent(1).with_(memory_bandwidth=39.0)
    cluster.allocate("b", tp.Placement((4,), topology=cluster.topology, job=greedy))
    policy = tp.policies.get("topo-aware", memory_bandwidth=40.0)
    job = tp.JobGraph.ring(3).with_(within="rack", memory_bandwidth=30.0)
    refusal = policy.explain(job, cluster).refusal
    assert refusal is not None
    assert refusal.reason.endswith(
        "; 1 of all 2 machines have 1 GPUs for it, 1 lack a free partition or memory bandwidth"
    )


def test_a_refusal_counts_what_is_out_of_service_by_reason() -> None:
    topology = tp.Topology.cluster(tp.machines.get("minsky"), 6).with_unhealthy([20])
    cluster = tp.Cluster(topology)
    for machine in topology.machine_names[:3]:
        cluster.drain(machine)
    cluster.hold(topology.machine_names[3:5])
    cluster.hold([21], reason="for tests")
    for name in ("fcfs", "mapa-greedy"):
        refusal = tp.policies.get(name).explain(tp.JobGraph.ring(3), cluster).refusal
        assert refusal is not None
        assert (
            "needs 3 GPUs, 2 are free; 3 machines are drained, 1 GPU is held (for tests), "
            "2 machines are held (spare), 1 GPU is unhealthy"
        ) in refusal.reason
