"""Bounds and proofs where NVSwitches reduce, which is faster than the rings that the library plans."""

from __future__ import annotations

import pytest

import topoplace as tp

H100, L40S = tp.machines.get("dgx-h100"), tp.machines.get("l40s-8")


@pytest.mark.parametrize("size", range(2, 9))
def test_one_machine(size: int) -> None:
    placement = tp.place(tp.JobGraph.allreduce(size), tp.Cluster(H100))
    assert placement is not None
    assert placement.scores["communication_time"] == placement.time
    assert placement.optimal
    assert placement.bound is not None
    assert placement.bound == pytest.approx(placement.time, rel=1e-8)
    assert placement.bound <= placement.time


@pytest.mark.parametrize("machines", [[H100] * 4, [H100, H100, L40S, L40S]], ids=["alike", "mixed"])
def test_groups_in_machines_of_a_cluster(machines: list[tp.Topology]) -> None:
    """Tensor groups of 8 take 100 x 1.75 / 476 s in the machines whose switches reduce; no ring there is as fast."""
    cluster = tp.Cluster(tp.Topology.cluster(machines, fabric=tp.Fabric.regular(4, {"leaf": 4})))
    job = tp.JobGraph.parallel(tensor=8, data=2, traffic=tp.Traffic(tensor=100, data=1))
    placement = tp.place(job.grouped("tensor", within="machine"), cluster)
    assert placement is not None
    assert placement.times["tensor"] == pytest.approx(100 * 1.75 / 476)
    assert placement.optimal
    assert placement.bound == pytest.approx(placement.time, rel=1e-8)
    assert placement.bound <= placement.time
