"""`Cluster.hold_spares`: a floor of idle machines in each domain, without harm to jobs, and what is refused."""

from __future__ import annotations

import random
import re
from collections import Counter

import hypothesis.strategies as st
import pytest
from hypothesis import given

import topoplace as tp
from topoplace.errors import AllocationError

MINSKY = tp.machines.get("minsky")
RACKS = tp.Topology.cluster(MINSKY, 6, racks=2)


def idle_machines(cluster: tp.Cluster) -> set[str]:
    """Return the machines with all GPUs free, and no process or drive of a job."""
    free = set(cluster.free_gpus())
    numbers = {name: i for i, name in enumerate(cluster.topology.machine_names)}
    used = {share.machine for held in cluster.hosts.held.values() for share in held.shares}
    used |= {machine for held in cluster.hosts.held.values() for machine in held.drives}
    return {
        name
        for name, gpus in cluster.topology.gpus_of.items()
        if free.issuperset(gpus) and numbers[name] not in used
    }


def a_cluster(draws: random.Random) -> tp.Cluster:
    """Return machines in racks, or in none, some of them busy, drained, held or unhealthy."""
    count = draws.randint(1, 8)
    racks = tuple(draws.choice(["r0", "r1", "r2", None]) for _ in range(count))
    names = tuple(f"m{i}" for i in range(count))
    made = [draws.choice([MINSKY, tp.machines.get("summit")]) for _ in names]
    topology = tp.Topology.cluster(made, fabric=tp.Fabric(names, (tp.Level("rack", racks),)))
    if draws.random() < 0.4:
        topology = topology.with_unhealthy([draws.randrange(topology.num_gpus)])
    known = draws.choice([None, tp.HostResources(cpus=8, memory_gb=64, drives=2)])
    cluster = tp.Cluster(topology, known)
    for i in range(draws.randint(0, 3)):
        if free := cluster.free_gpus():
            cluster.allocate(f"job{i}", draws.sample(free, draws.randint(1, min(3, len(free)))))
    if known and draws.random() < 0.4:
        share = tp.HostShare(draws.randrange(count), 1, 1.0)
        cluster.allocate("cpus", tp.Placement((), topology=topology, hosts=(share,)))
    for target in draws.sample([*names, *range(topology.num_gpus)], draws.randint(0, 2)):
        draws.choice([cluster.drain, lambda one: cluster.hold([one], reason="repair")])(target)
    if draws.random() < 0.3:
        cluster.hold(draws.sample(names, 1))
    return cluster


@given(st.integers(0, 1 << 30))
def test_each_domain_has_the_floor_and_no_job_loses_anything(seed: int) -> None:
    draws = random.Random(seed)
    cluster, floor = a_cluster(draws), draws.randint(1, 3)
    before, jobs, idle = cluster.snapshot(), dict(cluster.allocations), idle_machines(cluster)
    rack_of = dict(zip(cluster.topology.machine_names, cluster.topology.levels[0].domains, strict=True))
    spared = cluster.copy()
    spared.unhold([gpu for gpu, reason in spared.held_gpus().items() if reason == "spare"])
    spared.unhold([rack for rack in rack_of if _is_spare(cluster, rack)])
    old = {name for name in idle_machines(spared) if _is_spare(cluster, name)}
    found = cluster.hold_spares(level="rack", machines=floor)
    assert dict(cluster.allocations) == jobs
    assert idle.issuperset(found.held)
    assert all(_is_spare(cluster, name) for name in found.held)
    spares = Counter(rack_of[name] for name in {*old, *found.held})
    for rack in {rack for rack in rack_of.values() if rack is not None}:
        had = sum(rack_of[name] == rack for name in old)
        possible = had + sum(rack_of[name] == rack for name in idle)
        assert spares[rack] == max(had, min(floor, possible))
        assert found.short.get(rack, 0) == max(0, floor - spares[rack])
        assert sum(rack_of[name] == rack for name in found.surplus) == max(0, had - floor)
    assert old.issuperset(found.surplus)
    assert all(rack_of[name] for name in found.held)
    assert set(found.short) <= set(rack_of.values())
    after = cluster.snapshot()
    assert cluster.hold_spares(level="rack", machines=floor).held == ()
    assert cluster.snapshot() == tp.Cluster.restore(after).snapshot() == after
    cluster.unhold(found.held)
    assert cluster.snapshot() == before


def _is_spare(cluster: tp.Cluster, name: str) -> bool:
    held = cluster.held_gpus()
    return all(held.get(gpu) == "spare" for gpu in cluster.topology.gpus_of[name])


def test_a_broken_spare_is_replaced_and_a_used_one_topped_up() -> None:
    cluster = tp.Cluster(RACKS)
    assert cluster.hold_spares(level="rack").held == ("machine1", "machine3", "machine5")
    cluster = cluster.with_topology(RACKS.with_unhealthy([4]))
    assert cluster.hold_spares(level="rack").held == ("machine0",)
    cluster.unhold(["machine3"])
    cluster.allocate("repaired", RACKS.gpus_of["machine3"])
    found = cluster.hold_spares(level="rack")
    assert (found.held, found.short) == (("machine2",), {})
    found = cluster.hold_spares(level="rack", machines=2)
    assert (found.held, dict(found.short)) == (("machine4",), {"rack0": 1, "rack1": 1})
    assert cluster.with_topology(RACKS).hold_spares(level="rack").surplus == ("machine0", "machine4")


def test_machines_like_most_of_the_domain_come_first() -> None:
    made = [MINSKY, MINSKY, tp.machines.get("summit")]
    cluster = tp.Cluster(tp.Topology.cluster(made, racks=3))
    assert cluster.hold_spares(level="rack").held == ("machine1",)
    refusal = tp.policies.get("least-time").explain(tp.JobGraph.ring(14), cluster).refusal
    assert refusal is not None
    assert "held" in refusal.reason


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"level": "hall"}, "level = 'hall': the levels whose domains are machines are 'rack'"),
        ({"level": 1}, "level = 1 is not a non-empty string"),
        ({"level": "rack", "machines": 0}, "machines = 0 is not in 1.."),
        ({"level": "rack", "machines": 1.5}, "machines = 1.5 is not an integer"),
    ],
)
def test_wrong_arguments_change_nothing(arguments: dict[str, object], told: str) -> None:
    cluster = tp.Cluster(RACKS)
    before = cluster.snapshot()
    with pytest.raises(AllocationError, match=re.escape(told)):
        cluster.hold_spares(**arguments)  # type: ignore[arg-type]
    assert cluster.snapshot() == before
    with pytest.raises(
        AllocationError, match=r"level = 'rack': the levels whose domains are machines are none"
    ):
        tp.Cluster(MINSKY).hold_spares(level="rack")
