"""What hwloc, numactl, AMD's tools and driver, and SC'17's authors say about machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest

from samples import Expected
from topoplace import Link, LinkKind, Topology, TopologyError
from topoplace.discovery.amd import kfd, smi_tables
from topoplace.discovery.hwloc import hwloc_xml, lstopo_console
from topoplace.discovery.linux import numactl
from topoplace.discovery.measurements import rocm_bandwidth_test
from topoplace.discovery.text.cpu_list import list_of
from topoplace.topology.devices import ComponentKind
from topoplace.topology.links.link_kinds import PATH_KINDS
from topoplace_lab.research import hiest

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
        assert smi_tables.recognised(data.decode())
        topology = smi_tables.parse(data)
        assert [gpu.name for gpu in topology.gpus] == [names(i) for i in range(n)]
        assert direct(topology) == dict.fromkeys(combinations(range(n), 2), link)

    return check


BUSES = ("0c", "22", "38", "5c", "9f", "af", "bf", "df")


def mi250_bandwidths(data: bytes) -> None:
    topology = smi_tables.parse(data)
    lanes = "0-1:4 0-2:1 0-6:2 1-3:1 1-5:1 2-3:4 2-4:2 3-7:1 4-5:4 4-6:1 5-7:1 6-7:4"
    pairs = {(int(word[0]), int(word[2])): int(word[4]) for word in lanes.split()}
    assert topology.num_gpus == 8
    found = {pair: link for pair, link in direct(topology).items() if link.kind is XGMI}
    assert found == {pair: Link(XGMI, n, 50.0 * n) for pair, n in pairs.items()}
    assert topology.link(0, 3).kind is LinkKind.XGMI_RELAYED
    assert "16 of 28 pairs have no direct link" in topology.notes[0]


def mi250_numa(data: bytes) -> None:
    assert smi_tables.recognised(data.decode())
    topology = smi_tables.parse(data)
    assert [gpu.numa_node for gpu in topology.gpus] == [0, 0, 0, 0, 1, 1, 1, 1]
    kinds = [link.kind for link in direct(topology).values()]
    assert (kinds.count(UNKNOWN), kinds.count(SYSTEM)) == (12, 16)
    assert "xGMI is not given" in topology.notes[0]


def mi210_tree(data: bytes) -> None:
    topology = kfd.parse(data)
    assert [gpu.model for gpu in topology.gpus] == ["MI210"] * 8
    assert [gpu.numa_node for gpu in topology.gpus] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert [part.name for part in topology.components] == ["NUMA0", "NUMA1"]
    hives = [*combinations(range(4), 2), *combinations(range(4, 8), 2)]
    assert direct(topology) == dict.fromkeys(hives, Link(XGMI, 1, 50.0))
    assert {topology.link(u, v).kind for u in range(4) for v in range(4, 8)} == {SYSTEM}
    assert [link.gb_per_s for _, _, link in topology.component_links] == [32.0] * 8 + [16.0]
    assert len({gpu.bus_id for gpu in topology.gpus} - {None}) == 8


def copied_gpu_tree(data: bytes) -> None:
    topology = kfd.parse(data)
    assert [(gpu.name, gpu.bus_id) for gpu in topology.gpus] == [("GPU0", None), ("GPU1", None)]
    assert len({gpu.uuid for gpu in topology.gpus}) == 2
    assert [part.name for part in topology.components] == ["NUMA0"]
    assert [gpu.numa_node for gpu in topology.gpus] == [0, None]
    assert "nodes/2/io_links/0/properties is a link of node 1" in topology.notes[0]
    assert topology.link(0, 1).kind is HOST


def adroit(data: bytes) -> None:
    assert numactl.recognised(data.decode())
    numa = numactl.parse(data)
    assert [node.cpus for node in numa.nodes] == [tuple(range(0, 48, 2)), tuple(range(1, 48, 2))]
    assert [node.size_mb for node in numa.nodes] == [515192, 516088]
    assert numa.distances == ((10, 20), (20, 10))


def aurora(data: bytes) -> None:
    assert numactl.recognised(data.decode())
    numa = numactl.parse(data)
    cpus = [list_of(node.cpus) for node in numa.nodes]
    assert cpus == ["0-51,104-155", "52-103,156-207", "", ""]
    assert numa.distances[0] == (10, 21, 13, 23)
    assert numa.distances[2] == (13, 23, 10, 23)
    assert [numa.distance(3, to) for to in range(4)] == [23, 13, 23, None]  # the sample ends before row 3
    assert numa.notes


def parts(topology: Topology) -> Counter[ComponentKind]:
    return Counter(part.kind for part in topology.components)


def dgx2(data: bytes) -> None:
    assert hwloc_xml.recognised(data.decode())
    topology = hwloc_xml.parse(data)
    assert [gpu.model for gpu in topology.gpus] == ["Tesla V100-SXM3-32GB-H"] * 16
    assert [gpu.socket for gpu in topology.gpus] == [0] * 8 + [1] * 8
    kinds = parts(topology)
    assert (kinds[ComponentKind.SOCKET], kinds[ComponentKind.NUMA_NODE], kinds[ComponentKind.NVSWITCH]) == (
        2,
        2,
        12,
    )
    assert kinds[ComponentKind.PCIE_SWITCH] == 12  # of two GPUs each, and one above two of those
    assert direct(topology) == {}
    pairs = combinations(range(16), 2)
    assert {topology.link(u, v) for u, v in pairs} == {Link(LinkKind.NVSWITCH, 6, 150.0)}
    switch = len(topology.gpus) + len(topology.components) - 12
    ports = [link for a, b, link in topology.component_links if a < 16 and b >= switch]
    assert ports == [Link(LinkKind.NVLINK2, 1, 25.0)] * 96
    assert "links between those are not given" in topology.notes[0]


def minsky(data: bytes) -> None:
    assert hwloc_xml.recognised(data.decode())
    topology = hwloc_xml.parse(data)
    assert [gpu.model for gpu in topology.gpus] == ["Tesla P100-SXM2-16GB"] * 4
    assert [gpu.socket for gpu in topology.gpus] == [0, 0, 1, 1]
    assert parts(topology) == {ComponentKind.SOCKET: 2, ComponentKind.NUMA_NODE: 2}
    nvlinks = Link(LinkKind.NVLINK1, 2, 40.0)
    assert direct(topology) == {(0, 1): nvlinks, (2, 3): nvlinks}
    to_sockets = {(a, b): link for a, b, link in topology.component_links if a < 4}
    assert to_sockets == dict.fromkeys([(0, 4), (1, 4), (2, 5), (3, 5)], nvlinks)
    assert topology.link(1, 2).kind is SYSTEM


def sandybridge(data: bytes) -> None:
    assert hwloc_xml.recognised(data.decode())
    topology = hwloc_xml.parse(data)
    assert [(gpu.bus_id, gpu.socket) for gpu in topology.gpus] == [
        ("0000:03:00.0", 0),
        ("0000:83:00.0", 1),
        ("0000:84:00.0", 1),
        ("0000:84:00.1", 1),
    ]
    models = [gpu.model or "" for gpu in topology.gpus]
    assert [model.split()[0] for model in models] == ["Tesla", "Tesla", "Tesla", "AMD"]
    kinds = parts(topology)
    assert (kinds[ComponentKind.SOCKET], kinds[ComponentKind.NUMA_NODE]) == (2, 2)
    assert [nic.name for nic in topology.nics] == ["mlx5_0"]
    assert topology.link(0, 1).kind is SYSTEM
    assert topology.link(1, 2).kind is HOST
    assert topology.link(2, 3).kind is LinkKind.PCIE


def power9(memory: bool) -> Check:
    """A check of the six GPUs of a POWER9 machine, whose memory is shown or not."""

    def check(data: bytes) -> None:
        assert lstopo_console.recognised(data.decode())
        topology = lstopo_console.parse(data)
        assert [gpu.socket for gpu in topology.gpus] == [0, 0, 0, 1, 1, 1]
        assert [gpu.numa_node for gpu in topology.gpus] == [0, 0, 0, 8, 8, 8]
        assert [part.name for part in topology.components] == ["socket0", "socket1", "NUMA0", "NUMA8"]
        assert {gpu.memory_gb is not None for gpu in topology.gpus} == {memory}
        assert any("taken as GPUs" in note for note in topology.notes) != memory

    return check


def hiest_machines(count: int) -> Check:
    """A check of machines of two sockets of two linked GPUs."""

    def check(data: bytes) -> None:
        assert hiest.recognised(data.decode())
        topology = hiest.parse(data)
        assert topology.num_machines == count
        assert [gpu.socket for gpu in topology.gpus] == [0, 0, 1, 1] * count
        assert {gpu.memory_gb for gpu in topology.gpus} == {16.0}
        assert topology.distance_matrix()[0, :4].tolist() == [0, 1, 20, 20]
        assert [link.kind in PATH_KINDS for link in direct(topology).values()].count(False) == 2 * count
        assert f"socket_distance of {count} machines is not symmetric" in topology.notes[1]

    return check


EXPECTED = {
    "hwloc-dgx2-16xV100-01.xml": Expected("16 GPUs on 12 NVSwitches, 150 GB/s for all pairs", dgx2),
    "hwloc-power8-minsky-4xP100-02.xml": Expected(
        "4 GPUs, 2 NVLinks in pairs and to their socket, 40 GB/s", minsky
    ),
    "hwloc-2s-sandybridge-3xM2090-03.xml": Expected("4 GPUs, 3 of them NVIDIA; no VGA", sandybridge),
    "hwloc-2s-sandybridge-normalio-04.xml": Expected("4 GPUs, 3 of them NVIDIA; no VGA", sandybridge),
    "hwloc-dgx-spark-gb10-05.xml": Expected(
        "refused: no accelerator", refused(hwloc_xml.parse, "no accelerator: none of the 0 PCI devices")
    ),
    "hwloc-4s-nogpu-06.xml": Expected(
        "refused: no accelerator, only the board's VGA",
        refused(hwloc_xml.parse, "no accelerator", "0000:01:00.0 [1002:515e]"),
    ),
    "hwloc-2s-manyvfs-07.xml": Expected(
        "refused: no accelerator", refused(hwloc_xml.parse, "no accelerator: none of the 18 PCI devices")
    ),
    "hwlocconsole-power9-ac922-6xV100-01.txt": Expected("6 GPUs on 2 sockets and 2 NUMA nodes", power9(True)),
    "hwlocconsole-power9-ac922-nogpumem-02.txt": Expected(
        "6 GPUs on 2 sockets and 2 NUMA nodes, taken as GPUs with a note", power9(False)
    ),
    "hiest-infra-minsky-1m-01.json": Expected("1 machine of 4 GPUs, distances 1 and 20", hiest_machines(1)),
    "hiest-infra-4m-02.json": Expected("3 machines of 4 GPUs (4m is only in its name)", hiest_machines(3)),
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
        refused(rocm_bandwidth_test.parse, "line 3", "no copy from GPU to GPU was measured", "cpu0, cpu1"),
    ),
    "kfd-mi210-8gpu-xgmi-pcie-01.tar": Expected(
        "2 hives of 4 MI210, xGMI inside at 50 GB/s, PCIe across", mi210_tree
    ),
    "kfd-topology-parsing-02.tar": Expected("1 NUMA node and 2 GPUs of one PCI address", copied_gpu_tree),
    "numactl-adroit-06.txt": Expected("2 NUMA nodes of 24 CPUs, distance 20", adroit),
    "numactl-aurora-spr-hbm-01.txt": Expected("4 NUMA nodes, 2 of them memory only", aurora),
}
