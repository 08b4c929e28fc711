"""A cluster on a topology whose machines came, went, or were repaired."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace.cluster.new_topology import new_numbers

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
    assert wider.hosts.free.tolist() == [[16000, 64000, 1], [16000, 64000, 0], [9000, 62000, 1]]
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
    assert repaired.drained_gpus() == (3,)
    assert repaired.out_of_service() == (1, 3)
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


@st.composite
def clusters_of_machines(draw: st.DrawFn, names: list[str]) -> tp.Topology:
    """Generate clusters of some machines in any order; GPUs may be broken, renamed, moved, or of unknown UUID."""
    machines: dict[str, tp.Topology] = {}
    free = draw(st.permutations("ABCDEFGHIJKL"))
    for name in draw(st.permutations(names)):
        gpus = [
            replace(
                gpu,
                name=draw(st.sampled_from([gpu.name, f"other{gpu.index}"])),
                uuid=draw(st.sampled_from([None, free.pop()])),
                healthy=draw(st.booleans()),
            )
            for gpu in tp.Topology.from_links(2, [], machines=[name] * 2).gpus
        ]
        machines[name] = tp.Topology(tuple(gpus))
    return tp.Topology.cluster(machines) if draw(st.booleans()) else joined(machines.values())


def joined(machines: Iterable[tp.Topology]) -> tp.Topology:
    """Return the machines as a topology that `Topology.cluster` did not make."""
    gpus = [gpu for machine in machines for gpu in machine.gpus]
    return tp.Topology(tuple(replace(gpu, index=i) for i, gpu in enumerate(gpus)))


def numbers_one_by_one(old: tp.Topology, new: tp.Topology) -> dict[int, int]:
    by_uuid = {gpu.uuid: gpu.index for gpu in new.gpus if gpu.uuid}
    by_name = {(gpu.machine, gpu.name): gpu.index for gpu in new.gpus}
    found: dict[int, int] = {}
    for gpu in old.gpus:
        there = by_uuid.get(gpu.uuid) if gpu.uuid else None
        if there is None:
            there = by_name.get((gpu.machine, gpu.name))
            if there is not None and gpu.uuid and new.gpus[there].uuid:
                there = None
        if there is not None:
            found[gpu.index] = there
    return found


@given(clusters_of_machines(["a", "b", "c"]), st.data())
def test_gpus_are_found_as_if_each_were_looked_for(old: tp.Topology, data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from("abcd"), min_size=1, unique=True))
    for new in (data.draw(clusters_of_machines(names)), old.with_unhealthy([0])):
        assert new_numbers(old, new) == numbers_one_by_one(old, new)


@given(st.data(), st.sets(st.integers(0, 7), max_size=4), st.sets(st.integers(0, 7), max_size=4))
def test_a_repair_is_as_if_all_jobs_were_allocated_anew(
    data: st.DataObject, before: set[int], after: set[int]
) -> None:
    sound = topology("a", "b")
    cluster = tp.Cluster(sound.with_unhealthy(sorted(before)), hosts=HOST)
    free = list(data.draw(st.permutations(cluster.free_gpus())))
    for number, size in enumerate(data.draw(st.lists(st.integers(1, 3), max_size=3))):
        if gpus := [free.pop() for _ in range(min(size, len(free)))]:
            shares = (tp.HostShare(number % 2, 1, 0.5),)
            cluster.allocate(
                f"job {number}", tp.Placement(tuple(gpus), topology=cluster.topology, hosts=shares)
            )
    for target in data.draw(st.lists(st.sampled_from([*range(8), "a"]), max_size=3)):
        cluster.drain(target)
    new, known = sound.with_unhealthy(sorted(after)), cluster.snapshot()
    at_once, one_by_one = cluster.with_topology(new), cluster.with_topology(new, hosts=HOST)
    assert at_once.snapshot() == one_by_one.snapshot()
    assert at_once.topology is new
    assert list(at_once.allocations) == list(cluster.allocations)
    assert at_once.hosts.drained == one_by_one.hosts.drained == cluster.hosts.drained
    for gpu in at_once.free_gpus()[:1]:
        at_once.allocate("new", [gpu])
    assert cluster.snapshot() == known


def test_a_new_machine_among_many_is_found_without_looking_at_every_gpu() -> None:
    names = [f"machine{i}" for i in range(200)]
    cluster, wider = tp.Cluster(topology(*names)), topology(*names, "new")
    looked_at = 0
    assert wider.tiling is not None
    whole = wider.tiling.gpus._make

    def counted(*arguments: Any) -> tp.Gpu:
        nonlocal looked_at
        looked_at += 1
        return whole(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wider.tiling.gpus, "_make", counted)
        assert cluster.with_topology(wider).num_free == 804
    assert looked_at <= 8


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a", "c")])
def test_machines_that_are_looked_at_one_by_one_stay_so(names: tuple[str, ...]) -> None:
    cluster = tp.Cluster(topology("a", "b"), classes=False)
    assert not cluster.with_topology(topology(*names)).classes


@pytest.mark.parametrize(
    ("number", "shown"), [(5, "'a', 'b', 'c', 'd', 'e'"), (6, "'a', 'b', 'c', 'd', 'e', …")]
)
def test_up_to_five_jobs_of_a_machine_that_is_gone_are_named(number: int, shown: str) -> None:
    machine = tp.Topology.from_links(6, [])
    cluster = tp.Cluster(tp.Topology.cluster({"stays": machine, "goes": machine}))
    for gpu, job_id in enumerate("abcdef"[:number], 6):
        cluster.allocate(job_id, [gpu])
    with pytest.raises(tp.AllocationError, match=rf"^{number} jobs hold .* release them first: {shown}$"):
        cluster.with_topology(tp.Topology.cluster({"stays": machine}))


def test_a_job_stays_on_a_machine_whose_partitions_changed() -> None:
    plain = tp.Topology.from_links(4, [], 12.0)
    parted = replace(plain, partitions=((0,), (1,), (2,), (3,), (0, 1), (2, 3)))
    for gpus in ((0, 1), (0, 2)):
        cluster = tp.Cluster(plain)
        cluster.allocate("job", gpus)
        assert cluster.with_topology(parted).allocations == {"job": gpus}


@pytest.mark.parametrize("renumbered", [False, True])
def test_drained_held_and_unhealthy_do_not_undo_each_other(renumbered: bool) -> None:
    before = topology("a", "b")
    after = topology("b", "a") if renumbered else before
    gpus = len(before.gpus_of["a"])
    cluster = tp.Cluster(before)
    cluster.drain("a")
    cluster.hold(["b"], reason="spare")
    broken = cluster.with_topology(after.with_unhealthy([0, gpus]))
    mended = broken.with_topology(after)
    assert mended.free_gpus() == ()
    names = {number: name for name in ("a", "b") for number in after.gpus_of[name]}
    assert {names[gpu] for gpu in mended.drained_gpus()} == {"a"}
    assert {names[gpu] for gpu in mended.held_gpus()} == {"b"}
    assert set(mended.held_gpus().values()) == set(mended.hosts.held_back.values()) == {"spare"}
    broken.undrain("a")
    broken.unhold(["b"])
    assert broken.out_of_service() == (0, gpus)
