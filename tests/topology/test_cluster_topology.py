from __future__ import annotations

import copy
import json
import pickle
import tracemalloc
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

import topoplace as tp
from topoplace import DistanceWeights, Fabric, Level, Link, LinkKind, Topology, TopologyError
from topoplace.topology import compare
from topoplace.topology.speed_overrides import speeds_of, with_link_speeds
from topoplace.topology.tiling import as_machine

DGX1 = tp.machines.get("dgx1-v100")
MINSKY = tp.machines.get("minsky")
DGX1_JSON = {k: v for k, v in json.loads(DGX1.to_json()).items() if k not in ("format", "version")}
SMALL = Topology.cluster(
    MINSKY,
    fabric=Fabric.regular(5, {"rack": 2, "spine": 4})
    .with_level("rack", gb_per_s=25.0)
    .with_level("spine", gb_per_s=25.0, oversubscription=2.0),
    network=2.0,
)


def test_machines_meet_at_the_first_level_they_share() -> None:
    assert SMALL.link(0, 1) == MINSKY.link(0, 1)
    assert SMALL.link(0, 4) == Link(LinkKind.NETWORK, 1, 25.0)
    assert SMALL.link(0, 8) == Link(LinkKind.NETWORK, 1, 12.5)
    assert SMALL.link(0, 19) == Link(LinkKind.NETWORK, 1, 2.0)
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
            link = topo.link(u, v)
            assert (bandwidth[u, v], lanes[u, v], distance[u, v]) == (
                link.gb_per_s,
                link.lanes,
                topo.distance(u, v),
            )
            assert topo.link(v, u) == link
            assert topo.pairs.native.between(u, v) == distance[u, v]
    with pytest.raises(IndexError):
        topo.gpus[n]


def test_racks_of_several_machines_are_entries_of_a_larger_fabric() -> None:
    rack, machine = tp.machines.get("gb200-nvl72"), tp.machines.get("dgx-h100")
    rows = tp.Fabric.regular(("r1", "r2", "n1"), {"row": 2})
    cluster = Topology.cluster([rack, rack, machine], fabric=rows)
    assert cluster.num_machines == 37
    assert cluster.machine_names[17:19] == ("r1/tray17", "r2/tray00")
    assert cluster.machine_names[36] == "n1"
    inner, outer = cluster.fabric.levels  # type: ignore[union-attr]
    assert [len(set(inner.domains[a:b])) for a, b in ((0, 18), (18, 36), (0, 36))] == [1, 1, 2]
    assert outer.domains == (*["row0"] * 36, "row1")
    assert cluster.link(0, 71).kind == cluster.link(72, 143).kind == LinkKind.NVSWITCH
    assert cluster.link(0, 72).kind == LinkKind.NETWORK
    copies = Topology.cluster(rack, 4, fabric=tp.Fabric.regular(4, {"row": 2}))
    assert copies.num_machines == 72
    assert copies.fabric.levels[1].domains == (*["row0"] * 36, *["row1"] * 36)  # type: ignore[union-attr]
    job = tp.JobGraph.ring(100).with_(within="row", spread="nvlink_domain")
    assert tp.policies.get("topo-aware").place(job, tp.Cluster(copies)) is None
    placement = tp.policies.get("topo-aware").place(job.with_(spread=None), tp.Cluster(copies))
    assert placement is not None
    assert max(placement.gpus) < 144


def test_a_rack_of_nvl72_is_all_to_all() -> None:
    rack = tp.machines.get("gb200-nvl72")
    assert {rack.link(0, v) for v in range(1, 72)} == {Link(LinkKind.NVSWITCH, 18, 900.0)}
    assert rack.distance(0, 71) == 1.0
    slower = with_link_speeds(rack, "achievable")
    assert slower.bandwidth(0, 1) == slower.bandwidth(0, 71) == 721.8
    assert (speeds_of(rack), speeds_of(slower)) == ("nominal", "achievable")


def test_clusters_join_to_larger_ones() -> None:
    rack = tp.machines.get("gb200-nvl72")
    row = Topology.cluster(rack, 3, fabric=Fabric.regular(54, {"row": 54}), network=50.0)
    assert (row.num_gpus, row.num_machines, len(row.templates)) == (216, 54, 1)
    assert [level.name for level in row.fabric.levels] == ["nvlink_domain", "row"]  # type: ignore[union-attr]
    assert row.link(0, 71).kind is LinkKind.NVSWITCH
    assert row.link(0, 72) == Link(LinkKind.NETWORK, 1, 50.0)
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
            assert topo.pairs.native.between(u, 4 + v) == topo.distance(u, 4 + v)


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
    assert 14 not in tp.Cluster(topo).free_gpus()
    assert topo.machine("machine1") == as_machine(DGX1, "machine1")
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
        (([],), {}, "machines has 0 entries"),
        (([3],), {}, r"machines\[0\] = 3 is not a Topology"),
        ((MINSKY, 3), {"fabric": Fabric(("a",))}, "fabric has 1 machines, but 3 are to be joined"),
        ((MINSKY, 2), {"racks": ["r"]}, r"levels\[0\].domains has 1 entries for 2 machines"),
        ((MINSKY, 2), {"racks": 0}, "racks = 0 is not in 1"),
        ((MINSKY, 2), {"names": ["a", "a"]}, r"names\[1\] = 'a' is the name of names\[0\]"),
        ((MINSKY, 2), {"network": -1}, "network = -1 is not at least 0"),
        (({"a": MINSKY},), {"fabric": Fabric(("a", "b"))}, "machines has no 'b', which is in the fabric"),
        ((tp.machines.get("tpu-v4-64"), 2), {}, "16 machines with links between them"),
        ((SMALL, 2), {"racks": 2}, r"levels\[1\].name = 'rack' appears twice"),
        ((DGX1, 1 << 20), {}, "8388608 GPUs are more than"),
        (
            ([Topology.cluster(MINSKY, 2, racks=2), SMALL],),
            {"network": 2.0},
            "level 'rack' differs between the clusters to be joined",
        ),
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
        (lambda: Level("rack", ("a",), gb_per_s=0.0), "gb_per_s = 0.0 is not above 0"),
        (lambda: Level("rack", ("a",), oversubscription=0.5), "oversubscription = 0.5 is not in 1"),
        (lambda: Level("rack", ("a",), kind=LinkKind.PCIE), "neither NETWORK nor NVSWITCH"),
        (lambda: Level("pod", ("a",), pxn=True), "level 'pod': pxn = True, but rail = False"),
        (lambda: Level("pod", ("a",), rail=True, pxn=1), "level 'pod': pxn = 1 is not True or False"),
        (lambda: Fabric(("a",), (Level("rack", ("a", "b")),)), "2 entries for 1 machines"),
        (lambda: Fabric(("a",)).with_level("x"), "level = 'x' is none of no levels"),
        (lambda: Fabric(("a",), ("rack",)), r"levels\[0\] = 'rack' is not a Level"),  # type: ignore[arg-type]
        (lambda: Fabric(()), "machines has 0 entries; 1.."),
        (lambda: SMALL.machine("none"), "name = 'none' is not a machine of"),
        (lambda: MINSKY.machine("none"), "name = 'none' is not a machine of minsky"),
        (lambda: with_link_speeds(SMALL, 1 - np.eye(20)), "a cluster takes one for each machine before"),
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
    with pytest.raises(tp.AllocationError, match=r"gpus = \(0, 2\) is not a partition of dgx1-v100"):
        cluster.allocate("x", (0, 2))
    for policy in tp.policies.names():
        placement = tp.policies.get(policy).place(tp.JobGraph.ring(4), cluster)
        assert placement is not None
        assert sorted(placement.gpus) in ([0, 1, 2, 3], [4, 5, 6, 7])
        assert tp.policies.get(policy).place(tp.JobGraph.ring(3), cluster) is None
    pair = Topology.cluster(halves, 2)
    assert pair.partitions == (*halves.partitions, (8, 9), (8, 9, 10, 11), (12, 13, 14, 15), (14, 15))
    assert Topology.from_json(pair.to_json()).partitions == pair.partitions


NVL72 = tp.machines.get("gb200-nvl72")
HALF = Link(LinkKind.NVSWITCH, 9, 450.0)


def worn(gpu: int) -> Topology:
    """A rack where one GPU of tray05 has lost half of its NVLinks."""
    tray = NVL72.templates[0]
    links = [(u, v, HALF if gpu in (u, v) else link) for u, v, link in tray.links]
    trays = [replace(tray, links=links) if i == 5 else tray for i in range(18)]
    return Topology.cluster(trays, fabric=NVL72.fabric, network=50.0)


@pytest.mark.parametrize("gpu", [0, 3])
def test_a_lost_link_slows_its_gpu_alone_in_the_whole_rack(gpu: int) -> None:
    rack = worn(gpu)
    matrix = rack.bandwidth_matrix()
    for u in range(72):
        for v in range(72):
            if u != v:
                expected = 450.0 if 20 + gpu in (u, v) else 900.0
                assert matrix[u, v] == rack.bandwidth(u, v) == expected
    assert [finding.where for finding in compare.check(rack) if "links, but most GPUs" in finding.why] == [
        f"tray05: GPU{gpu}"
    ]


def test_a_gpu_off_the_switches_meets_others_in_the_network() -> None:
    tray = NVL72.templates[0]
    off = replace(tray, links=[entry for entry in tray.links if 0 not in entry[:2]])
    rack = Topology.cluster([off] + [tray] * 17, fabric=NVL72.fabric, network=50.0)
    assert rack.link(0, 4) == Link(LinkKind.NETWORK, 1, 50.0)
    assert rack.link(1, 4).kind is LinkKind.NVSWITCH
    assert rack.bandwidth_matrix()[0, 4] == 50.0
    assert rack.distance(0, 4) == rack.distance_matrix()[0, 4] == rack.pairs.native.between(0, 4) == 400.0


def test_where_there_is_no_path_there_is_no_distance() -> None:
    topo = Topology.cluster(MINSKY, 4, racks=2, network=0.0)
    assert topo.link(0, 4).kind is LinkKind.NONE
    assert topo.distance(0, 4) == topo.distance_matrix()[0, 4] == topo.pairs.native.between(0, 4) == np.inf


def test_machines_keep_the_names_of_their_gpus_and_share_templates() -> None:
    hosts = [
        replace(MINSKY, gpus=[replace(gpu, uuid=f"GPU-{host}-{gpu.index}") for gpu in MINSKY.gpus])
        for host in range(20)
    ]
    topo = Topology.cluster([*hosts, MINSKY])
    assert len(topo.templates) == 1
    assert (topo.gpus[41].uuid, topo.gpus[83].uuid) == ("GPU-10-1", None)
    assert topo.machine("machine10").gpus[1].uuid == "GPU-10-1"
    assert Topology.from_json(topo.to_json()) == topo
    assert Topology.cluster(topo, 2).gpus[41].uuid == "GPU-10-1"
    bad = replace(MINSKY, links=(), gpus=hosts[7].gpus)
    findings = compare.check(Topology.cluster([*hosts[:7], bad, *hosts[8:]]))
    assert [finding.where for finding in findings] == ["machine07"]


def test_partitions_bind_their_machines_alone() -> None:
    vm = replace(DGX1, partitions=[(0, 1, 2, 3), (4, 5, 6, 7), tuple(range(8))])
    mixed = Topology.cluster({"vm": vm, "plain": DGX1, "other": vm})
    cluster = tp.Cluster(mixed)
    cluster.allocate("plain", (8, 9, 10))
    cluster.allocate("both", (*range(4), *range(16, 24)))
    with pytest.raises(tp.AllocationError, match="is not a partition"):
        cluster.allocate("part", (4, 5))
    for name in tp.policies.names():
        policy = tp.policies.get(name)
        idle = tp.Cluster(mixed)
        three = policy.place(tp.JobGraph.ring(3), idle)
        assert three is not None
        assert set(three.gpus) <= set(range(8, 16))
        if name in ("g-queue", "r-queue"):  # a process keeps to the partitions of its machine
            continue
        wide = policy.place(tp.JobGraph.ring(16), tp.Cluster(Topology.cluster(vm, 2)))
        assert wide is not None
        assert sorted(wide.gpus) == list(range(16))


def test_unhealthy_gpus_can_be_marked_anywhere() -> None:
    rack = NVL72.with_unhealthy([23, 0, 22])
    assert rack.unhealthy_gpus == (0, 22, 23)
    assert rack.fabric == NVL72.fabric
    assert DGX1.with_unhealthy([3]).unhealthy_gpus == (3,)
    with pytest.raises(TopologyError, match=r"targets\[1\] = 72 is not in 0..71"):
        NVL72.with_unhealthy([0, 72])


def test_machines_become_unhealthy_by_name_and_healthy_again() -> None:
    cluster = Topology.cluster(DGX1, 3)
    broken = cluster.with_unhealthy(["machine1", 0])
    assert broken.unhealthy_gpus == (0, *range(8, 16))
    assert broken.with_healthy([9, 0]).unhealthy_gpus == (8, *range(10, 16))
    assert broken.with_healthy(["machine1", 0]) == cluster
    assert DGX1.with_unhealthy([DGX1.machine_names[0]]).with_healthy(range(8)) == DGX1
    with pytest.raises(TopologyError, match=r"targets\[1\] = 'machine9' is no machine of the topology; did"):
        cluster.with_unhealthy([0, "machine9"])
    for change in (cluster.with_unhealthy, cluster.with_healthy):
        with pytest.raises(TopologyError, match="targets = 'machine1': must be several"):
            change("machine1")


def test_a_cluster_cannot_be_changed_and_its_lists_are_like_tuples() -> None:
    with pytest.raises(FrozenInstanceError):
        SMALL.foo = 1  # type: ignore[attr-defined]
    with pytest.raises(FrozenInstanceError):
        del SMALL.name
    assert SMALL.gpus == tuple(SMALL.gpus) == Topology.from_json(SMALL.to_json()).gpus
    assert hash(SMALL.links) == hash(tuple(SMALL.links))
    assert repr(SMALL.gpus).endswith("20 in all)")
    assert SMALL.gpus[-1] == SMALL.gpus[19]
    assert copy.copy(SMALL) is SMALL is copy.deepcopy(SMALL)


def test_json_of_the_same_content_is_the_same_topology() -> None:
    topo = Topology.cluster([MINSKY, DGX1, MINSKY], racks=["a", "a", None])
    data = json.loads(topo.to_json())
    first, second = data["templates"]
    data["templates"], data["template_of"] = [second, first, first, DGX1_JSON], [1, 0, 2]
    data["levels"][0] |= {"domains": ["unused", "a", "a"], "domain_of": [1, 2, None]}
    assert Topology.from_json(json.dumps(data)) == topo


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"templates": []}, "templates has 0 entries"),
        ({"template_of": [0, 5]}, r"template_of\[1\] = 5 is not in 0..0"),
        ({"template_of": [0]}, "template_of has 1 entries for 2 machines"),
        ({"machines": ["a", "a"]}, r"machines\[1\] = 'a' is the name of machines\[0\]"),
        ({"notes": [5]}, r"notes\[0\] = 5 is not a non-empty string"),
        ({"levels": 3}, "levels = 3 is not a sequence"),
        ({"levels": [{"name": "x"}]}, r"levels\[0\] has no key 'domain_of'"),
        ({"distances": {"direct": 1}}, "distances has no key 'host'"),
        ({"uuids": [[]]}, "uuids has 1 entries for 2 machines"),
        ({"uuids": [["a"], []]}, r"uuids\[0\] has 1 entries for 4 GPUs"),
        ({"network": -1}, "network = -1 is not at least 0"),
        ({"version": 2.0}, "format and version = .*2.0"),
        ({"other": 1}, "the text has an unknown key 'other'"),
    ],
)
def test_bad_json_of_a_cluster_is_refused(change: dict[str, object], message: str) -> None:
    data = json.loads(Topology.cluster(MINSKY, 2).to_json())
    with pytest.raises(TopologyError, match=message):
        Topology.from_json(json.dumps(data | change))


def test_domains_that_are_no_names_are_refused() -> None:
    for domain in ([1], {}, 5, ""):
        with pytest.raises(TopologyError, match=r"level 'x': domains\[0\] = "):
            Level("x", (domain,))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (
            ({"a": MINSKY, "b": MINSKY},),
            {"fabric": Fabric(("a",))},
            "machines has 'b', which is not in the fabric",
        ),
        (({"x": MINSKY},), {"fabric": Fabric(("n1",))}, "machines has no 'n1', which is in the fabric"),
        (
            (NVL72,),
            {"fabric": Fabric.regular(16, {"leaf": 4})},
            "16 machines cannot be made of topologies of 18",
        ),
        (
            ([NVL72, Topology.cluster(MINSKY, 2)],),
            {},
            r"the clusters have networks of \[12.5, 50.0\] GB/s; choose one with network=",
        ),
        (([MINSKY, DGX1.with_distances(DistanceWeights(host=3.0))],), {}, "different weights of distances"),
    ],
)
def test_what_would_be_lost_is_refused(arguments: tuple, options: dict, message: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(TopologyError, match=message):
        Topology.cluster(*arguments, **options)


def test_what_clusters_bring_along_stays() -> None:
    inner = Topology.cluster(replace(MINSKY, notes=("beware",)), 2, network=100.0)
    assert inner.notes == ("beware",)
    outer = Topology.cluster(inner, 2)
    assert (outer.notes, outer.network) == (("beware",), 100.0)
    racked = Topology.cluster(NVL72.templates[0], fabric=NVL72.fabric, racks=9)
    assert racked.link(0, 4).kind is LinkKind.NVSWITCH
    separate = Topology.from_links(4, [(0, 1, 50.0), (2, 3, 50.0)], machines=["a", "a", "b", "b"])
    assert Topology.cluster(separate, 2).num_machines == 4


def test_codes_of_domains_are_no_part_of_a_level_and_cannot_be_changed() -> None:
    level, other = (Level("rack", ("a", None, "b", "a"), 25.0) for _ in range(2))
    assert level.codes.tolist() == [0, -1, 1, 0]
    assert level == other == pickle.loads(pickle.dumps(level))
    assert hash(level) == hash(other)
    with pytest.raises(ValueError, match="read-only"):
        level.codes[0] = 1
