"""Every answer of a cluster about one small example, and every reason for which it refuses a change."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import topoplace as tp
from topoplace.mig import MigSlice

MACHINE = tp.Topology.from_links(3, [(0, 1, 50.0)], 12.0, model="A100", memory_gb=40.0)
TOPOLOGY = tp.Topology.cluster({"m0": MACHINE, "m1": MACHINE}, name="pair")
ONE, PAIR = tp.JobGraph.independent(1), tp.JobGraph.ring(2)
SLICE = ONE.with_(mig="1g.5gb")


def example() -> tp.Cluster:
    """Return a cluster with a slice, shares, whole GPUs, a job without GPUs, and a drained GPU."""
    cluster = tp.Cluster(TOPOLOGY, tp.HostResources(8, 32.0, drives=1))
    cluster.slice_gpu(0, ("3g.20gb", "1g.5gb"))
    cluster.allocate("slice", [0], SLICE)
    cluster.allocate("half", [1], ONE.with_(gpu_fraction=0.5))
    cluster.allocate("quarter", [1], ONE.with_(gpu_fraction=0.25))
    held = (tp.HostShare(1, 2.5, 4.0),)
    cluster.allocate("whole", tp.Placement((4, 3), topology=TOPOLOGY, job=PAIR, hosts=held, drives=(0,)))
    cpus = tp.JobGraph.without_gpus(cpus=3)
    cluster.allocate("cpus", tp.Placement((), topology=TOPOLOGY, job=cpus, hosts=(tp.HostShare(0, 3, 0.0),)))
    cluster.drain(5)
    return cluster


def test_what_a_cluster_says() -> None:
    cluster = example()
    assert (cluster.free_gpus(), cluster.num_free, cluster.drained_gpus()) == ((2,), 1, (5,))
    assert [cluster.owner(gpu) for gpu in range(6)] == [None, None, None, "whole", "whole", None]
    assert dict(cluster.shares_of(1)) == {"half": 0.5, "quarter": 0.25}
    assert dict(cluster.shares_of(4)) == {"whole": 1.0}
    assert [cluster.share_left(gpu) for gpu in range(6)] == [0.0, 0.25, 1.0, 0.0, 0.0, 0.0]
    assert [cluster.gpus_with(share) for share in (0.001, 0.25, 0.251, 1.0)] == [(1, 2), (1, 2), (2,), (2,)]
    assert list(cluster.slices(0).items()) == [
        (MigSlice("3g.20gb", 0), None),
        (MigSlice("1g.5gb", 4), "slice"),
    ]
    assert (dict(cluster.slices(2)), cluster.sliced_gpus) == ({}, (0,))
    assert list(cluster.allocations.items()) == [
        *[("slice", (0,)), ("half", (1,)), ("quarter", (1,)), ("whole", (4, 3))],
    ]
    assert set(cluster.jobs) == {"slice", "half", "quarter", "whole", "cpus"}
    assert cluster.jobs["whole"] == PAIR
    assert [cluster.runs(name) for name in ("whole", "cpus", "slice", "none")] == [True, True, True, False]
    assert [cluster.gpus_of(name) for name in ("whole", "cpus", "none")] == [(4, 3), (), ()]
    thousandths = [cluster.gpu_thousandths_of(name) for name in ("whole", "half", "slice", "none")]
    assert thousandths == [1000, 500, 125, 1000]
    assert cluster.occupants([5, 4, 2, 1]) == ((2,), {"half": (1,), "quarter": (1,), "whole": (4,)})
    assert repr(cluster) == "Cluster('pair', 1 of 6 GPUs free)"


def test_what_a_cluster_says_of_its_hosts() -> None:
    hosts = example().hosts
    assert [hosts.left(machine) for machine in (0, 1)] == [
        tp.HostResources(5, 32.0, drives=0),
        tp.HostResources(5.5, 28.0, drives=1),
    ]
    assert hosts.capacity.tolist() == [[8000, 32000, 1]] * 2
    assert hosts.free.tolist() == [[5000, 32000, 0], [5500, 28000, 1]]
    assert set(hosts.held) == {"whole", "cpus"}
    assert hosts.held["whole"].drives == (0,)
    assert (hosts.drained, hosts.is_drained(1)) == (frozenset(), False)
    assert hosts.pool_of().tolist() == [0, 1]


def test_copies_say_the_same_and_change_alone() -> None:
    cluster = example()
    cluster.drain("m1")
    for other in (
        cluster.copy(),
        tp.Cluster.restore(cluster.snapshot()),
        pickle.loads(pickle.dumps(cluster)),
    ):
        assert other.snapshot() == cluster.snapshot()
        assert other.hosts.drained == frozenset({1})
        other.undrain("m1")
        other.release("whole")
        assert (cluster.gpus_of("whole"), cluster.drained_gpus()) == ((4, 3), (3, 4, 5))
        assert other.free_gpus() == (2, 3, 4, 5)


def _release_twice(cluster: tp.Cluster) -> None:
    for _ in range(2):
        cluster.release("whole")


def test_a_block_keeps_its_changes_unless_an_exception_leaves_it_or_it_only_asks() -> None:
    cluster = example()
    before = cluster.snapshot()
    with cluster.what_if() as state:
        state.release("whole")
        assert cluster.num_free == 3
    assert cluster.snapshot() == before
    with pytest.raises(tp.AllocationError), cluster.transaction():
        _release_twice(cluster)
    assert cluster.snapshot() == before
    with cluster.transaction():
        cluster.release("whole")
    assert cluster.num_free == 3


NOT_THERE = "and is not in placement.resliced"


@pytest.mark.parametrize(
    ("gpus", "job", "message"),
    [
        ([], None, "gpus = () is empty"),
        ([6], None, "gpus[0] = 6"),
        ([2, 2], None, "gpus[1] = 2 is there twice"),
        ([5], None, "gpus[0] = 5 is drained"),
        ([2, 3], None, "gpus[1] = 3 is held by job 'whole'"),
        ([1], None, "gpus[0] = 1 is held by jobs 'half', 'quarter'"),
        ([2], PAIR, "gpus = (2,): 1 for a job of 2 tasks"),
        ([2], "ring", "job = 'ring'"),
        (
            [1],
            ONE.with_(gpu_fraction=0.3),
            "gpus[0] = 1: 0.25 of it is left, gpu_fraction = 0.3 is asked for",
        ),
        ([2], SLICE, f"gpus[0] = 2 has no such idle MIG slice, {NOT_THERE}"),
        ([0], SLICE.with_(mig="1g.24gb"), "gpus[0] = 0 has no MIG profile '1g.24gb'"),
    ],
)
def test_why_gpus_cannot_be_had(gpus: list[int], job: Any, message: str) -> None:
    cluster = example()
    before = cluster.snapshot()
    with pytest.raises(tp.AllocationError) as refused:
        cluster.allocate("new", gpus, job)
    assert message in str(refused.value)
    assert cluster.snapshot() == before


def test_why_jobs_machines_and_gpus_are_not_known() -> None:
    cluster = example()
    changes: list[tuple[Any, str]] = [
        (lambda: cluster.allocate("whole", [2]), "job 'whole' already holds GPUs (4, 3)"),
        (lambda: cluster.allocate("cpus", [2]), "job 'cpus' already holds host resources"),
        (lambda: cluster.allocate("", [2]), "job_id = ''"),
        (lambda: cluster.allocate(3, [2]), "job_id = 3"),  # type: ignore[arg-type]
        (lambda: cluster.release("none"), "job 'none' holds no GPUs"),
        (lambda: cluster.drain("m2"), "machine 'm2' is not in the topology"),
        (lambda: cluster.undrain(-1), "gpu = -1"),
        (lambda: cluster.owner(6), "gpu = 6"),
        (lambda: cluster.slice_gpu(3, ("1g.5gb",)), "gpu = 3 is in use by 'whole'"),
        (lambda: cluster.gpus_with(0.0005), "gpu_fraction = 0.0005"),
        (lambda: cluster.gpus_with(1.001), "gpu_fraction = 1.001"),
    ]
    for change, message in changes:
        with pytest.raises(tp.AllocationError) as refused:
            change()
        assert message in str(refused.value)


def test_slices_are_cut_only_where_the_placement_names_the_gpu() -> None:
    cluster = example()
    pair = tp.JobGraph.independent(2).with_(mig="3g.20gb")

    def placed(*resliced: int) -> tp.Placement:
        slices = (MigSlice("3g.20gb", 0), MigSlice("3g.20gb", 4))
        return tp.Placement((0, 2), topology=TOPOLOGY, job=pair, slices=slices, resliced=resliced)

    for resliced in ((), (0,)):
        with pytest.raises(tp.AllocationError, match=r"gpus\[1\] = 2 has no such idle MIG slice"):
            cluster.allocate("new", placed(*resliced))
    cluster.allocate("new", placed(2))
    assert dict(cluster.slices(2)) == {MigSlice("3g.20gb", 4): "new"}
    assert cluster.slices(0)[MigSlice("3g.20gb", 0)] == "new"
    other = example()
    other.allocate("idle", [0], ONE.with_(mig="3g.20gb"))  # an idle slice is found without naming it
    assert other.slices(0)[MigSlice("3g.20gb", 0)] == "idle"
