"""Text about clusters: Slurm, Kubernetes, Volcano, Topograph, NetQ and InfiniBand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import groupby
from typing import Any

import pytest

from samples import Expected
from topoplace import LinkKind, Topology, TopologyError, discovery
from topoplace.discovery.text import host_list
from topoplace.topology.fabric import Fabric
from topoplace.topology.links.link_kinds import PATH_KINDS
from topoplace_hosts.kubernetes.texts import kubernetes_labels, topograph, volcano
from topoplace_hosts.networks import ibnetdiscover, netq
from topoplace_hosts.slurm.texts import gres, topology_conf


def refused(parse: Callable[..., Any], data: bytes, reason: str, **options: Any) -> None:
    with pytest.raises(TopologyError, match=reason):
        parse(data, **options)


def domain_sizes(fabric: Fabric, level: str) -> list[int]:
    """How many machines each domain of a level has, in the order of the text; those in none are left out."""
    (one,) = [one for one in fabric.levels if one.name == level]
    return list(Counter(domain for domain in one.domains if domain is not None).values())


def noted(described: Fabric | Topology, words: str) -> bool:
    return any(re.search(words, note) for note in described.notes)


def lanes(topology: Topology) -> dict[tuple[int, int], int]:
    slow = (LinkKind.UNKNOWN, *PATH_KINDS)
    return {(u, v): link.lanes for u, v, link in topology.links if link.kind not in slow}


# ---- gres.conf -------------------------------------------------------------------------------------------------


def gres_a100(data: bytes) -> None:
    topology = gres.parse(data)
    assert topology.machine_names == ("node0",)
    assert [(gpu.name, gpu.model, gpu.socket) for gpu in topology.gpus] == [
        ("nvidia0", "a100", 0),
        ("nvidia1", "a100", 1),
    ]
    assert topology.link(0, 1).kind is LinkKind.SYSTEM
    assert not noted(topology, "AutoDetect")


def gres_gp100(data: bytes) -> None:
    topology = gres.parse(data)
    assert [(gpu.model, gpu.socket) for gpu in topology.gpus] == [("gp100", 0)] * 2 + [("p6000", 1)] * 2
    assert noted(topology, "AutoDetect=nvml")


def gres_pairs(data: bytes) -> None:
    topology = gres.parse(data)
    assert [gpu.model for gpu in topology.gpus] == ["a100"] * 8
    assert [gpu.socket for gpu in topology.gpus] == [0] * 4 + [1] * 4
    assert lanes(topology) == {}
    # With one link in the column of GPU3's place, which is the first, it is GPU3 that has it.
    text = (
        data.decode().replace("Links=0,0,0,-1", "Links=4,0,0,-1").replace("Links=-1,0,0,0", "Links=-1,0,0,4")
    )
    assert lanes(gres.parse(text)) == {(0, 3): 4}


def gres_tesla(data: bytes) -> None:
    refused(gres.parse, data, "Type = 'tesla' has no known link speed; give gpu_model=")
    topology = gres.parse(data, gpu_model="V100")
    assert lanes(topology) == {(0, 1): 2, (0, 2): 2, (1, 2): 2, (3, 5): 1, (4, 5): 1, (6, 7): 2}
    assert topology.bandwidth(0, 1) == 50.0


def gres_man(data: bytes) -> None:
    refused(
        gres.parse, data, r"tux\[0-7\] \| tux\[8-11\] \| tux\[12-15\] are not alike: choose one with node="
    )
    refused(gres.parse, data, "line 1: AutoDetect=nvml", node="tux7")
    refused(gres.parse, data, "line 2: AutoDetect=rsmi", node="tux8")
    assert gres.parse(data, node="tux15").num_gpus == 4


# ---- topology.conf ---------------------------------------------------------------------------------------------


def tree(machines: int, note: str = "", **levels: list[int]) -> Callable[[bytes], None]:
    def check(data: bytes) -> None:
        fabric = topology_conf.parse(data)
        assert len(fabric.machines) == machines
        assert {name: domain_sizes(fabric, name) for name in fabric.level_names} == levels
        assert noted(fabric, note)

    return check


def azure_blocks(data: bytes) -> None:
    tree(51, "BlockSizes begins with 5", block=[18, 16, 8, 9])(data)


def nvl_blocks(data: bytes) -> None:
    tree(96, block=[8] * 12, blocks_2=[16] * 6, blocks_4=[32] * 3)(data)
    fabric = topology_conf.parse(data)
    assert fabric.machines[:9] == (*host_list.expanded("srv[1101-1108]"), "srv1201")
    assert fabric.levels[0].domains[8] == "rack12"


def man_blocks(data: bytes) -> None:
    note = "Slurm plans with so many machines of a block, and the blocks have 32 to 32"
    tree(128, note, block=[32] * 4, blocks_4=[128])(data)


def gcp(data: bytes) -> None:
    fabric = topology_conf.parse(data)
    assert noted(fabric, "Nothing joins 2 trees of the text: nodeset-root, nodeset_tpu-root")
    assert domain_sizes(fabric, "leaf") == [7, 5, 4, 3, 1, 3, 2, 3]
    root = dict(zip(fabric.machines, fabric.levels[-1].domains, strict=True))
    assert root["m22-bold-8"] == root["m22-slim-0"] == "nodeset_tpu-root"
    assert root["m22-blue-0"] is None
    assert dict(zip(fabric.machines, fabric.levels[1].domains, strict=True))["m22-pink-3"] == "nodeset-root"


# ---- Kubernetes ------------------------------------------------------------------------------------------------


def gfd(data: bytes) -> None:
    topology = kubernetes_labels.parse(data)
    (gpu,) = topology.gpus
    assert (gpu.model, round(gpu.memory_gb or 0, 1)) == ("A100-SXM4-40GB", 41.5)
    assert topology.links == ()
    assert noted(topology, r"2 lines of the text are '\.\.\.'")


def label_patterns(data: bytes) -> None:
    refused(
        kubernetes_labels.parse, data, "line 1: .* is a pattern that labels are tested against, not a label"
    )


# ---- the rest --------------------------------------------------------------------------------------------------


def hypernodes(data: bytes) -> None:
    fabric = volcano.parse(data)
    assert fabric.machines == tuple(f"node{i}" for i in range(8))
    assert {level.name: [domain for domain, _ in groupby(level.domains)] for level in fabric.levels} == {
        "tier1": ["s0", "s1", "s2", "s3"],
        "tier2": ["s4", "s5"],
        "tier3": ["s6"],
    }


def hived_design(data: bytes) -> None:
    refused(discovery.read, data, "this is a configuration of HiveD")


def dangling_hypernodes(data: bytes) -> None:
    refused(
        volcano.parse,
        data,
        r"line 1: .*'nvlink-network0', which the text does not describe \(4 names like this",
    )
    fabric = volcano.parse(data, allow_dangling=True)
    assert domain_sizes(fabric, "tier1") == [2, 2, 2, 2]
    assert fabric.level_names == ("tier1",)
    assert noted(fabric, "nvlink-network0, nvlink-network1, nvlink-network2, nvlink-network3")


def model(data: bytes, machines: int, levels: Mapping[str, list[int]]) -> Fabric:
    fabric = topograph.parse(data)
    assert len(fabric.machines) == machines
    assert {name: domain_sizes(fabric, name) for name in fabric.level_names} == levels
    return fabric


def nvl72(data: bytes) -> None:
    fabric = model(data, 72, {"nvlink_domain": [18] * 4, "leaf": [18] * 4, "spine": [36, 36], "core": [72]})
    assert fabric.levels[0].domains[0] == "nvl-1-1"


def medium(data: bytes) -> None:
    fabric = model(data, 8, {"nvlink_domain": [2] * 4, "leaf": [2] * 4, "spine": [4, 4], "core": [8]})
    assert fabric.machines[:2] == ("1101", "1102")


def dual_irregular(data: bytes) -> None:
    racks = [9, 9, 7] + [9] * 11 + [9] * 13 + [5, 9]
    sides = [124, 131]
    levels = {"nvlink_subdomain": racks, "nvlink_domain": sides, "leaf": racks, "spine": sides, "core": [255]}
    fabric = model(data, 255, levels)
    assert noted(fabric, "Without nodes: switch rack-1-03, rack-1-13")
    assert "node0031" not in fabric.machines
    assert "node0032" in fabric.machines


def compute_nodes(data: bytes) -> None:
    fabric = netq.parse(data)
    assert fabric.machines == ("node1", "node2")
    assert fabric.levels[0].domains == ("3fbfc98b-7f95-4749-ab11-bd351a2aab3e",) * 2
    assert fabric.notes == ("2 machines have 4 GPUs.",)


def topology_graph(data: bytes) -> None:
    fabric = netq.parse(data)
    assert set(fabric.machines) == {f"dgx-0{i}" for i in range(1, 9)}
    leaf = dict(zip(fabric.machines, fabric.levels[0].domains, strict=True))
    assert leaf == {f"dgx-0{i}": f"net-unit-l{1 if i < 5 else 2}" for i in range(1, 9)}
    assert domain_sizes(fabric, "spine") == [8]


def infiniband(data: bytes) -> None:
    fabric = ibnetdiscover.parse(data)
    assert noted(fabric, "40 switches and 582 channel adapters")
    assert noted(fabric, "69 channel adapters name no host")
    assert noted(fabric, "40 channel adapters are aggregation nodes")
    assert fabric.level_names == ("leaf", "spine")
    assert [level.gb_per_s for level in fabric.levels] == [50.0, 50.0]
    assert sorted(domain_sizes(fabric, "leaf")) == [11, 11, 15, 16, 16, 17, 18, 18]
    assert domain_sizes(fabric, "spine") == [122]
    assert 1.0 < fabric.levels[1].oversubscription < 1.05


def lone_adapter(data: bytes) -> None:
    refused(ibnetdiscover.parse, data, "no fabric: 1 channel adapters or routers, and no Switch")


EXPECTED = {
    "gres-a100-autodetectoff-02.conf": Expected("node0: 2 a100 on 2 sockets, links not told", gres_a100),
    "gres-gp100-p6000-01.conf": Expected("2 gp100, 2 p6000 on 2 sockets; AutoDetect noted", gres_gp100),
    "gres-links-8a100-pairs-03.conf": Expected("8 a100 without links, in the order of PCI", gres_pairs),
    "gres-links-8tesla-04.conf": Expected(
        "8 GPUs, 6 pairs with links; their speed needs gpu_model=", gres_tesla
    ),
    "gres-man-autodetect-rsmi-05.conf": Expected("3 kinds of nodes, one lists 4 GPUs; needs node=", gres_man),
    "slurmtopo-azure-block-gb200-05.conf": Expected("4 blocks of 18, 16, 8, 9 machines", azure_blocks),
    "slurmtopo-azure-tree-pg-03.conf": Expected(
        "2 leaves of 50 and 16, nothing joins them", tree(66, "Nothing joins 2 trees", leaf=[50, 16])
    ),
    "slurmtopo-azure-tree-sharp-04.conf": Expected(
        "4 leaves of 6, 12, 1, 8, nothing joins them", tree(27, "Nothing joins 4 trees", leaf=[6, 12, 1, 8])
    ),
    "slurmtopo-block-nvl-01.conf": Expected("12 blocks of 8, and 2 and 4 of them together", nvl_blocks),
    "slurmtopo-gcp-tree-06.conf": Expected("2 roots, 8 leaves at unequal depth", gcp),
    "slurmtopo-html-fattree-linkspeed-08.conf": Expected(
        "4 leaves under one domain, which 4 parents are",
        tree(16, "One domain, .*: switch s4 and s5, s6, s7", leaf=[4] * 4, spine=[16]),
    ),
    "slurmtopo-html-tree2-09.conf": Expected(
        "4 leaves, 1 root, 16 machines", tree(16, leaf=[4] * 4, spine=[16])
    ),
    "slurmtopo-html-tree3-07.conf": Expected(
        "7 switches on 3 levels, 8 machines", tree(8, leaf=[2] * 4, spine=[4, 4], core=[8])
    ),
    "slurmtopo-man-block-10.conf": Expected("4 blocks of 32, 30 of each in use", man_blocks),
    "slurmtopo-man-ring-11.conf": Expected("2 rings of 8", tree(16, "along a ring", ring=[8, 8])),
    "slurmtopo-tree3-02.conf": Expected(
        "1 core, 6 spines, 12 leaves of 8", tree(96, leaf=[8] * 12, spine=[16] * 6, core=[96])
    ),
    "k8slabels-gfd-a100-01.yaml": Expected("1 A100-SXM4-40GB, elided lines noted", gfd),
    "k8slabelsregex-mig-mixed-01.txt": Expected("refused: patterns, not labels", label_patterns),
    "k8slabelsregex-mig-single-02.txt": Expected("refused: patterns, not labels", label_patterns),
    "hived-design-01.yaml": Expected("refused: a configuration of HiveD", hived_design),
    "volcano-hypernodes-01.yaml": Expected("3 tiers of 4, 2, 1 HyperNodes, 8 nodes", hypernodes),
    "volcano-hypernodes-02.yaml": Expected("refused: 4 dangling members; or left out", dangling_hypernodes),
    "topographmodel-nvl72-01.yaml": Expected(
        "4 NVLink domains of 18 below 4 leaves, 2 spines, 1 core", nvl72
    ),
    "topographmodel-medium-02.yaml": Expected("4 NVLink domains of 2, three levels of switches", medium),
    "topographmodel-dual-irregular-03.yaml": Expected("2 domains of 124 and 131 in 29 racks", dual_irregular),
    "netq-computenodes-01.json": Expected("1 NVLink domain of 2 machines with 4 GPUs", compute_nodes),
    "netq-topologygraph-01.json": Expected("2 leaves of 4 machines, 1 spine", topology_graph),
    "ibnetdiscover-dgx-ndr-01.txt": Expected(
        "40 switches, 582 adapters: 8 groups of leaves at 4xNDR", infiniband
    ),
    "ibnetdiscover-bad-02.txt": Expected("refused: a lone Ca", lone_adapter),
}
