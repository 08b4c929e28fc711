"""MIG slices in a cluster's state, against a model of dicts with a table of NVIDIA's placements written by hand."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule
from tests.support.cluster_machine import ClusterModel

import topoplace as tp
from topoplace.mig import MigSlice, profiles_of, profiles_of_gpu

GPUS = 3
JOBS = ("p", "q", "r", "s")
# (slots of a slice, first slots) of each profile; nvidia-smi mig -lgipp on an A100 of 40 GB and an A30
A100 = {
    "1g.5gb": (1, (0, 1, 2, 3, 4, 5, 6)),
    "1g.5gb+me": (1, (0, 1, 2, 3, 4, 5, 6)),
    "1g.10gb": (2, (0, 2, 4, 6)),
    "2g.10gb": (2, (0, 2, 4)),
    "3g.20gb": (4, (0, 4)),
    "4g.20gb": (4, (0,)),
    "7g.40gb": (8, (0,)),
}
A30 = {
    "1g.6gb": (1, (0, 1, 2, 3)),
    "1g.6gb+me": (1, (0, 1, 2, 3)),
    "2g.12gb": (2, (0, 2)),
    "2g.12gb+me": (2, (0, 2)),
    "4g.24gb": (4, (0,)),
}
TABLES = (A100, A100, A30)
PROFILES = tuple({**A100, **A30})
OPERATIONS = int(os.environ.get("TOPOPLACE_MIG_OPERATIONS", "5000"))


def topology() -> tp.Topology:
    """Return one machine of two A100 and an A30."""
    machine = tp.Topology.from_links(GPUS, [], 12.0)
    models = [("A100", 40.0), ("A100", 40.0), ("A30", 24.0)]
    gpus = [replace(gpu, model=m, memory_gb=gb) for gpu, (m, gb) in zip(machine.gpus, models, strict=True)]
    return replace(machine, gpus=tuple(gpus))


TOPOLOGY = topology()


def slots_of(gpu: int, profile: str, start: int) -> set[str]:
    """Return the names of what a slice takes of a GPU."""
    size, _ = TABLES[gpu][profile]
    media = {"media engines"} if profile.endswith("+me") else set()
    return {f"slot {start + i}" for i in range(size)} | media


class MigMachine(ClusterModel):
    """Slices, shares and whole GPUs under changes, transactions, copies and snapshots.

    `held` has what each job holds, and under ("slices", gpu) the slices into which a GPU is cut.
    """

    @initialize()
    def start(self) -> None:
        self.begin_with(tp.Cluster(TOPOLOGY))

    # ---- the model -----------------------------------------------------------------------------------------

    def slices(self, gpu: int) -> tuple[MigSlice, ...]:
        slices: tuple[MigSlice, ...] = self.held.get(("slices", gpu), ())
        return slices

    def holders(self, gpu: int) -> dict[MigSlice, str]:
        jobs = ((job, self.held[job]) for job in JOBS if job in self.held)
        return {one[2]: job for job, one in jobs if one[0] == gpu and isinstance(one[2], MigSlice)}

    def shares(self, gpu: int) -> dict[str, int]:
        jobs = ((job, self.held[job]) for job in JOBS if job in self.held)
        return {job: one[1] for job, one in jobs if one[0] == gpu and one[2] is None}

    def left(self, gpu: int) -> int:
        whole = gpu not in self.drained and not self.slices(gpu)
        return 1000 - sum(self.shares(gpu).values()) if whole else 0

    def in_the_way(self, gpu: int, new: MigSlice) -> set[MigSlice]:
        wanted = slots_of(gpu, *new)
        return {one for one in self.slices(gpu) if slots_of(gpu, *one) & wanted}

    # ---- changes -------------------------------------------------------------------------------------------

    def attempt(self, possible: bool, change: Any) -> bool:
        before = self.cluster.snapshot()
        if possible:
            change()
            return True
        with pytest.raises(tp.AllocationError):
            change()
        assert self.cluster.snapshot() == before
        return False

    @rule(
        gpu=st.integers(0, GPUS - 1),
        wanted=st.lists(st.tuples(st.sampled_from(PROFILES), st.integers(0, 7)), max_size=4),
    )
    def slice_gpu(self, gpu: int, wanted: Sequence[tuple[str, int]]) -> None:
        new = [MigSlice(*one) for one in wanted]
        legal = all(one.profile in TABLES[gpu] and one.start in TABLES[gpu][one.profile][1] for one in new)
        taken = [name for one in new if legal for name in slots_of(gpu, *one)]
        disjoint = len(taken) == len(set(taken))
        keeps = set(self.holders(gpu)) <= set(new)
        possible = legal and disjoint and keeps and not self.shares(gpu)
        if self.attempt(possible, lambda: self.cluster.slice_gpu(gpu, new)):
            self.held[("slices", gpu)] = tuple(new)

    @rule(
        job=st.sampled_from(JOBS),
        gpu=st.integers(0, GPUS - 1),
        profile=st.sampled_from(PROFILES),
        start=st.integers(0, 7),
        reslices=st.booleans(),
    )
    def allocate_slice(self, job: str, gpu: int, profile: str, start: int, reslices: bool) -> None:
        new, graph = MigSlice(profile, start), tp.JobGraph.independent(1).with_(mig=profile)
        resliced = (gpu,) if reslices else ()
        legal = profile in TABLES[gpu] and start in TABLES[gpu][profile][1]
        held = self.holders(gpu)
        possible = (
            legal
            and job not in self.held
            and gpu not in self.drained
            and not self.shares(gpu)
            and not self.in_the_way(gpu, new) & set(held)
            and (reslices or new in self.slices(gpu))
        )

        def change() -> None:
            placement = tp.Placement((gpu,), topology=TOPOLOGY, job=graph, slices=(new,), resliced=resliced)
            self.cluster.allocate(job, placement)

        if self.attempt(possible, change):
            if new not in self.slices(gpu):
                kept = [one for one in self.slices(gpu) if one not in self.in_the_way(gpu, new)]
                self.held[("slices", gpu)] = (*kept, new)
            self.held[job] = gpu, 0, new

    @rule(
        job=st.sampled_from(JOBS),
        gpu=st.integers(0, GPUS - 1),
        share=st.sampled_from([1, 250, 500, 999, 1000]),
        reslices=st.booleans(),
    )
    def allocate_share(self, job: str, gpu: int, share: int, reslices: bool) -> None:
        graph = tp.JobGraph.independent(1).with_(gpu_fraction=share / 1000)
        resliced = (gpu,) if reslices else ()
        idle = reslices and bool(self.slices(gpu)) and not self.holders(gpu) and gpu not in self.drained
        possible = job not in self.held and (self.left(gpu) >= share or idle)
        placement = tp.Placement((gpu,), topology=TOPOLOGY, job=graph, resliced=resliced)
        if self.attempt(possible, lambda: self.cluster.allocate(job, placement)):
            self.held.pop(("slices", gpu), None)
            self.held[job] = gpu, share, None

    @rule(gpu=st.integers(0, GPUS - 1), drained=st.booleans())
    def drain(self, gpu: int, drained: bool) -> None:
        (self.cluster.drain if drained else self.cluster.undrain)(gpu)
        (self.drained.add if drained else self.drained.discard)(gpu)

    @invariant()
    def agrees(self) -> None:
        for gpu in range(GPUS):
            holders, shares = self.holders(gpu), self.shares(gpu)
            expected = {one: holders.get(one) for one in self.slices(gpu)}
            assert dict(self.cluster.slices(gpu)) == expected
            assert [one.start for one in self.cluster.slices(gpu)] == sorted(one.start for one in expected)
            assert round(self.cluster.share_left(gpu) * 1000) == self.left(gpu)
            assert set(self.cluster.shares_of(gpu)) == {*holders.values(), *shares}
            assert self.cluster.occupants([gpu])[1] == dict.fromkeys((*holders.values(), *shares), (gpu,))
        assert list(self.cluster.free_gpus()) == [gpu for gpu in range(GPUS) if self.left(gpu) == 1000]
        assert list(self.cluster.sliced_gpus) == [gpu for gpu in range(GPUS) if self.slices(gpu)]


TestMig = MigMachine.TestCase


def test_any_sequence_of_operations_agrees_with_the_model() -> None:
    """TOPOPLACE_MIG_OPERATIONS=1000000 runs a million of them."""
    rng, machine = random.Random(1), MigMachine()
    machine.start()
    for step in range(OPERATIONS):
        job, gpu = rng.choice(JOBS), rng.randrange(GPUS)
        profile = rng.choice(tuple(TABLES[gpu]) if rng.random() < 0.9 else PROFILES)
        match rng.randrange(10):
            case 0:
                wanted = [(rng.choice(tuple(TABLES[gpu])), rng.randrange(8)) for _ in range(rng.randrange(4))]
                machine.slice_gpu(gpu, wanted)
            case 1 | 2 | 3:
                machine.release(job)
            case 4:
                machine.drain(gpu, rng.random() < 0.3)
            case 5 | 6:
                machine.allocate_share(job, gpu, rng.choice([1, 250, 500, 1000]), rng.random() < 0.5)
            case 7 if machine.open and rng.random() < 0.5:
                machine.roll_back(KeyboardInterrupt)
            case 7 if len(machine.open) < 3:
                machine.begin()
            case 8 if machine.open:
                machine.commit()
            case _:
                start = rng.choice(TABLES[gpu].get(profile, (0, (0,)))[1])
                machine.allocate_slice(job, gpu, profile, start, rng.random() < 0.5)
        machine.agrees()
        if step % 100 == 0 and not machine.open:
            machine.replace(lambda cluster: tp.Cluster.restore(cluster.snapshot()))


# ---- profiles ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "memory_gb", "names"),
    [
        ("NVIDIA A100-SXM4-40GB", 40.0, "1g.5gb 1g.5gb+me 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb"),
        ("A100", 85.9, "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"),
        ("H100", 80.0, "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"),
        ("NVIDIA H100 NVL", 94.0, "1g.12gb 1g.12gb+me 1g.24gb 2g.24gb 3g.47gb 4g.47gb 7g.94gb"),
        ("H200", None, "1g.18gb 1g.18gb+me 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb"),
        ("B200", 180.0, "1g.23gb 1g.23gb+me 1g.45gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb"),
        ("A30", 24.0, "1g.6gb 1g.6gb+me 2g.12gb 2g.12gb+me 4g.24gb"),
        ("A100", None, ""),
        ("A100", 60.0, ""),
        ("V100", 32.0, ""),
        (None, 80.0, ""),
    ],
)
def test_the_profiles_of_a_model(model: str | None, memory_gb: float | None, names: str) -> None:
    assert list(profiles_of(model, memory_gb)) == names.split()


@pytest.mark.parametrize(("table", "model", "memory_gb"), [(A100, "A100", 40.0), (A30, "A30", 24.0)])
def test_placements_are_nvidias(table: dict[str, Any], model: str, memory_gb: float) -> None:
    for name, profile in profiles_of(model, memory_gb).items():
        size, starts = table[name]
        assert (profile.eighths // profile.slot_eighths, profile.starts) == (size, starts)
        assert profile.has_media == name.endswith("+me")
        assert profile.compute == int(name[0])


def test_the_most_slices_of_each_profile_are_nvidias() -> None:
    """The column "instances" of the user guide: 7, 1 with media engines, 4, 3, 2, 1 and 1."""
    most = {}
    for name in A100:
        cluster, count = tp.Cluster(TOPOLOGY), 0
        while count < 8:
            try:
                cluster.slice_gpu(0, [name] * (count + 1))
            except tp.AllocationError:
                break
            count += 1
        most[name] = count
    assert list(most.values()) == [7, 1, 4, 3, 2, 1, 1]


# ---- messages, launch, other topologies ----------------------------------------------------------------------


def sliced() -> tp.Cluster:
    cluster = tp.Cluster(TOPOLOGY)
    cluster.slice_gpu(0, ["3g.20gb", "2g.10gb", "1g.5gb"])
    cluster.allocate("first", [0], tp.JobGraph.independent(1).with_(mig="2g.10gb"))
    return cluster


def test_slices_without_a_start_are_packed_and_found() -> None:
    assert sliced().slices(0) == {("3g.20gb", 0): None, ("2g.10gb", 4): "first", ("1g.5gb", 6): None}
    assert sliced().shares_of(0) == {"first": 0.25}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.slice_gpu(0, ()), r"^gpu = 0 is in use by 'first'"),
        (
            lambda c: c.slice_gpu(0, ["1g.20gb"]),
            r"^slices\[0\] = '1g.20gb': the MIG profiles of this GPU are 1g.5gb, ",
        ),
        (
            lambda c: c.slice_gpu(1, ["3g.20gb"] * 3),
            r"^slices\[2\] = '3g.20gb' has no room next to the other slices",
        ),
        (
            lambda c: c.slice_gpu(1, [("3g.20gb", 1)]),
            r"^slices\[0\]: 3g.20gb may start in slots \(0, 4\), not 1$",
        ),
        (lambda c: c.slice_gpu(1, [3]), r"^slices\[0\] = 3 is not the name of a profile or a MigSlice$"),
        (lambda c: c.slice_gpu(7, ["3g.20gb"]), r"^gpu = 7"),
        (lambda c: c.slices(8), r"^gpu = 8"),
        (lambda c: c.allocate("b", [0]), r"^gpus\[0\] = 0 is held by job 'first'$"),
        (
            lambda c: c.allocate("b", [0], tp.JobGraph.independent(1).with_(mig="2g.10gb")),
            r"^gpus\[0\] = 0 has no such idle MIG slice, and is not in placement.resliced$",
        ),
        (
            lambda c: c.allocate("b", [2], tp.JobGraph.independent(1).with_(mig="2g.10gb")),
            r"^gpus\[0\] = 2 has no MIG profile '2g.10gb'$",
        ),
        (
            lambda c: tp.Placement((0,), topology=TOPOLOGY, slices=(("2g.10gb", 1),)),
            r"^slices\[0\]: 2g.10gb may start in slots \(0, 2, 4\), not 1$",
        ),
        (
            lambda c: tp.Placement((0, 1), topology=TOPOLOGY, slices=(("2g.10gb", 0),)),
            r"^slices has 1 items; it needs one for each GPU, 2$",
        ),
        (
            lambda c: tp.Placement((0,), topology=TOPOLOGY, resliced=(1,)),
            r"^resliced: GPU 1 is not among gpus",
        ),
        (
            lambda c: c.allocate("b", tp.Placement((1,), topology=TOPOLOGY, slices=(("2g.10gb", 0),))),
            r"^slices = .*: the job has no mig profile$",
        ),
    ],
)
def test_what_is_wrong_is_named_and_nothing_changes(change: Any, message: str) -> None:
    cluster = sliced()
    before = cluster.snapshot()
    with pytest.raises(tp.AllocationError, match=message):
        change(cluster)
    assert cluster.snapshot() == before


@pytest.mark.parametrize(
    ("requirements", "message"),
    [
        ({"mig": "2g10gb"}, r"^mig = '2g10gb' is not the name of a MIG profile, such as '1g.10gb'$"),
        (
            {"mig": "1g.5gb", "gpu_fraction": 0.5},
            r"^mig = '1g.5gb' and gpu_fraction = 0.5 exclude each other$",
        ),
    ],
)
def test_a_profile_is_a_name_and_excludes_shares(requirements: Any, message: str) -> None:
    with pytest.raises(tp.JobGraphError, match=message):
        tp.JobGraph.independent(1).with_(**requirements)


@pytest.mark.parametrize(("profile", "slices"), [("2g.10gb", (("2g.10gb", 0), ("2g.10gb", 0))), (None, ())])
def test_only_gpus_that_are_named_are_sliced_anew(profile: str | None, slices: Any) -> None:
    cluster = tp.Cluster(TOPOLOGY)
    cluster.slice_gpu(0, ["3g.20gb"])
    cluster.slice_gpu(1, ["3g.20gb"])
    job, before = tp.JobGraph.independent(2).with_(mig=profile), cluster.snapshot()
    one = tp.Placement((0, 1), topology=TOPOLOGY, job=job, slices=slices, resliced=(0,))
    with pytest.raises(tp.AllocationError, match=r"^gpus\[1\] = 1 .* is not in placement.resliced$"):
        cluster.allocate("job", one)
    assert cluster.snapshot() == before
    cluster.allocate("job", replace(one, resliced=(0, 1)))


def test_slices_move_with_their_machine() -> None:
    cluster = sliced()
    both = tp.Topology.cluster([TOPOLOGY, TOPOLOGY])
    start = tp.Cluster(tp.Topology.cluster([TOPOLOGY]))
    start.slice_gpu(0, tuple(cluster.slices(0)))
    start.allocate("first", [0], tp.JobGraph.independent(1).with_(mig="2g.10gb"))
    moved = start.with_topology(both)
    assert moved.slices(0) == cluster.slices(0)
    assert moved.sliced_gpus == (0,)


def test_the_environment_names_slices_by_the_uuids_that_are_given() -> None:
    job = tp.JobGraph.independent(2).with_(mig="1g.5gb")
    slices = (MigSlice("1g.5gb", 6), MigSlice("1g.5gb", 0))
    placement = tp.Placement((1, 0), topology=TOPOLOGY, job=job, slices=slices)
    with pytest.raises(
        tp.AllocationError, match=r"^devices: the UUID of the MIG slice \(1, 6\), its GPU and start, is"
    ):
        placement.env()
    found = placement.env(devices={(1, 6): "MIG-a", (0, 0): "MIG-b"})
    assert found["CUDA_VISIBLE_DEVICES"] == "MIG-a,MIG-b"


def test_a_snapshot_with_a_slice_that_no_gpu_has_is_refused() -> None:
    cluster = tp.Cluster(TOPOLOGY)
    cluster.native.set_slices(0, [(0b1, 5)])
    with pytest.raises(tp.SnapshotError, match=r"GPU 0 cannot have a slice of parts 0x1"):
        tp.Cluster.restore(cluster.snapshot())


def test_slices_with_a_start_come_first() -> None:
    cluster = tp.Cluster(TOPOLOGY)
    cluster.slice_gpu(0, ["1g.5gb", "2g.10gb", MigSlice("1g.5gb", 0)])
    assert sorted(cluster.slices(0)) == [
        MigSlice("1g.5gb", 0),
        MigSlice("1g.5gb", 1),
        MigSlice("2g.10gb", 2),
    ]


@pytest.mark.parametrize("order", list(itertools.permutations(("3g.20gb", "2g.10gb", "1g.5gb", "1g.5gb"))))
def test_slices_have_room_in_any_order(order: tuple[str, ...]) -> None:
    cluster = tp.Cluster(TOPOLOGY)
    cluster.slice_gpu(0, order)
    assert sorted(one.profile for one in cluster.slices(0)) == sorted(order)


@given(st.lists(st.sampled_from(["1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"]), max_size=8))
def test_slices_are_refused_only_where_no_layout_has_room(names: list[str]) -> None:
    profiles = profiles_of_gpu(TOPOLOGY.gpus[0])

    def has_room(left: list[str], taken: int) -> bool:
        if not left:
            return True
        one = profiles[left[0]]
        parts = (one.parts(start) for start in one.starts)
        return any(not part & taken and has_room(left[1:], taken | part) for part in parts)

    cluster = tp.Cluster(TOPOLOGY)
    if has_room(names, 0):
        cluster.slice_gpu(0, names)
        assert sorted(one.profile for one in cluster.slices(0)) == sorted(names)
    else:
        with pytest.raises(tp.AllocationError, match="has no room next to the other slices"):
            cluster.slice_gpu(0, names)
