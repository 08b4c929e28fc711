from __future__ import annotations

import json
from pathlib import Path

import pytest

import topoplace as tp
from topoplace.topology.speed_overrides import speeds_of, with_link_speeds

PUBLISHED = ("summit", "dgx1-p100", "dgx1-v100", "torus2d-16", "cubemesh-16")


@pytest.mark.parametrize("name", PUBLISHED)
def test_machine_equals_its_published_links(name: str, shared: Path) -> None:
    published = json.loads((shared / "data/mapa/topologies.json").read_text("utf-8"))[name]
    machine = tp.machines.get(name)
    expected = {
        (u, v): lanes for u, v, lanes in published["edges"] + published.get("missing_in_artifact", [])
    }
    assert machine.num_gpus == published["num_gpus"]
    assert {(u, v): link.lanes for u, v, link in machine.links} == expected
    per_lane = {1: 20.0, 2: 25.0}[published["nvlink_generation"]]
    assert all(link.gb_per_s == per_lane * link.lanes for _, _, link in machine.links)


def test_minsky_is_two_sockets_of_two_with_dual_nvlink() -> None:
    minsky = tp.machines.get("minsky")
    assert minsky.bandwidth(0, 1) == minsky.bandwidth(2, 3) == 40.0
    assert minsky.link(0, 2).kind is tp.LinkKind.SYSTEM
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
        "dgx2": "2342e56dac8b1eba",
        "dgx-a100": "de48afe741313310",
        "dgx-h100": "17c810921d573126",
        "hgx-b200": "9afd2b47ccebd1c7",
        "gb200-nvl72": "dab83bd91ae78959",
        "p3.16xlarge": "e681fd943b3e5de9",
        "p4d.24xlarge": "0e6b5d96ce478d7d",
        "p5.48xlarge": "17006e0e83ca6f52",
        "mi250x": "fe34bce6620efac8",
        "mi300x": "fd517f0355d190b2",
        "l40s-8": "e63d8c9402dd4eed",
        "tpu-v4-64": "72f1ce930a01ddf8",
    }


@pytest.mark.parametrize(("typed", "hint"), [("dgx1-v10", "dgx1-v100"), ("xyz", "known: minsky")])
def test_unknown_name_lists_what_is_close(typed: str, hint: str) -> None:
    with pytest.raises(tp.TopologyError, match=f"name = '{typed}' is not a machine.*{hint}"):
        tp.machines.get(typed)


@pytest.mark.parametrize(
    ("name", "gb_per_s", "lanes"),
    [
        ("dgx2", 150, 6),
        ("dgx-a100", 300, 12),
        ("dgx-h100", 450, 18),
        ("hgx-b200", 900, 18),
        ("p4d.24xlarge", 300, 12),
    ],
)
def test_nvswitch_machines_are_all_to_all_at_the_speed_of_a_gpu(
    name: str, gb_per_s: float, lanes: int
) -> None:
    machine = tp.machines.get(name)
    pairs = [(u, v) for u in range(machine.num_gpus) for v in range(u)]
    assert {machine.link(u, v) for u, v in pairs} == {tp.Link(tp.LinkKind.NVSWITCH, lanes, gb_per_s)}
    assert speeds_of(machine) == "nominal"


def test_amd_machines_have_the_links_of_their_vendor() -> None:
    mi250x, mi300x = tp.machines.get("mi250x"), tp.machines.get("mi300x")
    links_of = [sum(link.lanes for u, v, link in mi250x.links if gpu in (u, v)) for gpu in range(8)]
    assert (mi250x.bandwidth(0, 1), mi250x.bandwidth(0, 6), mi250x.bandwidth(0, 2)) == (200.0, 100.0, 50.0)
    assert set(links_of) <= {6, 7, 8}
    assert len(mi300x.links) == 28
    assert {link.gb_per_s for _, _, link in mi300x.links} == {64.0}
    assert with_link_speeds(mi300x, "achievable").bandwidth(0, 7) == 48.0


def test_adapters_are_on_rails_beside_their_gpus() -> None:
    for name in ("dgx-a100", "dgx-h100", "dgx2", "p4d.24xlarge", "p5.48xlarge", "mi300x"):
        machine = tp.machines.get(name)
        shared = machine.num_gpus // len(machine.nics)
        assert [nic.rail for nic in machine.nics] == list(range(len(machine.nics)))
        for gpu in machine.gpus:
            nearest = [nic.rail for nic in machine.nics if nic.paths[gpu.index] == "PIX"]
            assert nearest == [gpu.index if gpu.rail is None else gpu.rail] == [gpu.index // shared]


@pytest.mark.parametrize(
    ("name", "adapters", "gb_per_s"),
    [
        ("dgx-h100", [50.0] * 8, 360.0),  # what its NVLinks carry
        ("p4d.24xlarge", [12.5] * 4, 50.0),
        ("p5.48xlarge", [50.0] * 8, 360.0),
        ("mi300x", [50.0] * 8, 320.0),  # what its xGMI links carry
        ("gb200-nvl72", [50.0] * 4, 200.0),
    ],
)
def test_two_machines_exchange_what_their_adapters_carry(
    name: str, adapters: list[float], gb_per_s: float
) -> None:
    machine = tp.machines.get(name).templates[0]
    assert [nic.gb_per_s for nic in machine.nics] == adapters
    pair = tp.Topology.cluster(machine, 2, network=adapters[0])
    assert tp.collective.ring_bandwidth(pair, range(pair.num_gpus)) == pytest.approx(gb_per_s)


@pytest.mark.parametrize(
    ("shape", "wrap", "degrees"),
    [
        ((4, 4, 4), True, {6}),
        ((4, 4, 4), False, {3, 4, 5, 6}),
        ((2, 2), True, {2}),
        ((8,), True, {2}),
        ((3, 1, 2), True, {3}),
        ((1,), True, {0}),
    ],
)
def test_a_torus_has_a_ring_in_every_dimension(shape: tuple[int, ...], wrap: bool, degrees: set[int]) -> None:
    slice_ = tp.machines.torus(shape, wrap=wrap, host=(1, 1, 1))
    links = [(u, v) for u, v, _ in slice_.links]
    assert {sum(chip in pair for pair in links) for chip in range(slice_.num_gpus)} == degrees


def test_hosts_of_a_torus_are_blocks_of_chips() -> None:
    cube = tp.machines.get("tpu-v4-64")
    assert cube.num_machines == 16
    assert {len(gpus) for gpus in cube.gpus_of.values()} == {4}
    assert [gpu.machine for gpu in cube.gpus if gpu.machine == cube.gpus[0].machine] == ["host0"] * 4
    assert cube.gpus_of["host0"] == (0, 4, 16, 20)
    assert [cube.gpus[gpu].name for gpu in cube.gpus_of["host0"]] == ["chip0", "chip1", "chip2", "chip3"]


@pytest.mark.parametrize("shape", [(), (0,), (2, 2, 2, 2), (1 << 20,), "444", (True,)])
def test_a_torus_of_no_shape_is_refused(shape: object) -> None:
    with pytest.raises(tp.TopologyError, match="shape"):
        tp.machines.torus(shape)  # type: ignore[arg-type]
