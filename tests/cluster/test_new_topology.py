"""A cluster on a topology whose machines came, went, or were repaired."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp

MACHINE = tp.machines.get("minsky")
HOST = tp.HostResources(cpus=16, memory_gb=64.0, drives=1)
RING = tp.JobGraph.ring(2).with_(cpus=4)


def topology(*names: str) -> tp.Topology:
    return tp.Topology.cluster(dict.fromkeys(names, MACHINE))


def uuids(topology: tp.Topology, names: list[str | None]) -> tp.Topology:
    gpus = [replace(gpu, uuid=uuid) for gpu, uuid in zip(topology.gpus, names, strict=True)]
    return replace(topology, gpus=tuple(gpus))


def busy(on: tp.Topology) -> tp.Cluster:
    cluster = tp.Cluster(on, hosts=HOST)
    shares = (tp.HostShare(1, 4),)
    cluster.allocate(
        "pair", tp.Placement((6, 5), topology=on, job=RING, hosts=shares, drives=(0,), remote=(5,))
    )
    cluster.allocate("cpus", tp.Placement((), topology=on, hosts=(tp.HostShare(1, 3, 2.0),)))
    cluster.allocate("one", [0])
    cluster.drain(4)
    return cluster


def test_a_machine_that_is_added_changes_nothing_for_the_jobs() -> None:
    cluster = busy(topology("a", "b"))
    wider = cluster.with_topology(topology("new", "a", "b"), hosts=HOST)
    assert dict(wider.allocations) == {"pair": (10, 9), "one": (4,)}
    assert wider.hosts.held["pair"].shares == (tp.HostShare(2, 4),)
    assert (wider.hosts.held["pair"].drives, wider.hosts.held["pair"].remote) == ((1,), (9,))
    assert wider.hosts.free.tolist() == [[16, 64000, 1], [16, 64000, 0], [9, 62000, 1]]
    assert wider.drained_gpus() == (8,)
    assert dict(wider.jobs) == {"pair": RING}
    assert wider.with_topology(topology("a", "b")).snapshot() == cluster.snapshot()


def test_hosts_are_kept_by_name() -> None:
    cluster = tp.Cluster(topology("a", "b"), hosts={"a": HOST, "b": replace(HOST, cpus=8)})
    cluster.drain("b")
    swapped = cluster.with_topology(topology("b", "a"))
    assert [one.cpus for one in swapped.hosts.resources] == [8, 16]
    assert (swapped.hosts.drained, swapped.drained_gpus()) == (frozenset((0,)), (0, 1, 2, 3))
    with pytest.raises(tp.AllocationError, match="machine 'c' is new; give hosts="):
        cluster.with_topology(topology("a", "b", "c"))


def test_jobs_of_a_machine_that_is_gone_are_named() -> None:
    cluster = busy(topology("a", "b"))
    before = cluster.snapshot()
    with pytest.raises(
        tp.AllocationError, match=r"2 jobs hold GPUs or machines that .* lacks.*: 'pair', 'cpus'"
    ):
        cluster.with_topology(topology("a"))
    with pytest.raises(tp.AllocationError, match=r"2 jobs .*: 'pair', 'one'"):
        cluster.with_topology(topology("b"))
    assert cluster.snapshot() == before
    cluster.release("pair")
    cluster.release("cpus")
    assert dict(cluster.with_topology(topology("a")).allocations) == {"one": (0,)}


def test_a_uuid_is_followed_and_another_gpu_in_its_place_is_not_taken_for_it() -> None:
    first = uuids(MACHINE, ["A", "B", "C", None])
    cluster = tp.Cluster(first)
    cluster.allocate("job", [0, 3])
    moved = cluster.with_topology(uuids(MACHINE, ["B", "A", "X", "D"]))
    assert moved.gpus_of("job") == (1, 3)
    with pytest.raises(tp.AllocationError, match="'job'"):
        cluster.with_topology(uuids(MACHINE, ["Z", "B", "C", None]))


def test_repaired_gpus_are_free_and_broken_ones_stay_with_their_jobs() -> None:
    def health(*healthy: bool) -> tp.Topology:
        gpus = [replace(gpu, healthy=ok) for gpu, ok in zip(MACHINE.gpus, healthy, strict=True)]
        return replace(MACHINE, gpus=tuple(gpus))

    cluster = tp.Cluster(health(False, True, True, True))
    cluster.allocate("job", [1])
    cluster.drain(3)
    repaired = cluster.with_topology(health(True, False, True, True))
    assert repaired.drained_gpus() == (1, 3)
    assert repaired.free_gpus() == (0, 2)
    assert repaired.gpus_of("job") == (1,)


@given(st.permutations(["a", "b", "c", "d"]), st.lists(st.integers(0, 15), unique=True, max_size=12))
def test_any_order_of_machines_and_back(order: list[str], held: list[int]) -> None:
    cluster = tp.Cluster(topology("a", "b", "c", "d"))
    for number, gpu in enumerate(held):
        cluster.allocate(f"job {number}", [gpu])
    there = cluster.with_topology(topology(*order))
    for job_id, (gpu,) in there.allocations.items():
        (old,) = cluster.gpus_of(job_id)
        assert there.topology.gpus[gpu].machine == cluster.topology.gpus[old].machine
        assert there.topology.gpus[gpu].name == cluster.topology.gpus[old].name
    assert there.with_topology(cluster.topology).snapshot() == cluster.snapshot()
