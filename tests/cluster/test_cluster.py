from __future__ import annotations

import contextlib
import pickle
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule
from tests.support.cluster_machine import ClusterModel

import topoplace as tp

N = 70  # more than one 64-bit word
TOPOLOGY = tp.Topology.from_links(N, [(0, 1, 50.0)], machines=["a"] * 60 + ["b"] * 10)
JOBS = st.sampled_from(["p", "q", "r", "s"])
GPUS = st.lists(st.sampled_from([*range(6), 63, 64, 69]), min_size=1, max_size=4)


class ClusterMachine(ClusterModel):
    """A cluster against a model of two plain dicts, with transactions as copies of the model."""

    @initialize()
    def start(self) -> None:
        self.begin_with(tp.Cluster(TOPOLOGY))

    def is_free(self, gpu: int) -> bool:
        return gpu not in self.drained | self.held_back.keys() and all(
            gpu not in gpus for gpus in self.held.values()
        )

    @rule(job=JOBS, gpus=GPUS)
    def allocate(self, job: str, gpus: list[int]) -> None:
        allowed = job not in self.held and len(set(gpus)) == len(gpus) and all(map(self.is_free, gpus))
        if allowed:
            self.cluster.allocate(job, gpus)
            self.held[job] = tuple(gpus)
        else:
            with pytest.raises(tp.AllocationError):
                self.cluster.allocate(job, gpus)

    @rule(gpu=st.integers(0, 5), on=st.booleans())
    def drain_gpu(self, gpu: int, on: bool) -> None:
        (self.cluster.drain if on else self.cluster.undrain)(gpu)
        (self.drained.add if on else self.drained.discard)(gpu)

    @rule(on=st.booleans())
    def drain_machine(self, on: bool) -> None:
        (self.cluster.drain if on else self.cluster.undrain)("b")
        (self.drained.update if on else self.drained.difference_update)(range(60, 70))

    @rule(gpus=st.lists(st.integers(0, 5) | st.just("b")), reason=st.sampled_from(["spare", "tests", None]))
    def hold(self, gpus: list[int | str], reason: str | None) -> None:
        numbers = {n for one in gpus for n in (range(60, 70) if isinstance(one, str) else [one])}
        if reason is None:
            self.cluster.unhold(gpus)
            self.held_back = {gpu: its for gpu, its in self.held_back.items() if gpu not in numbers}
        else:
            self.cluster.hold(gpus, reason=reason)
            self.held_back |= dict.fromkeys(numbers, reason)

    def disturb(self, old: tp.Cluster) -> None:
        with contextlib.suppress(tp.AllocationError):
            old.allocate("other", old.free_gpus())

    @invariant()
    def agrees(self) -> None:
        free = tuple(gpu for gpu in range(N) if self.is_free(gpu))
        assert self.cluster.free_gpus() == free
        assert self.cluster.num_free == len(free)
        assert list(self.cluster.allocations.items()) == list(self.held.items())
        assert self.cluster.drained_gpus() == tuple(sorted(self.drained))
        assert list(self.cluster.held_gpus().items()) == sorted(self.held_back.items())
        assert self.cluster.out_of_service() == tuple(sorted(self.drained | self.held_back.keys()))
        for gpu in (0, 3, 64):
            owners = [job for job, gpus in self.held.items() if gpu in gpus]
            assert self.cluster.owner(gpu) == (owners[0] if owners else None)


TestCluster = ClusterMachine.TestCase


def busy() -> tp.Cluster:
    cluster = tp.Cluster(TOPOLOGY)
    cluster.allocate("p", [3, 1])
    cluster.drain(5)
    cluster.hold([6], reason="for tests")
    return cluster


BAD_CHANGES: list[tuple[Any, str]] = [
    (lambda c: c.allocate("q", [0, 1]), r"gpus\[1\] = 1 is held by job 'p'"),
    (lambda c: c.allocate("q", [0, 5]), r"gpus\[1\] = 5 is drained"),
    (lambda c: c.allocate("q", [0, 6]), r"gpus\[1\] = 6 is held: for tests"),
    (lambda c: c.hold([0, 71]), "gpu = 71 is not in"),
    (lambda c: c.hold([0, "yy"]), "machine 'yy' is not in the topology"),
    (lambda c: c.hold("b"), "targets = 'b': must be several"),
    (lambda c: c.hold([0], reason=""), "reason = '' is not"),
    (lambda c: c.unhold([6, None]), "gpu = None is not"),
    (lambda c: c.allocate("q", [0, 2, 0]), r"gpus\[2\] = 0 is there twice"),
    (lambda c: c.allocate("q", [0, 70]), r"gpus\[1\] = 70 is not in 0\.\.69"),
    (lambda c: c.allocate("q", [-1]), r"gpus\[0\] = -1 is not in 0\.\.69"),
    (lambda c: c.allocate("q", [2**40]), r"gpus\[0\] = 1099511627776 is not in"),
    (lambda c: c.allocate("q", [True]), r"gpus\[0\] = True is not an integer"),
    (lambda c: c.allocate("q", [0.0]), r"gpus\[0\] = 0.0 is not an integer"),
    (lambda c: c.allocate("q", "0"), "gpus = '0' is not a sequence"),
    (lambda c: c.allocate("q", None), "gpus = None is not a sequence"),
    (lambda c: c.allocate("q", []), r"gpus = \(\) is empty"),
    (lambda c: c.allocate("p", [0]), r"job 'p' already holds GPUs \(3, 1\)"),
    (lambda c: c.allocate("", [0]), "job_id = '' is not"),
    (lambda c: c.allocate(7, [0]), "job_id = 7 is not"),
    (lambda c: c.allocate("\ud800", [0]), r"job_id = '\\ud800' is not valid"),
    (lambda c: c.release("q"), "job 'q' holds no GPUs"),
    (lambda c: c.release(None), "job_id = None is not"),
    (lambda c: c.drain(70), "gpu = 70 is not in"),
    (lambda c: c.drain(1.0), "gpu = 1.0 is not an integer"),
    (lambda c: c.undrain("zz"), "machine 'zz' is not in the topology"),
    (lambda c: c.owner(-1), "gpu = -1 is not in"),
]


@pytest.mark.parametrize(("change", "message"), BAD_CHANGES, ids=[message for _, message in BAD_CHANGES])
def test_refused_change_names_its_reason_and_changes_nothing(change: Any, message: str) -> None:
    cluster = busy()
    before = cluster.snapshot()
    with pytest.raises(tp.AllocationError, match=message):
        change(cluster)
    assert cluster.snapshot() == before


def test_takes_placements_in_task_order() -> None:
    cluster = tp.Cluster(tp.machines.get("dgx1-v100"))
    cluster.allocate("p", tp.Placement((5, 0), topology=cluster.topology))
    assert cluster.allocations == {"p": (5, 0)}
    with pytest.raises(TypeError):
        cluster.allocations["q"] = (1,)  # type: ignore[index]
    assert repr(cluster) == "Cluster('dgx1-v100', 6 of 8 GPUs free)"


@pytest.mark.parametrize("size", [1, 72, 512, 100_000])
def test_any_number_of_gpus(size: int) -> None:
    cluster = tp.Cluster(tp.Topology.from_links(size, []))
    assert cluster.free_gpus() == tuple(range(size))
    cluster.allocate("all", range(size))
    assert (cluster.num_free, cluster.owner(size - 1)) == (0, "all")
    assert tp.Cluster.restore(cluster.snapshot()).num_free == 0


def test_job_names_may_be_any_text() -> None:
    cluster = tp.Cluster(TOPOLOGY)
    cluster.allocate("ein Jöb\0\n🙂", [0])
    assert list(tp.Cluster.restore(cluster.snapshot()).allocations) == ["ein Jöb\0\n🙂"]
    assert cluster.owner(0) == "ein Jöb\0\n🙂"


def test_snapshot_carries_its_topology() -> None:
    cluster = busy()
    restored = tp.Cluster.restore(cluster.snapshot())
    assert restored.topology == TOPOLOGY
    assert pickle.loads(pickle.dumps(cluster)).snapshot() == cluster.snapshot()
    assert tp.Cluster.restore(bytearray(cluster.snapshot())).num_free == 66


SNAPSHOT = busy().snapshot()


@given(st.data())
def test_damaged_snapshot_is_refused(data: st.DataObject) -> None:
    damaged = bytearray(SNAPSHOT)
    place = data.draw(st.integers(0, len(SNAPSHOT) - 1))
    kind = data.draw(st.sampled_from(["flip", "cut", "insert"]))
    if kind == "flip":
        damaged[place] ^= data.draw(st.integers(1, 255))
    elif kind == "cut":
        del damaged[place:]
    else:
        damaged[place:place] = data.draw(st.binary(min_size=1))
    if damaged != SNAPSHOT:
        with pytest.raises(tp.SnapshotError):
            tp.Cluster.restore(bytes(damaged))


@given(st.binary())
def test_arbitrary_bytes_are_no_snapshot(data: bytes) -> None:
    for snapshot in (data, b"topoplace-cluster 2 " + data):
        with pytest.raises(tp.SnapshotError, match="snapshot: "):
            tp.Cluster.restore(snapshot)


def test_snapshot_of_another_topology_is_refused() -> None:
    other = tp.Cluster(tp.machines.get("summit")).snapshot()
    mixed = SNAPSHOT.split(b"\n", 2)[:2] + other.split(b"\n", 2)[2:]
    with pytest.raises(tp.SnapshotError, match="it is of 6 GPUs, not 70"):
        tp.Cluster.restore(b"\n".join(mixed))
    with pytest.raises(tp.SnapshotError, match="the checksum of its topology and jobs is wrong"):
        tp.Cluster.restore(SNAPSHOT.replace(b"50.0", b"60.0"))
    with pytest.raises(tp.SnapshotError, match="snapshot = 'text' is not bytes"):
        tp.Cluster.restore("text")  # type: ignore[arg-type]


def test_a_transaction_costs_its_changes_not_the_cluster() -> None:
    cluster = tp.Cluster(tp.Topology.from_links(100_000, []))
    for i in range(1000):
        with contextlib.suppress(ValueError), cluster.transaction():
            cluster.allocate(f"job-{i}", random.Random(i).sample(range(100_000), 4))
            raise ValueError
    assert cluster.num_free == 100_000


def test_snapshot_carries_the_jobs_that_were_told() -> None:
    cluster = tp.Cluster(tp.machines.get("minsky"))
    job = tp.JobGraph.ring(2).with_(profile="net/1")
    cluster.allocate("told", tp.Placement((0, 1), topology=cluster.topology, job=job))
    cluster.allocate("untold", [2])
    cluster.allocate("given", [3], tp.JobGraph.independent(1))
    for other in (cluster.copy(), tp.Cluster.restore(cluster.snapshot())):
        assert dict(other.jobs) == {"told": job, "given": tp.JobGraph.independent(1)}
    cluster.release("told")
    assert "told" not in cluster.jobs
    with pytest.raises(tp.AllocationError, match="job = 'x' is not"):
        cluster.allocate("bad", [0], "x")
    assert cluster.owner(0) is None


def test_a_trial_leaves_no_trace() -> None:
    cluster = tp.Cluster(tp.machines.get("minsky"))
    job = tp.JobGraph.ring(2)
    cluster.allocate("a", [0, 1], job)
    before = cluster.snapshot()
    with cluster.what_if() as state:
        state.release("a")
        state.allocate("a", [2])
        with state.transaction():
            state.allocate("b", [0], tp.JobGraph.independent(1))
        state.drain(3)
        assert dict(state.jobs) == {"b": tp.JobGraph.independent(1)}
    assert cluster.snapshot() == before
    with contextlib.suppress(KeyError), cluster.transaction():
        cluster.release("a")
        raise KeyError
    assert dict(cluster.jobs) == {"a": job}


def test_occupants_of_some_gpus() -> None:
    cluster = busy()
    assert cluster.occupants([0, 1, 3, 5]) == ((0,), {"p": (1, 3)})
    with pytest.raises(tp.AllocationError, match=r"gpus\[0\] = 70 is not in"):
        cluster.occupants([70])


def test_what_cannot_build_a_view_is_refused() -> None:
    cluster = tp.Cluster(tp.machines.get("minsky"))
    with pytest.raises(tp.AllocationError, match="build = 3 is not a function"):
        cluster.view(3)  # type: ignore[arg-type]


def test_notes_of_jobs_print_as_a_dict() -> None:
    cluster = tp.Cluster(tp.machines.get("minsky"))
    ring = tp.JobGraph.ring(2)
    cluster.allocate("a", [0, 1], ring)
    cluster.allocate("b", [2])
    assert repr(cluster.jobs) == repr({"a": ring})


def test_the_native_state_lists_what_changed() -> None:
    cluster = tp.Cluster(TOPOLOGY)
    state, start = cluster.native, cluster.native.num_changes
    cluster.allocate("a", [0, 1])
    cluster.drain(5)
    middle = state.num_changes
    cluster.release("a")
    with cluster.what_if():
        cluster.allocate("b", [2])
    assert state.changed_since(start) == (0, 1, 5, 0, 1, 2, 2)
    assert state.changed_since(middle) == (0, 1, 2, 2)
    assert state.changed_since(state.num_changes) == ()
    with pytest.raises(IndexError, match="position = 999"):
        state.changed_since(999)
    while state.changed_since(start) is not None:
        cluster.drain(3)
        cluster.undrain(3)
    assert state.changed_since(state.num_changes - 1) == (3,)


def test_a_placement_may_be_on_an_equal_topology_and_on_no_other() -> None:
    machine = tp.machines.get("minsky")
    cluster = tp.Cluster(machine)
    equal, other = pickle.loads(pickle.dumps(machine)), tp.machines.get("summit")
    assert equal is not machine
    cluster.allocate("a", tp.Placement((0,), topology=equal))
    cluster.allocate("b", tp.Placement((1,), topology=machine))
    with pytest.raises(
        tp.AllocationError, match="the placement is on 'summit', not on the cluster's 'minsky'"
    ):
        cluster.allocate("c", tp.Placement((2,), topology=other))
    assert cluster.allocations == {"a": (0,), "b": (1,)}


@pytest.mark.parametrize("classes", [True, False])
def test_copies_look_at_machines_as_the_cluster_does_and_restored_ones_by_class(classes: bool) -> None:
    cluster = tp.Cluster(tp.machines.get("minsky"), classes=classes)
    assert cluster.classes == cluster.copy().classes == classes
    assert tp.Cluster.restore(cluster.snapshot()).classes
    assert tp.Cluster(cluster.topology).classes


def test_occupants_of_gpus_that_are_there_and_of_others() -> None:
    cluster = tp.Cluster(tp.Topology.from_links(3, []))
    cluster.allocate("a", [0])
    assert cluster.occupants([0, 1, 2]) == ((1, 2), {"a": (0,)})
    for wrong in (-1, 3, "x"):
        with pytest.raises(tp.AllocationError, match=r"gpus\[1\] = "):
            cluster.occupants([0, wrong])  # type: ignore[list-item]
