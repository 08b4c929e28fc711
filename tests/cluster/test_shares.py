"""GPUs shared by jobs, against a model that adds up what each job holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule
from tests.support.cluster_machine import ClusterModel

import topoplace as tp

TOPOLOGY = tp.Topology.cluster(tp.Topology.from_links(2, [], 12.0), 2)
JOBS = st.sampled_from(["p", "q", "r", "s", "t", "u"])
GPUS = st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True)
FRACTIONS = st.sampled_from([0.001, 0.1, 0.25, 0.333, 0.5, 0.999, 1.0])


def sharing(size: int, fraction: float) -> tp.JobGraph:
    return tp.JobGraph.independent(size).with_(gpu_fraction=fraction)


class ShareMachine(ClusterModel):
    """Shares of GPUs in whole thousandths, under changes, transactions, copies and snapshots."""

    @initialize()
    def start(self) -> None:
        self.begin_with(tp.Cluster(TOPOLOGY))

    def taken(self, gpu: int) -> dict[str, int]:
        return {job: share for job, (gpus, share) in self.held.items() if gpu in gpus}

    def left(self, gpu: int) -> int:
        return 0 if gpu in self.drained else 1000 - sum(self.taken(gpu).values())

    @rule(job=JOBS, gpus=GPUS, fraction=FRACTIONS)
    def allocate(self, job: str, gpus: list[int], fraction: float) -> None:
        share = round(fraction * 1000)
        if job not in self.held and all(self.left(gpu) >= share for gpu in gpus):
            self.cluster.allocate(job, gpus, sharing(len(gpus), fraction))
            self.held[job] = gpus, share
        else:
            with pytest.raises(tp.AllocationError):
                self.cluster.allocate(job, gpus, sharing(len(gpus), fraction))

    @rule(gpu=st.integers(0, 3), drained=st.booleans())
    def drain(self, gpu: int, drained: bool) -> None:
        (self.cluster.drain if drained else self.cluster.undrain)(gpu)
        (self.drained.add if drained else self.drained.discard)(gpu)

    @invariant()
    def agrees(self) -> None:
        for gpu in range(4):
            taken = self.taken(gpu)
            shares = self.cluster.shares_of(gpu)
            assert {job: round(share * 1000) for job, share in shares.items()} == taken
            assert round(self.cluster.share_left(gpu) * 1000) == self.left(gpu)
            assert self.cluster.owner(gpu) == next(
                (job for job, share in taken.items() if share == 1000), None
            )
            assert self.cluster.occupants([gpu])[1] == dict.fromkeys(taken, (gpu,))
        free = [gpu for gpu in range(4) if self.left(gpu) == 1000]
        assert list(self.cluster.free_gpus()) == free
        assert self.cluster.num_free == len(free)
        for fraction in (0.25, 1.0):
            able = [gpu for gpu in range(4) if self.left(gpu) >= fraction * 1000]
            assert list(self.cluster.gpus_with(fraction)) == able


TestShares = ShareMachine.TestCase


@pytest.mark.parametrize(
    ("gpus", "fraction", "message"),
    [
        ([0], 0.4, r"gpus\[0\] = 0: 0.3 of it is left, gpu_fraction = 0.4 is asked for"),
        ([1, 0], 1.0, r"gpus\[1\] = 0 is held by jobs 'half', 'fifth'"),
        ([2, 3], 0.1, r"gpus\[0\] = 2 is held by job 'whole'"),
        ([1, 1], 0.1, r"gpus\[1\] = 1 is there twice"),
        ([3], 0.1, r"gpus\[0\] = 3 is drained"),
    ],
)
def test_what_is_short_is_named_and_nothing_is_taken(gpus: list[int], fraction: float, message: str) -> None:
    cluster = tp.Cluster(TOPOLOGY)
    cluster.allocate("half", [0], sharing(1, 0.5))
    cluster.allocate("fifth", [0], sharing(1, 0.2))
    cluster.allocate("whole", [2])
    cluster.drain(3)
    before = cluster.snapshot()
    with pytest.raises(tp.AllocationError, match=message):
        cluster.allocate("new", gpus, sharing(len(gpus), fraction))
    assert cluster.snapshot() == before


@pytest.mark.parametrize("fraction", [0.0, -0.1, 1.001, 0.0004, 0.12345, "0.5", float("nan")])
def test_a_share_is_in_thousandths(fraction: Any) -> None:
    with pytest.raises(tp.JobGraphError, match="gpu_fraction"):
        tp.JobGraph.ring(2).with_(gpu_fraction=fraction)
    with pytest.raises(tp.AllocationError, match="gpu_fraction"):
        tp.Cluster(TOPOLOGY).gpus_with(fraction)


def test_shares_move_with_their_machine() -> None:
    cluster = tp.Cluster(TOPOLOGY)
    cluster.allocate("half", [2], sharing(1, 0.5))
    wider = tp.Topology.cluster(tp.Topology.from_links(2, [], 12.0), 3)
    assert cluster.with_topology(wider).shares_of(2) == {"half": 0.5}


def test_a_job_that_holds_whole_gpus_keeps_them_whatever_its_graph_says() -> None:
    """As after a snapshot of a version in which jobs with a `gpu_fraction` held whole GPUs."""
    cluster = tp.Cluster(TOPOLOGY)
    cluster.native.allocate("old", [2], note=(sharing(1, 0.5), None))
    wider = tp.Topology.cluster(tp.Topology.from_links(2, [], 12.0), 3)
    assert cluster.with_topology(wider).shares_of(2) == {"old": 1.0}


def test_a_job_holds_the_same_thousandths_of_each_of_its_gpus() -> None:
    cluster = tp.Cluster(TOPOLOGY)
    cluster.allocate("other", [0], sharing(1, 0.2))
    cluster.allocate("third", [0, 1], sharing(2, 0.333))
    cluster.allocate("whole", [2])
    held = {job_id: cluster.gpu_thousandths_of(job_id) for job_id in ("other", "third", "whole", "gone")}
    assert held == {"other": 200, "third": 333, "whole": 1000, "gone": 1000}
