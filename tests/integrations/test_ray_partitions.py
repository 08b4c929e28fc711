"""What Ray has given to several gangs is taken, although together it is no partition of the machine; without Ray."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import pytest

import topoplace as tp


def test_gangs_follow_each_other_on_a_machine_with_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ray", "ray.util", "ray.util.placement_group", "ray.util.scheduling_strategies"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr("topoplace.errors.require_package", lambda *_: None)
    for name in [name for name in sys.modules if name.startswith("topoplace.integrations.ray")]:
        monkeypatch.delitem(sys.modules, name)
    from topoplace.integrations.ray import resources

    pairs = tuple((first, first + 1) for first in (0, 2, 4, 6))
    topology = replace(tp.machines.get("dgx1-v100"), partitions=pairs)
    names = {gpu: resources.resource_of(topology, gpu) for gpu in range(8)}
    node = {"NodeID": "a", "Alive": True, "Resources": dict.fromkeys(names.values(), 1.0)}
    held: list[int] = []
    for _ in range(4):
        free = {name: 1.0 for gpu, name in names.items() if gpu not in held}
        monkeypatch.setattr(
            resources,
            "ray",
            SimpleNamespace(nodes=lambda: [node], available_resources=lambda free=free: free),
        )
        cluster = resources.cluster_now(topology, names, ())
        placement = tp.policies.get("fcfs").place(tp.JobGraph.ring(2), cluster)
        assert isinstance(placement, tp.Placement)
        assert placement.gpus in pairs
        held += placement.gpus
    assert len(set(held)) == 8
