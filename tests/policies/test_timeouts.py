"""Decisions without time: the first answer, the requirements it keeps, and how much work it takes; no clock."""

from __future__ import annotations

from random import Random
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray

import topoplace as tp
from topoplace.deciding.least_time import LeastTime

SIZE = 240
GROUPED = {
    "sockets": tp.JobGraph.allreduce(SIZE).grouped(2, within="socket"),
    "preferred sockets": tp.JobGraph.ring(SIZE).grouped(3, prefer="socket"),
    "even shares": tp.JobGraph.ring(SIZE).grouped(3, within="machine").with_(balanced="rack"),
    "preferred machines": tp.JobGraph.ring(SIZE).grouped(7, prefer="machine"),
    "nested": tp.JobGraph.ring(SIZE).grouped(4, within="machine").grouped(16, within="rack"),
}


def irregular(name: str, machines: int, racks: int, busy: float) -> tp.Cluster:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get(name), machines, racks=racks))
    gpus = range(cluster.topology.num_gpus)
    cluster.allocate("busy", Random(1).sample(gpus, int(busy * len(gpus))))
    return cluster


def keeps_groups(placement: tp.Placement, job: tp.JobGraph, topology: tp.Topology) -> bool:
    domains: dict[str, NDArray[np.integer]] = {"machine": topology.machine_of, "socket": topology.socket_of}
    domains |= {level.name: level.codes[topology.machine_of] for level in topology.levels}
    gpus = np.array(placement.gpus)
    return all(
        len(np.unique(domains[group.within][gpus[list(group.tasks)]])) == 1
        for group in job.groups
        if group.within
    )


@pytest.mark.parametrize("job", GROUPED.values(), ids=list(GROUPED))
def test_without_time_the_first_division_is_kept(job: tp.JobGraph) -> None:
    cluster = irregular("dgx1-v100", 100, 25, 0.3)
    policy = LeastTime(timeout=1e-9)
    placement = policy.place(job, cluster)
    assert placement is not None
    assert keeps_groups(placement, job, cluster.topology)
    assert policy.has_room(job, cluster)


def test_without_time_room_on_a_machine_is_counted() -> None:
    cluster = irregular("cubemesh-16", 60, 4, 0.5)
    policy = LeastTime(timeout=1e-9)
    job = tp.JobGraph.allreduce(7).with_(single_machine=True)
    with patch.object(LeastTime, "options", autospec=True, side_effect=LeastTime.options) as options:
        assert policy.has_room(job, cluster)
    assert options.call_count <= 1
    assert not policy.has_room(tp.JobGraph.allreduce(16).with_(single_machine=True), cluster)


def test_without_time_a_first_mapping_is_enough() -> None:
    job, cluster = tp.JobGraph.ring(24), irregular("dgx1-v100", 40, 4, 0.5)
    first, best = LeastTime(timeout=1e-9).place(job, cluster), tp.place(job, cluster)
    assert first is not None
    assert best is not None
    assert (first.optimal, best.optimal) == (False, True)
    assert first.time > best.time
