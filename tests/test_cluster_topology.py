from __future__ import annotations

import pickle
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import topoplace as tp
from topoplace import DistanceWeights, Fabric, Level, Link, LinkKind, Topology, TopologyError

DGX1 = tp.machines.get("dgx1-v100")
MINSKY = tp.machines.get("minsky")
SMALL = Topology.cluster(
    MINSKY,
    fabric=Fabric.regular(5, {"rack": 2, "spine": 4})
    .with_level("rack", gbps=25.0)
    .with_level("spine", gbps=25.0, oversubscription=2.0),
    network=2.0,
)


def test_machines_meet_at_the_first_level_they_share() -> None:
    assert SMALL.link_kind(0, 1) == MINSKY.link_kind(0, 1)
    assert SMALL.link_kind(0, 4) == Link(LinkKind.NETWORK, 1, 25.0)
    assert SMALL.link_kind(0, 8) == Link(LinkKind.NETWORK, 1, 12.5)
    assert SMALL.link_kind(0, 19) == Link(LinkKind.NETWORK, 1, 2.0)
    assert [SMALL.distance(0, v) for v in (0, 1, 2, 4, 8, 19)] == [0.0, 1.0, 20.0, 400.0, 800.0, 1200.0]


def test_weights_of_levels_add_up() -> None:
    weights = DistanceWeights(network=100.0, levels={"rack": 30.0})
    topo = SMALL.with_distances(weights)
    assert [topo.distance(0, v) for v in (4, 8, 19)] == [30.0, 130.0, 230.0]
    assert topo.bandwidth(0, 8) == SMALL.bandwidth(0, 8)
    assert SMALL.with_distances("sc17") == SMALL != topo
    assert Topology.from_json(topo.to_json()) == topo


@pytest.mark.parametrize("topo", [SMALL, tp.machines.get("gb200-nvl72")], ids=["tree", "nvl72"])
def test_matrices_and_sequences_agree_with_single_answers(topo: Topology) -> None:
    n = topo.num_gpus
    bandwidth, distance = topo.bandwidth_matrix(), topo.distance_matrix()
    lanes = topo.link_matrix(lambda link: link.lanes, np.int16)
    assert len(topo.gpus) == n == len(topo.machine_of) == len(topo.local_index)
    assert list(topo.gpus) == [topo.gpus[i] for i in range(n)] == list(topo.gpus[:])
    assert list(topo.links) == [topo.links[i] for i in range(len(topo.links))]
    for gpu in topo.gpus:
        assert topo.machine_names[topo.machine_of[gpu.index]] == gpu.machine
        assert topo.gpus_of[gpu.machine][topo.local_index[gpu.index]] == gpu.index
    for u in range(0, n, 3):
        for v in range(n):
            link = topo.link_kind(u, v)
            assert (bandwidth[u, v], lanes[u, v], distance[u, v]) == (
                link.gbps,
                link.lanes,
                topo.distance(u, v),
            )
            assert topo.link_kind(v, u) == link
    with pytest.raises(IndexError):
        topo.gpus[n]


def test_a_rack_of_nvl72_is_all_to_all() -> None:
    rack = tp.machines.get("gb200-nvl72")
    assert {rack.link_kind(0, v) for v in range(1, 72)} == {Link(LinkKind.NVSWITCH, 18, 900.0)}
    assert rack.distance(0, 71) == 1.0
    slower = rack.with_link_speeds("achievable")
    assert slower.bandwidth(0, 1) == slower.bandwidth(0, 71) == 721.8
    assert (rack.speeds, slower.speeds) == ("nominal", "achievable")


def test_clusters_join_to_larger_ones() -> None:
    rack = tp.machines.get("gb200-nvl72")
    row = Topology.cluster(rack, 3, fabric=Fabric.regular(54, {"row": 54}), network=50.0)
    assert (row.num_gpus, row.num_machines, len(row.templates)) == (216, 54, 1)
    assert [level.name for level in row.fabric.levels] == ["nvlink_domain", "row"]  # type: ignore[union-attr]
    assert row.link_kind(0, 71) == LinkKind.NVSWITCH
    assert row.link_kind(0, 72) == Link(LinkKind.NETWORK, 1, 50.0)
    assert Topology.cluster(rack, 2).machine_names[18] == "gb200-nvl72-1/tray00"


def test_rails_meet_below_what_joins_them() -> None:
    fabric = Fabric(
        ("a", "b"), (Level("leaf", ("l", "l"), 50.0, rail=True), Level("spine", ("s", "s"), 25.0))
    )
    topo = Topology.cluster(MINSKY, fabric=fabric)
    matrix = topo.bandwidth_matrix()
    for u in range(4):
        for v in range(4):
            assert topo.bandwidth(u, 4 + v) == matrix[u, 4 + v] == (50.0 if u == v else 25.0)


def test_unknown_domains_are_no_domain() -> None:
    fabric = Fabric(("a", "b", "c"), (Level("rack", (None, None, "r"), 50.0),))
    topo = Topology.cluster(MINSKY, fabric=fabric, network=1.0)
    assert topo.bandwidth(0, 4) == 1.0 == topo.bandwidth_matrix()[0, 4]


def test_machines_of_several_kinds_share_templates() -> None:
    broken = replace(MINSKY, gpus=[replace(gpu, healthy=gpu.index != 2) for gpu in MINSKY.gpus])
    topo = Topology.cluster([MINSKY, DGX1, broken, MINSKY], racks=["x", "x", "y", "y"])
    assert len(topo.templates) == 3
    assert topo.machine_names == ("machine0", "machine1", "machine2", "machine3")
    assert topo.unhealthy_gpus == (14,)
    assert tp.Cluster(topo).drained_gpus() == (14,)
    assert topo.machine("machine1") == DGX1.renamed_machine("machine1")
    assert Topology.from_json(topo.to_json()) == topo == pickle.loads(pickle.dumps(topo))
    snapshot = tp.Cluster(topo).snapshot()
    assert tp.Cluster.restore(snapshot).topology == topo


def test_machines_by_name_take_the_order_of_the_fabric() -> None:
    fabric = Fabric(("b", "a"), (Level("rack", ("1", "2")),))
    topo = Topology.cluster({"a": MINSKY, "b": DGX1}, fabric=fabric)
    assert topo.machine_names == ("b", "a")
    assert [len(gpus) for gpus in topo.gpus_of.values()] == [8, 4]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((MINSKY,), {}, "count is missing"),
        ((MINSKY, 0), {}, "count = 0 is not in 1"),
        (([MINSKY], 2), {}, "count = 2, but machines is a list"),
        (([],), {}, "names has 0 entries|number of machines = 0"),
        (([3],), {}, r"machines\[0\] = 3 is not a Topology"),
        ((MINSKY, 3), {"fabric": Fabric(("a",))}, "fabric has 1 machines, and 3 are to be joined"),
        ((MINSKY, 2), {"racks": ["r"]}, r"levels\[0\].domains has 1 entries for 2 machines"),
        ((MINSKY, 2), {"racks": 0}, r"sizes\['rack'\] = 0 is not in 1"),
        ((MINSKY, 2), {"names": ["a", "a"]}, r"names\[1\] = 'a' is the name of names\[0\]"),
        ((MINSKY, 2), {"network": -1}, "network = -1 is not at least 0"),
        (({"a": MINSKY},), {"fabric": Fabric(("a", "b"))}, "machines has no 'b', which is in the fabric"),
        ((tp.machines.get("tpu-v4-64"), 2), {}, "16 machines without a fabric"),
        ((SMALL, 2), {"racks": 2}, r"levels\[2\].name = 'rack' is there twice"),
        ((DGX1, 1 << 20), {}, "8388608 GPUs are more than"),
    ],
)
def test_what_cannot_be_joined_is_refused(arguments: tuple, options: dict, message: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(TopologyError, match=message):
        Topology.cluster(*arguments, **options)


@pytest.mark.parametrize(
    ("level", "message"),
    [
        (lambda: Level("", ()), "level.name = ''"),
        (lambda: Level("rack", ("",)), r"level 'rack': domains\[0\] = ''"),
        (lambda: Level("rack", ("a",), gbps=0.0), "gbps = 0.0 is not above 0"),
        (lambda: Level("rack", ("a",), oversubscription=0.5), "oversubscription = 0.5 is not at least 1"),
        (lambda: Level("rack", ("a",), kind=LinkKind.PCIE), "neither NETWORK nor NVSWITCH"),
        (lambda: Fabric(("a",), (Level("rack", ("a", "b")),)), "2 entries for 1 machines"),
        (lambda: Fabric(("a",)).with_level("x"), "level = 'x' is none of no levels"),
    ],
)
def test_bad_levels_are_refused(level: object, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        level()  # type: ignore[operator]


def test_a_hundred_thousand_gpus_are_small() -> None:
    tracemalloc.start()
    fabric = Fabric.regular(12_500, {"rack": 4, "leaf": 32, "spine": 512})
    topo = Topology.cluster(tp.machines.get("dgx-h100"), fabric=fabric)
    assert topo.num_gpus == 100_000
    assert topo.bandwidth(0, 99_999) == 12.5
    assert topo.machine_of[-1] == 12_499
    again = Topology.from_json(topo.to_json())
    assert again.digest() == topo.digest()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6
    with pytest.raises(TopologyError, match="matrix of 100000 x 100000 is too large"):
        topo.bandwidth_matrix()


def test_partitions_are_the_only_sets_that_may_be_given() -> None:
    halves = replace(DGX1, partitions=[(0, 1, 2, 3), (4, 5, 6, 7), (0, 1), (6, 7)])
    cluster = tp.Cluster(halves)
    with pytest.raises(tp.AllocationError, match=r"gpus = \(0, 2\) is no partition of dgx1-v100"):
        cluster.allocate("x", (0, 2))
    for policy in tp.policies.names():
        placement = tp.policies.get(policy).place(tp.JobGraph.ring(4), cluster)
        assert placement is not None
        assert sorted(placement.gpus) in ([0, 1, 2, 3], [4, 5, 6, 7])
        assert tp.policies.get(policy).place(tp.JobGraph.ring(3), cluster) is None
    pair = Topology.cluster(halves, 2)
    assert pair.partitions == (*halves.partitions, (8, 9), (8, 9, 10, 11), (12, 13, 14, 15), (14, 15))
    assert Topology.from_json(pair.to_json()).partitions == pair.partitions
