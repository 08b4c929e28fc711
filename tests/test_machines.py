from __future__ import annotations

import json
from pathlib import Path

import pytest

import topoplace as tp


@pytest.mark.parametrize("name", [name for name in tp.machines.names() if name != "minsky"])
def test_machine_equals_its_published_links(name: str, shared: Path) -> None:
    published = json.loads((shared / "data/mapa/topologies.json").read_text())[name]
    machine = tp.machines.get(name)
    expected = {
        (u, v): lanes for u, v, lanes in published["edges"] + published.get("missing_in_artifact", [])
    }
    assert machine.num_gpus == published["num_gpus"]
    assert {(u, v): link.lanes for u, v, link in machine.links} == expected
    per_lane = {1: 20.0, 2: 25.0}[published["nvlink_generation"]]
    assert all(link.gbps == per_lane * link.lanes for _, _, link in machine.links)


def test_minsky_is_two_sockets_of_two_with_dual_nvlink() -> None:
    minsky = tp.machines.get("minsky")
    assert minsky.bandwidth(0, 1) == minsky.bandwidth(2, 3) == 40.0
    assert minsky.link_kind(0, 2) == tp.LinkKind.SYSTEM
    assert (minsky.distance(0, 1), minsky.distance(1, 2)) == (1.0, 20.0)


def test_example_of_the_mapa_paper() -> None:
    dgx = tp.machines.get("dgx1-v100")
    assert sum(dgx.bandwidth(u, v) for u, v in [(0, 1), (0, 4), (1, 4)]) == 87.0
    assert sum(dgx.bandwidth(u, v) for u, v in [(0, 2), (0, 3), (2, 3)]) == 125.0


@pytest.mark.parametrize(
    ("name", "groups"), [("summit", 2), ("dgx1-v100", 2), ("torus2d-16", 4), ("cubemesh-16", 4)]
)
def test_sockets_are_runs_of_equal_length(name: str, groups: int) -> None:
    machine = tp.machines.get(name)
    size = machine.num_gpus // groups
    assert [gpu.socket for gpu in machine.gpus] == [i // size for i in range(machine.num_gpus)]


def test_digests_never_change() -> None:
    digests = {name: tp.machines.get(name).digest()[:16] for name in tp.machines.names()}
    assert digests == {
        "minsky": "a198e59ee36e2532",
        "summit": "e6913b49db4b3f88",
        "dgx1-p100": "b6d311adc5080424",
        "dgx1-v100": "62aef0d6e57d8dc9",
        "torus2d-16": "9d39b18f2246c402",
        "cubemesh-16": "eedac79cd09b957a",
    }


@pytest.mark.parametrize(("typed", "hint"), [("dgx1-v10", "dgx1-v100"), ("xyz", "known: minsky")])
def test_unknown_name_lists_what_is_close(typed: str, hint: str) -> None:
    with pytest.raises(tp.TopologyError, match=f"name = '{typed}' is not a machine.*{hint}"):
        tp.machines.get(typed)
