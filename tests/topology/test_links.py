from __future__ import annotations

import pickle

import numpy as np
import pytest

import topoplace as tp
from topoplace import DistanceWeights, Link, LinkKind, Topology, TopologyError, links
from topoplace.topology.speed_overrides import speeds_of, with_link_speeds

DGX1 = tp.machines.get("dgx1-v100")


def test_table_has_the_published_figures() -> None:
    table = {
        name: (speed.nominal_gb_per_s, speed.achievable_gb_per_s, speed.most_links)
        for name, speed in links.SPEEDS.items()
    }
    assert table["nvlink1"] == (20.0, 18.0, 4)
    assert table["nvlink3-bridge"] == (14.0625, 12.0, 4)
    assert table["nvlink5"] == (50.0, 40.1, 18)
    assert table["pcie4"] == (31.5, 24.0, 1)
    assert table["socket-power9"] == (None, 32.0, 1)
    assert table["infiniband-ndr"] == (50.0, None, 1)
    for speed in links.SPEEDS.values():
        assert speed.gb_per_s > 0
        assert (speed.achievable_gb_per_s or 0) <= (speed.nominal_gb_per_s or speed.achievable_gb_per_s or 0)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("NVIDIA A100-SXM4-40GB", "nvlink3"),
        ("Tesla V100-SXM2-16GB", "nvlink2"),
        ("NVIDIA H100 80GB HBM3", "nvlink4"),
        ("NVIDIA GeForce RTX 3090", "nvlink3-bridge"),
        ("gb200", "nvlink5"),
    ],
)
def test_models_are_known_by_any_product_name(model: str, name: str) -> None:
    assert links.nvlink_of(model) is links.SPEEDS[name]


def test_what_is_not_known_has_no_speed() -> None:
    assert links.nvlink_of("Tesla T4") is None
    assert links.nvlink_of_capability(75) is None
    assert links.xgmi_of("MI25") is None
    assert links.pcie_gb_per_s(3.0, 16) is None
    assert links.pcie_gb_per_s(16.0, 8) == 15.75
    assert links.nvlink_of_capability(90) is links.SPEEDS["nvlink4"]
    assert links.xgmi_of("AMD Instinct MI250X") is links.SPEEDS["xgmi-mi200"]


def test_speeds_of_the_table_replace_each_other() -> None:
    assert speeds_of(DGX1) == "nominal"
    slower = with_link_speeds(DGX1, "achievable")
    assert (speeds_of(slower), slower.bandwidth(0, 3), slower.bandwidth(0, 1)) == ("achievable", 40.0, 20.0)
    assert slower.bandwidth(0, 5) == DGX1.bandwidth(0, 5)
    assert with_link_speeds(slower, "nominal") == DGX1


def test_speeds_of_the_caller() -> None:
    topo = with_link_speeds(DGX1, {LinkKind.NVLINK2: 21.0, LinkKind.SYSTEM: 9.0})
    assert (topo.bandwidth(0, 3), topo.bandwidth(0, 5), speeds_of(topo)) == (42.0, 9.0, "given")
    assert topo.link(0, 5).kind is LinkKind.SYSTEM
    with pytest.raises(TopologyError, match=r"speeds\[HOST\]: dgx1-v100 has no link of that kind"):
        with_link_speeds(DGX1, {LinkKind.HOST: 24.0})


def test_speeds_of_one_kind_leave_the_others_as_they_are() -> None:
    boxes = Topology.from_links(4, [], 12.0, sockets=[0, 0, 1, 1])
    host = with_link_speeds(boxes, {LinkKind.HOST: 24.0})
    assert (host.bandwidth(0, 1), host.bandwidth(0, 2)) == (24.0, 12.0)
    system = with_link_speeds(boxes, {LinkKind.SYSTEM: 9.0})
    assert (system.bandwidth(0, 1), system.bandwidth(0, 2)) == (12.0, 9.0)
    apart = Topology.from_links(2, [], 0.0)
    with pytest.raises(TopologyError, match="no link of that kind"):
        with_link_speeds(apart, {LinkKind.HOST: 24.0})


def test_speeds_of_switches_and_networks() -> None:
    h100 = tp.machines.get("dgx-h100")
    for kind in (LinkKind.HOST, LinkKind.SYSTEM):
        with pytest.raises(TopologyError, match="no link of that kind"):
            with_link_speeds(h100, {kind: 60.0})
    assert with_link_speeds(h100, {LinkKind.NVSWITCH: 10.0}).bandwidth(0, 1) == 180.0
    assert with_link_speeds(h100, {LinkKind.NVLINK4: 10.0}).bandwidth(0, 1) == 180.0
    pair = with_link_speeds(Topology.cluster(h100, 2), {LinkKind.NETWORK: 50.0})
    assert (pair.bandwidth(0, 8), pair.bandwidth(0, 1)) == (50.0, 450.0)
    rack = with_link_speeds(tp.machines.get("gb200-nvl72"), {LinkKind.NVSWITCH: 10.0})
    assert rack.bandwidth(0, 1) == rack.bandwidth(0, 71) == 180.0
    singles = Topology.cluster(
        Topology.from_links(1, [], model="GH200"),
        fabric=tp.Fabric.regular(2, {"nvlink_domain": 2}).with_level("nvlink_domain", kind=LinkKind.NVSWITCH),
    )
    assert (singles.bandwidth(0, 1), with_link_speeds(singles, "achievable").bandwidth(0, 1)) == (
        450.0,
        370.8,
    )
    assert with_link_speeds(singles, {LinkKind.NVSWITCH: 10.0}).bandwidth(0, 1) == 180.0
    leaf = Topology.cluster(DGX1, fabric=tp.Fabric.regular(4, {"leaf": 2}).with_level("leaf", gb_per_s=50.0))
    faster = with_link_speeds(leaf, {LinkKind.NETWORK: 100.0})
    assert (faster.bandwidth(0, 8), faster.bandwidth(0, 16)) == (100.0, 100.0)


def test_templates_that_become_alike_become_one() -> None:
    slow = with_link_speeds(DGX1, "achievable")
    mixed = Topology.cluster([slow, DGX1])
    assert len(mixed.templates) == 2
    assert with_link_speeds(mixed, "nominal") == Topology.cluster([DGX1, DGX1])


def test_measured_speeds_keep_the_kinds() -> None:
    measured = np.full((4, 4), 10.0) - 10.0 * np.eye(4)
    measured[0, 1] = measured[1, 0] = 36.5
    measured[2, 3] = measured[3, 2] = 0.0
    topo = with_link_speeds(tp.machines.get("minsky"), measured)
    assert topo.link(0, 1) == Link(LinkKind.NVLINK1, 2, 36.5)
    assert topo.link(0, 2) == Link(LinkKind.SYSTEM, 1, 10.0)
    assert topo.link(2, 3).kind is LinkKind.NONE
    assert (topo.bandwidth_matrix() == measured).all()


@pytest.mark.parametrize(
    ("speeds", "message"),
    [
        ("best", "speeds = 'best' is none of nominal, achievable"),
        ({LinkKind.NVLINK2: 0}, r"speeds\[NVLINK2\] = 0 is not above 0"),
        ({"nvlink2": 1.0}, "a key of speeds = 'nvlink2' is not a LinkKind"),
        (np.zeros((2, 2)), r"speeds has shape \(2, 2\) for 8 GPUs"),
        (np.full((8, 8), np.nan), r"speeds\[0, 0\] = nan"),
    ],
)
def test_wrong_speeds_are_refused(speeds: object, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        with_link_speeds(DGX1, speeds)  # type: ignore[arg-type]


def test_a_link_the_table_does_not_know_is_named() -> None:
    topo = Topology.from_links(2, [(0, 1, 300.0, LinkKind.NVSWITCH, 12)])
    with pytest.raises(
        TopologyError, match=r"links \(0, 1\): the table has no nominal figure for NVSWITCH of None"
    ):
        with_link_speeds(topo, "nominal")
    assert speeds_of(topo) == "given"


def test_distances_are_the_weights_that_are_asked_for() -> None:
    topo = DGX1.with_distances(DistanceWeights(direct=2.0, system=7.0))
    assert (topo.distance(0, 1), topo.distance(0, 5), topo.distance(3, 3)) == (2.0, 7.0, 0.0)
    assert Topology.from_json(topo.to_json()) == topo != DGX1
    with pytest.raises(TopologyError, match="distances = 'sc18' is none of sc17"):
        DGX1.with_distances("sc18")


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"direct": float("nan")}, "distances.direct = nan is not a finite number"),
        ({"system": -5}, "distances.system = -5 is not at least 0"),
        ({"pcie": "x"}, "distances.pcie = 'x' is not a number"),
        ({"levels": 5}, "distances.levels = 5 is not a Mapping"),
        ({"levels": {"rack": "x"}}, r"distances.levels\['rack'\] = 'x' is not a number"),
        ({"levels": {5: 1.0}}, "a level of distances = 5"),
    ],
)
def test_weights_that_are_none_are_refused(weights: dict[str, object], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        DistanceWeights(**weights)  # type: ignore[arg-type]


def test_weights_cannot_be_changed() -> None:
    weights = DistanceWeights(levels={"rack": 2.0})
    with pytest.raises(TypeError):
        weights.levels["rack"] = 3.0  # type: ignore[index]
    assert pickle.loads(pickle.dumps(weights)) == weights
    assert DGX1.with_distances(DistanceWeights(direct=2)) == DGX1.with_distances(DistanceWeights(direct=2.0))
