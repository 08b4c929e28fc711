"""Machines of many GPUs: their tables come from whole matrices, and are refused above a limit."""

from __future__ import annotations

import numpy as np
import pytest

import topoplace as tp
from topoplace.engine.machines import machine_class
from topoplace.engine.machines.machine_class import MachineClasses

MACHINE_WISE = ("fcfs", "best-fit", "topo-aware", "topo-aware-p")


def machines_of_six() -> tp.Topology:
    links = [(0, 2, 50.0), (2, 4, 25.0), (1, 3, 50.0), (5, 3, 25.0), (6, 7, 25.0), (8, 9, 7.5), (11, 9, 3.5)]
    return tp.Topology.from_links(
        12, links, machines=["a", "b"] * 3 + ["a"] * 3 + ["b"] * 3, sockets=[0, 0, 1, 1] * 3
    )


@pytest.mark.parametrize("topology", [machines_of_six(), tp.machines.get("dgx1-v100")])
def test_tables_of_large_machines_are_those_of_small_ones(
    topology: tp.Topology, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair_by_pair = MachineClasses(topology)
    monkeypatch.setattr(machine_class, "_MAX_PAIRED_GPUS", 0)
    at_once = MachineClasses(topology)
    assert pair_by_pair.class_of == at_once.class_of
    for small, large in zip(pair_by_pair.classes, at_once.classes, strict=True):
        assert small.gpus == large.gpus
        assert np.array_equal(small.distance, large.distance)
        assert small.bandwidth == large.bandwidth
        assert small.classes == large.classes


@pytest.mark.parametrize("name", MACHINE_WISE)
def test_a_large_machine_is_not_asked_pair_by_pair(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    link = tp.Topology.link

    def noted(topology: tp.Topology, u: int, v: int) -> object:
        asked.append((u, v))
        return link(topology, u, v)

    monkeypatch.setattr(tp.Topology, "link", noted)
    cluster = tp.Cluster(tp.Topology.from_links(600, [(gpu, gpu + 1, 50.0) for gpu in range(599)]))
    placement = tp.policies.get(name).place(tp.JobGraph.chain(4), cluster)
    assert placement is not None
    assert len(asked) < 100
    assert {type(score) for score in placement.scores.values()} == {float}


@pytest.mark.parametrize("name", MACHINE_WISE)
def test_a_machine_of_too_many_gpus_is_refused(name: str) -> None:
    cluster = tp.Cluster(tp.Topology.from_links(4097, []))
    with pytest.raises(ValueError, match=r"'machine0' has 4097 GPUs.*at most 4096"):
        tp.policies.get(name).place(tp.JobGraph.ring(4), cluster)
