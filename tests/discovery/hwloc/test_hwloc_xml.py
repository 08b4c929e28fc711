from __future__ import annotations

import re
from pathlib import Path

import pytest

import topoplace as tp
from refusals import refusal
from topoplace.discovery.hwloc import hwloc_xml
from topoplace.topology import compare
from topoplace.topology.devices import ComponentKind

NVSWITCH, SYSTEM, HOST, PCIE = tp.LinkKind.NVSWITCH, tp.LinkKind.SYSTEM, tp.LinkKind.HOST, tp.LinkKind.PCIE


@pytest.fixture
def switches(repository: Path) -> str:
    """Two sockets; two GPUs below one PCIe switch and an NVSwitch, a third below the other NVSwitch."""
    return (repository / "tests/data/hwloc-v3-switches.xml").read_text("utf-8")


@pytest.fixture
def packages(repository: Path) -> str:
    """Two P100 with NVLinks to their socket, and a co-processor that is no display device on the other socket."""
    return (repository / "tests/data/hwloc-v2-packages.xml").read_text("utf-8")


def without_matrix(text: str) -> str:
    return re.sub(r"<distances2hetero.*</distances2hetero>", "", text, flags=re.DOTALL)


def test_gpus_with_what_hwloc_knows_of_them(switches: str) -> None:
    topology = hwloc_xml.parse(switches)
    assert topology.gpus[0] == tp.Gpu(
        0,
        "GPU0",
        "Tesla V100-SXM3-32GB",
        socket=0,
        memory_gb=32.0,
        uuid="GPU-0",
        bus_id="0000:13:00.0",
        numa_node=0,
        cpus="0-1",
        maker="NVIDIA",
    )
    assert [(gpu.bus_id, gpu.socket, gpu.cpus) for gpu in topology.gpus[1:]] == [
        ("0000:14:00.0", 0, "0-1"),
        ("0000:81:00.0", 1, "2-3"),
    ]


@pytest.mark.parametrize(("idle", "believed"), [("1.0", 15.5), ("4.0", 15.5), ("2.0", 15.5), ("3.9", 3.9)])
def test_an_idle_bridge_is_not_believed(switches: str, idle: str, believed: float) -> None:
    text = without_matrix(switches).replace('pci_link_speed="7.5"', f'pci_link_speed="{idle}"')
    topology = hwloc_xml.parse(text)
    kinds = {(a, b): link.gb_per_s for a, b, link in topology.component_links}
    assert kinds[3, 7] == believed
    noted = any("speed of PCIe 1, as idle ones do" in note for note in topology.notes)
    assert noted == (believed == 15.5)


def test_a_slow_accelerator_is_believed(switches: str) -> None:
    slow = re.sub('pci_link_speed="(15.5|7.5)"', 'pci_link_speed="1.0"', without_matrix(switches))
    topology = hwloc_xml.parse(slow)
    assert {link.gb_per_s for _, _, link in topology.component_links if link.kind is PCIE} == {1.0}
    assert any("no such link is known" in one.why and one.serious for one in compare.check(topology))


@pytest.mark.parametrize(
    ("pci_type", "name", "is_adapter"),
    [
        ("0200 [17db:0501]", "hsn0", True),
        ("0200 [17db:0501]", "eth3", True),
        ("0200 [15b3:1013]", "hsn1", True),
        ("0208 [8086:24f0]", "opa0", True),
        ("0200 [8086:1521]", "eth0", False),
    ],
    ids=["Slingshot", "Slingshot by another name", "by its name", "Omni-Path", "Ethernet"],
)
@pytest.mark.parametrize("version", [2, 3])
def test_fast_adapters_without_an_rdma_device(
    switches: str, pci_type: str, name: str, is_adapter: bool, version: int
) -> None:
    text = re.sub(r'<object type="OSDev"[^>]*name="mlx5_0"[^>]*/>', "", without_matrix(switches))
    text = text.replace("0207 [15b3:1013]", pci_type).replace('name="ib0"', f'name="{name}"')
    if version == 2:
        text = re.sub('<topology version="[^"]*"', '<topology version="2.0"', text)
        text = text.replace('osdev_type="16"', 'osdev_type="2"').replace('osdev_type="12"', 'osdev_type="5"')
    expected = [(name, ("PIX", "PIX", "SYS"))] if is_adapter else []
    assert [(nic.name, nic.paths) for nic in hwloc_xml.parse(text).nics] == expected


def test_components_and_the_links_of_pcie(switches: str) -> None:
    topology = hwloc_xml.parse(without_matrix(switches))
    assert [(part.kind, part.name) for part in topology.components] == [
        (ComponentKind.SOCKET, "socket0"),
        (ComponentKind.SOCKET, "socket1"),
        (ComponentKind.NUMA_NODE, "NUMA0"),
        (ComponentKind.NUMA_NODE, "NUMA1"),
        (ComponentKind.PCIE_SWITCH, "PCIe 0000:11:00.0"),
        (ComponentKind.NVSWITCH, "NVSwitch 0000:16:00.0"),
        (ComponentKind.NVSWITCH, "NVSwitch 0000:82:00.0"),
    ]
    links = {(a, b): (link.kind, link.gb_per_s) for a, b, link in topology.component_links}
    assert links == {
        (0, 7): (PCIE, 15.5),  # the lower ports of the switch repeat the speed, wrongly
        (1, 7): (PCIE, 15.5),
        (3, 7): (PCIE, 7.5),
        (2, 4): (PCIE, 15.5),
        (3, 4): (SYSTEM, 10.0),
    }
    assert topology.link(0, 1) == tp.Link(PCIE, 1, 15.5)
    assert topology.link(0, 2) == tp.Link(SYSTEM, 1, 7.5)
    assert topology.notes == (
        "Neither NVLinkBandwidth nor XGMIBandwidth is there: such links, if any, are not given.",
    )


def test_nvswitches_join_gpus_at_the_speed_of_all_their_links(switches: str) -> None:
    topology = hwloc_xml.parse(switches.encode())
    pairs = ((0, 1), (0, 2), (1, 2))
    assert [topology.link(*pair) for pair in pairs] == [tp.Link(NVSWITCH, 2, 50.0)] * 3
    assert topology.notes == (
        "The NVSwitches are in 2 groups, and links between those are not given: they are taken as wide enough for "
        "all GPUs.",
    )


def test_network_adapters_with_their_paths(switches: str) -> None:
    assert [(nic.name, nic.paths) for nic in hwloc_xml.parse(switches).nics] == [
        ("mlx5_0", ("PIX", "PIX", "SYS"))
    ]


def test_nvlinks_to_sockets_and_accelerators_that_are_no_gpus(packages: str) -> None:
    topology = hwloc_xml.parse(packages, pcie_gb_per_s=10.0)
    assert [gpu.bus_id for gpu in topology.gpus] == ["0002:01:00.0", "0003:01:00.0", "000a:01:00.0"]
    nvlinks = tp.Link(tp.LinkKind.NVLINK1, 2, 40.0)
    assert topology.links == ((0, 1, nvlinks),)
    assert [link for link in topology.component_links if link[:2] in ((0, 3), (1, 3))] == [
        (0, 3, nvlinks),
        (1, 3, nvlinks),
    ]
    assert (topology.gpus[2].memory_gb, topology.gpus[2].cpus) == (1.024, "64")
    assert topology.link(0, 2) == tp.Link(SYSTEM, 1, 6.0)
    assert topology.notes == (
        "The speed between sockets is not given: 6 GB/s is assumed; see socket_gb_per_s.",
        "The speed of 1 PCIe links is not given: 10 GB/s is assumed.",
    )
    faster = hwloc_xml.parse(packages, pcie_gb_per_s=10.0, socket_gb_per_s=38.4)
    assert faster.link(0, 2) == tp.Link(SYSTEM, 1, 10.0)


@pytest.mark.parametrize(
    ("infos", "gb_per_s"),
    [
        ('name="CPUModel" value="POWER9, altivec supported"', 32.0),
        ('name="CPUModel" value="AMD EPYC 7763 64-Core Processor"', 16.0),
        ('name="CPUImplementer" value="0x41"', 6.0),
        ('name="CPUModel" value="Intel(R) Xeon(R) CPU E5-2650 0 @ 2.00GHz"', None),
    ],
)
def test_the_speed_between_sockets_is_that_of_the_processor(
    packages: str, infos: str, gb_per_s: float | None
) -> None:
    text = packages.replace('name="CPUModel" value="POWER8NVL, altivec supported"', infos)
    topology = hwloc_xml.parse(text)
    assert next(link for link in topology.component_links if link[:2] == (3, 4))[2].gb_per_s == (
        gb_per_s or 6.0
    )
    assert ("The speed between sockets" in topology.notes[0]) == (gb_per_s is None)


def homogeneous(packages: str, name: str, values: str) -> str:
    matrix = (
        f'<distances2 type="OSDev" nbobjs="2" kind="9" name="{name}" indexing="gp">'
        f"<indexes>11 7</indexes><u64values>{values}</u64values></distances2>"
    )
    return without_matrix(packages).replace("</topology>", f"{matrix}</topology>")


def test_a_matrix_of_one_type_and_the_slower_direction_counts(packages: str) -> None:
    topology = hwloc_xml.parse(homogeneous(packages, "NVLinkBandwidth", "0 40000 20000 0"))
    assert topology.links == ((0, 1, tp.Link(tp.LinkKind.NVLINK1, 1, 20.0)),)


def test_xgmi_bandwidths_and_a_model_that_is_not_known(packages: str) -> None:
    text = homogeneous(packages, "XGMIBandwidth", "0 100000 100000 0")
    assert hwloc_xml.parse(text.replace("Tesla P100-SXM2-16GB", "AMD Instinct MI250X")).links == (
        (0, 1, tp.Link(tp.LinkKind.XGMI, 2, 100.0)),
    )
    assert hwloc_xml.parse(text).links == ((0, 1, tp.Link(tp.LinkKind.XGMI, 1, 100.0)),)
    unknown = homogeneous(packages, "NVLinkBandwidth", "0 40000 40000 0").replace("P100", "T1000")
    assert hwloc_xml.parse(unknown).links == ((0, 1, tp.Link(tp.LinkKind.NVLINK, 1, 40.0)),)


def test_hops_tell_no_links(packages: str) -> None:
    links = hwloc_xml.parse(homogeneous(packages, "XGMIHops", "0 1 1 0")).links
    assert {link.kind for _, _, link in links} == {tp.LinkKind.HOST_BRIDGES}  # two bridges of one socket


class Tree:
    """hwloc's XML of one package, made of nested bridges and GPUs."""

    def __init__(self) -> None:
        self.bus = 0

    def _address(self) -> str:
        self.bus += 1
        return f"0000:{self.bus:02x}:00.0"

    def gpu(self) -> str:
        kind = 'pci_type="0302 [10de:20b0] [10de:20b0] a1"'
        return f'<object type="PCIDev" pci_busid="{self._address()}" {kind} pci_link_speed="31.5"/>'

    def port(self, *below: str) -> str:
        kind = 'bridge_type="1-1" pci_type="0604 [1000:c010] [0000:0000] 00" pci_link_speed="31.5"'
        return f'<object type="Bridge" pci_busid="{self._address()}" {kind}>{"".join(below)}</object>'

    def switch(self, *below: str) -> str:
        """A switch has an upper port, and a lower port for each thing below it."""
        return self.port(*map(self.port, below))

    def parsed(self, *host_bridges: str) -> tp.Topology:
        hosts = "".join(f'<object type="Bridge" bridge_type="0-1">{below}</object>' for below in host_bridges)
        sets = 'cpuset="0x1" nodeset="0x1"'
        package = f'<object type="Package" os_index="0" {sets}>{hosts}</object>'
        machine = f'<object type="Machine" os_index="0" {sets}>{package}</object>'
        return hwloc_xml.parse(f'<topology version="2.0">{machine}</topology>')


def test_bridges_on_the_way_are_counted() -> None:
    tree = Tree()
    inner = tree.switch(tree.gpu(), tree.gpu())
    first = tree.port(tree.switch(inner, tree.gpu()))
    second = tree.port(tree.gpu())
    topology = tree.parsed(first + second, tree.port(tree.gpu()))
    found = [topology.link(0, gpu).kind.label for gpu in range(1, 5)]
    assert found == ["PIX", "PXB", "PHB", "NODE"]
    apart = Tree()
    far = apart.parsed(apart.port(apart.switch(apart.switch(apart.gpu()), apart.gpu())))
    assert far.link(0, 1).kind.label == "PXB"  # the inner switch joins nothing, and is no vertex


@pytest.mark.parametrize(
    ("vendor", "device", "found"),
    [
        ("10de", "1094", True),
        ("1002", "6798", True),
        ("1002", "515e", False),
        ("102b", "0532", False),
        ("1a03", "2000", False),
    ],
)
def test_which_display_devices_are_accelerators(vendor: str, device: str, found: bool) -> None:
    text = f"""<topology version="2.1"><object type="Machine" cpuset="0x1" nodeset="0x1">
        <object type="PCIDev" pci_busid="0000:05:03.0" pci_type="0300 [{vendor}:{device}] [0000:0000] 0a"/>
        </object></topology>"""
    if found:
        topology = hwloc_xml.parse(text)
        assert (topology.num_gpus, topology.gpus[0].socket, topology.components) == (1, None, ())
    else:
        assert refusal(hwloc_xml.parse, text) == (
            "no accelerator: none of the 1 PCI devices is a GPU or a co-processor; display devices of the board: "
            f"0000:05:03.0 [{vendor}:{device}]"
        )


def with_devices(*pci_types: str) -> str:
    """Return hwloc's XML of a machine with these PCI devices."""
    devices = "".join(
        f'<object type="PCIDev" pci_busid="0000:{bus:02x}:00.0" pci_type="{kind} [0000:0000] 0a"/>'
        for bus, kind in enumerate(pci_types, 1)
    )
    machine = f'<object type="Machine" cpuset="0x1" nodeset="0x1">{devices}</object>'
    return f'<topology version="2.1">{machine}</topology>'


@pytest.mark.parametrize(
    "kind", ["1200 [1da3:1020]", "1200 [19e5:d801]", "1200 [1002:74a1]", "0380 [1d94:62b7]"]
)
def test_processing_accelerators_for_machine_learning_are_read(kind: str) -> None:
    topology = hwloc_xml.parse(with_devices(*[kind] * 8, "0300 [19e5:1711]"))
    assert [gpu.bus_id for gpu in topology.gpus] == [f"0000:{bus:02x}:00.0" for bus in range(1, 9)]


def test_other_devices_of_the_classes_of_accelerators_are_noted_or_named_in_the_refusal() -> None:
    others = ["1200 [10ee:5020]", "1200 [10ee:5020]", "0380 [8086:4626]"]
    left = "2 x class 1200 [10ee:5020], 1 x class 0380 [8086:4626]"
    topology = hwloc_xml.parse(with_devices("0302 [10de:20b0]", *others, "0300 [1a03:2000]"))
    assert topology.num_gpus == 1
    assert (
        f"Devices of the PCI classes of accelerators, which no driver offers, are left out: {left}."
        in topology.notes
    )
    assert refusal(hwloc_xml.parse, with_devices(*others)) == (
        "no accelerator: none of the 3 PCI devices is a GPU or a co-processor; "
        f"devices of the PCI classes of accelerators, which no driver offers: {left}"
    )
    many = hwloc_xml.parse(with_devices("0302 [10de:20b0]", *(f"1200 [10ee:{i:04x}]" for i in range(10))))
    assert any(note.endswith("[10ee:0007], 2 more kinds.") for note in many.notes)


def test_a_gpu_near_two_sockets_is_on_none(switches: str) -> None:
    start = switches.index('<object type="Bridge" gp_index="32"')
    bridge = switches[start : switches.index('<object type="PCIDev" gp_index="36"')]
    end = "  </object>\n  <distances2 type"
    text = switches.replace(bridge, '<object type="Bridge">').replace(end, f"{bridge}</object>{end}")
    gpu = hwloc_xml.parse(text).gpus[2]
    assert (gpu.bus_id, gpu.socket, gpu.numa_node, gpu.cpus) == ("0000:81:00.0", None, None, "0-3")


def test_other_documents_are_refused() -> None:
    with pytest.raises(tp.TopologyError, match=r"^line 1: 'system' is not a topology of hwloc"):
        hwloc_xml.parse("<system/>")
    with pytest.raises(tp.TopologyError, match=r"^line 1: hwloc's XML is not well-formed"):
        hwloc_xml.parse("lstopo")


def test_recognised(switches: str) -> None:
    assert hwloc_xml.recognised(switches)
    assert hwloc_xml.recognised('<?xml version="1.0"?>\n<topology>\n')
    assert not hwloc_xml.recognised('<system version="1">')


def test_the_memory_of_a_gpu_is_no_numa_node_of_cpus(switches: str) -> None:
    memory = (
        '<object type="NUMANode" subtype="GPUMemory" os_index="4294967000" local_memory="16000000000">'
        '<info name="PCIBusID" value="0000:81:00.0"/></object>'
    )
    text = switches.replace(
        '<object type="Bridge" gp_index="32"', f'{memory}<object type="Bridge" gp_index="32"'
    )
    topology = hwloc_xml.parse(text)
    assert topology.gpus[2].memory_gb == 16.0
    assert topology.components == hwloc_xml.parse(switches).components


def test_one_speed_of_xgmi_for_all_pairs_is_pointed_out(packages: str) -> None:
    note = "XGMIBandwidth is 100 GB/s or none: so hwloc with ROCm SMI writes any xGMI, direct or not."
    assert note in hwloc_xml.parse(homogeneous(packages, "XGMIBandwidth", "0 100000 100000 0")).notes
    assert note not in hwloc_xml.parse(homogeneous(packages, "XGMIBandwidth", "0 50000 50000 0")).notes


def test_a_coprocessor_below_a_device_of_another_maker_is_not_believed(packages: str) -> None:
    name = 'name="opencl0d0" subtype="OpenCL" osdev_type="5">'
    assert hwloc_xml.parse(packages).num_gpus == 3
    of_another = packages.replace(name, name + '<info name="GPUVendor" value="NVIDIA Corporation"/>')
    assert of_another != packages
    assert hwloc_xml.parse(of_another).num_gpus == 2


HWLOC_1 = """<topology>
  <object type="Machine" os_index="0" cpuset="0x0000000f" nodeset="0x00000003">
    <distances nbobjs="2" relative_depth="1" latency_base="10.0"><latency value="1.0"/></distances>
    <object type="NUMANode" os_index="0" cpuset="0x00000003" nodeset="0x00000001" local_memory="1000">
      <page_type size="4096" count="10"/>
      <object type="Socket" os_index="0" cpuset="0x00000003" nodeset="0x00000001"/>
      <object type="Bridge" os_index="0" bridge_type="0-1" depth="0" bridge_pci="0000:[00-01]">
        <object type="PCIDev" os_index="1" pci_busid="0000:01:00.0" pci_type="0302 [10de:1db1] [10de:0000] a1">
          <object type="OSDev" name="card1" osdev_type="1"/>
        </object>
      </object>
    </object>
    <object type="NUMANode" os_index="1" cpuset="0x0000000c" nodeset="0x00000002" local_memory="1000">
      <object type="Socket" os_index="1" cpuset="0x0000000c" nodeset="0x00000002"/>
      <object type="Bridge" os_index="1" bridge_type="0-1" depth="0" bridge_pci="0000:[80-81]">
        <object type="PCIDev" os_index="2" pci_busid="0000:81:00.0" pci_type="0302 [10de:1db1] [10de:0000] a1"/>
        <object type="PCIDev" os_index="3" pci_busid="0000:82:00.0" pci_type="0207 [15b3:1019] [15b3:0000] 00">
          <object type="OSDev" name="mlx5_0" osdev_type="3"/>
        </object>
      </object>
    </object>
  </object>
</topology>
"""


def test_hwloc_1_has_numa_nodes_around_packages() -> None:
    topology = tp.discovery.read(HWLOC_1)
    assert topology.gpus == (
        tp.Gpu(0, "GPU0", socket=0, bus_id="0000:01:00.0", numa_node=0, cpus="0-1", maker="NVIDIA"),
        tp.Gpu(1, "GPU1", socket=1, bus_id="0000:81:00.0", numa_node=1, cpus="2-3", maker="NVIDIA"),
    )
    assert topology.link(0, 1).kind is SYSTEM
    assert topology.nics == (tp.Nic("mlx5_0", ("SYS", "PHB")),)
    assert topology == hwloc_xml.parse(HWLOC_1.replace("Socket", "Package"))
