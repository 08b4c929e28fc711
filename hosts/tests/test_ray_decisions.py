"""What is decided for a Ray cluster, without Ray: its gangs take GPUs, and what a job asks for is kept or refused."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import topoplace as tp


@pytest.fixture
def resources(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the module of Ray's resources, imported without Ray."""
    for name in ("ray", "ray.util", "ray.util.placement_group", "ray.util.scheduling_strategies"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr("topoplace.errors.require_package", lambda *_: None)
    for name in [name for name in sys.modules if name.startswith("topoplace_hosts.ray")]:
        monkeypatch.delitem(sys.modules, name)
    return import_module("topoplace_hosts.ray.resources")


def set_free(
    monkeypatch: pytest.MonkeyPatch, resources: Any, topology: tp.Topology, held: Sequence[int]
) -> dict[int, str]:
    """Let Ray say that these GPUs are held, and return the resource of each GPU."""
    names = {gpu: resources.resource_of(topology, gpu) for gpu in range(topology.num_gpus)}
    nodes = [
        {"NodeID": machine, "Alive": True, "Resources": {names[gpu]: 1.0 for gpu in gpus}}
        for machine, gpus in topology.gpus_of.items()
    ]
    free = {name: 1.0 for gpu, name in names.items() if gpu not in held}
    ray = SimpleNamespace(nodes=lambda: nodes, available_resources=lambda: free, is_initialized=lambda: False)
    monkeypatch.setattr(resources, "ray", ray)
    monkeypatch.setattr("topoplace_hosts.ray.gang.ray", ray)
    return names


def test_gangs_follow_each_other_on_a_machine_with_partitions(
    monkeypatch: pytest.MonkeyPatch, resources: Any
) -> None:
    """What Ray has given to several gangs is taken, although together it is no partition of the machine."""
    pairs = tuple((first, first + 1) for first in (0, 2, 4, 6))
    topology = replace(tp.machines.get("dgx1-v100"), partitions=pairs)
    held: list[int] = []
    for _ in range(4):
        names = set_free(monkeypatch, resources, topology, held)
        cluster = resources.cluster_now(topology, names, ())
        placement = tp.policies.get("fcfs").place(tp.JobGraph.ring(2), cluster)
        assert isinstance(placement, tp.Placement)
        assert placement.gpus in pairs
        held += placement.gpus
    assert len(set(held)) == 8


def test_groups_are_kept_together_or_refused_by_name(monkeypatch: pytest.MonkeyPatch, resources: Any) -> None:
    placer = import_module("topoplace_hosts.ray.placer")
    fabric = tp.Fabric(tuple("abcd"), (tp.Level("rack", ("r0", "r0", "r1", "r1")),))
    topology = tp.Topology.cluster(tp.machines.get("dgx1-v100"), fabric=fabric)
    names = set_free(monkeypatch, resources, topology, range(8))
    reserved: list[Sequence[Mapping[str, float]]] = []

    def reserve(bundles: Sequence[Mapping[str, float]]) -> Any:
        reserved.append(bundles)
        return SimpleNamespace(wait=lambda _: True)

    monkeypatch.setattr(placer, "placement_groups", SimpleNamespace(placement_group=reserve))
    job = tp.JobGraph.ring(12).grouped(6, within="rack").grouped(3, within="machine")
    gang = placer.RayPlacer(topology).place(job)
    machine_of = [topology.gpus[gpu].machine for gpu in gang.placement.gpus]
    assert all(len(set(machine_of[i : i + 3])) == 1 for i in range(0, 12, 3))
    assert all(len({name in "ab" for name in machine_of[i : i + 6]}) == 1 for i in (0, 6))
    assert reserved == [[{names[gpu]: 1.0} for gpu in gang.placement.gpus]]
    with pytest.raises(TimeoutError, match="1 of 2 groups of 12 fit within a rack"):
        placer.RayPlacer(topology).place(tp.JobGraph.ring(24).grouped(12, within="rack"), timeout=0)
    with pytest.raises(ValueError, match="groups cannot be honoured: drmaestro"):
        placer.RayPlacer(topology, "drmaestro").place(job)
