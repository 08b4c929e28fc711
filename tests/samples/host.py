"""What hwloc, numactl, AMD's tools and driver, and SC'17's authors say about machines."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest

from samples import Expected
from topoplace import Link, LinkKind, Topology, TopologyError
from topoplace.discovery import kfd, numactl, rocm, rocm_bandwidth

Check = Callable[[bytes], None]
XGMI, HOST, SYSTEM, UNKNOWN = LinkKind.XGMI, LinkKind.HOST, LinkKind.SYSTEM, LinkKind.UNKNOWN


def direct(topology: Topology) -> dict[tuple[int, int], Link]:
    """The pairs with a direct link."""
    return {(u, v): link for u, v, link in topology.links}


def refused(parse: Callable[[bytes], Any], *words: str) -> Check:
    """A check that the sample is refused, and that the message has all `words`."""

    def check(data: bytes) -> None:
        with pytest.raises(TopologyError) as caught:
            parse(data)
        for word in words:
            assert word in str(caught.value)

    return check


def all_linked(n: int, link: Link, names: Callable[[int], str] = "GPU{}".format) -> Check:
    """A check that n GPUs of AMD's tools are all joined by the same link."""

    def check(data: bytes) -> None:
        assert rocm.recognised(data.decode())
        topology = rocm.parse(data)
        assert [gpu.name for gpu in topology.gpus] == [names(i) for i in range(n)]
        assert direct(topology) == dict.fromkeys(combinations(range(n), 2), link)

    return check


BUSES = ("0c", "22", "38", "5c", "9f", "af", "bf", "df")


def mi250_bandwidths(data: bytes) -> None:
    topology = rocm.parse(data)
    lanes = "0-1:4 0-2:1 0-6:2 1-3:1 1-5:1 2-3:4 2-4:2 3-7:1 4-5:4 4-6:1 5-7:1 6-7:4"
    pairs = {(int(word[0]), int(word[2])): int(word[4]) for word in lanes.split()}
    assert topology.num_gpus == 8
    assert direct(topology) == {pair: Link(XGMI, n, 50.0 * n) for pair, n in pairs.items()}
    assert topology.link_kind(0, 3) == HOST
    assert "16 of 28 pairs have no direct link" in topology.notes[0]


def mi250_numa(data: bytes) -> None:
    assert rocm.recognised(data.decode())
    topology = rocm.parse(data)
    assert [gpu.numa_node for gpu in topology.gpus] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert {link.kind for link in direct(topology).values()} == {UNKNOWN}
    assert len(direct(topology)) == 28
    assert "xGMI is not told" in topology.notes[0]


def mi210_tree(data: bytes) -> None:
    topology = kfd.parse(data)
    assert [gpu.model for gpu in topology.gpus] == ["MI210"] * 8
    assert [gpu.numa_node for gpu in topology.gpus] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert [part.name for part in topology.components] == ["NUMA0", "NUMA1"]
    hives = [*combinations(range(4), 2), *combinations(range(4, 8), 2)]
    assert direct(topology) == dict.fromkeys(hives, Link(XGMI, 1, 50.0))
    assert {topology.link_kind(u, v).kind for u in range(4) for v in range(4, 8)} == {SYSTEM}
    assert [link.gbps for _, _, link in topology.component_links] == [32.0] * 8 + [16.0]
    assert len({gpu.bus_id for gpu in topology.gpus} - {None}) == 8


def copied_gpu_tree(data: bytes) -> None:
    topology = kfd.parse(data)
    assert [(gpu.name, gpu.bus_id) for gpu in topology.gpus] == [("GPU0", None), ("GPU1", None)]
    assert len({gpu.uuid for gpu in topology.gpus}) == 2
    assert [part.name for part in topology.components] == ["NUMA0"]
    assert [gpu.numa_node for gpu in topology.gpus] == [0, None]
    assert "nodes/2/io_links/0/properties is a link of node 1" in topology.notes[0]
    assert topology.link_kind(0, 1) == HOST


def adroit(data: bytes) -> None:
    assert numactl.recognised(data.decode())
    numa = numactl.parse(data)
    assert [node.cpus for node in numa.nodes] == [tuple(range(0, 48, 2)), tuple(range(1, 48, 2))]
    assert [node.size_mb for node in numa.nodes] == [515192, 516088]
    assert numa.distances == ((10, 20), (20, 10))


def aurora(data: bytes) -> None:
    assert numactl.recognised(data.decode())
    numa = numactl.parse(data)
    cpus = [numactl.list_of(node.cpus) for node in numa.nodes]
    assert cpus == ["0-51,104-155", "52-103,156-207", "", ""]
    assert numa.distances[0] == (10, 21, 13, 23)
    assert numa.distances[2] == (13, 23, 10, 23)
    assert [numa.distance(3, to) for to in range(4)] == [23, 13, 23, None]  # the sample ends before row 3
    assert numa.notes


EXPECTED = {
    "amdsmitopology-changelog-01.txt": Expected(
        "8 GPUs by PCI address, xGMI on all pairs, 50 GB/s",
        all_linked(8, Link(XGMI, 1, 50.0), lambda i: f"0000:{BUSES[i]}:00.0"),
    ),
    "rocmsmi-litgpt-8gpu-xgmi-05.txt": Expected(
        "8 GPUs, xGMI on all pairs, speed assumed and noted", all_linked(8, Link(XGMI, 1, 46.0))
    ),
    "rocmsmi-4xMI250-shownodesbw-06.txt": Expected(
        "8 GPUs, xGMI on 12 pairs of 1, 2 and 4 lanes, 16 pairs not direct", mi250_bandwidths
    ),
    "rocmsmi-4xMI250-numaonly-07.txt": Expected("8 GPUs on 2 NUMA nodes, kinds of links unknown", mi250_numa),
    "rocmbw-4xMI250-measured-01.txt": Expected(
        "refused: copies of processors, none from GPU to GPU",
        refused(rocm_bandwidth.parse, "line 3", "no copy from GPU to GPU was measured", "cpu0, cpu1"),
    ),
    "kfd-mi210-8gpu-xgmi-pcie-01.tar": Expected(
        "2 hives of 4 MI210, xGMI inside at 50 GB/s, PCIe across", mi210_tree
    ),
    "kfd-topology-parsing-02.tar": Expected("1 NUMA node and 2 GPUs of one PCI address", copied_gpu_tree),
    "numactl-adroit-06.txt": Expected("2 NUMA nodes of 24 CPUs, distance 20", adroit),
    "numactl-aurora-spr-hbm-01.txt": Expected("4 NUMA nodes, 2 of them memory only", aurora),
}
