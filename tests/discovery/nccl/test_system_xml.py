from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from growth import assert_linear
from topoplace.discovery.nccl import system_xml
from topoplace.topology.links.link_kinds import Link

LinkKind = tp.LinkKind
DATA = Path(__file__).parents[2] / "data"


def fixture(name: str) -> str:
    return (DATA / f"{name}.xml").read_text("utf-8")


NVSWITCH, SKELETON, C2C, POWER9, SELF_LOOPS, XGMI, GRAPH = (
    fixture(name)
    for name in (
        *("nccl-nvswitch-4gpu", "nccl-skeleton-3gpu", "nccl-c2c-2gpu", "nccl-power9-4gpu"),
        *("nccl-selfloop-2gpu", "rccl-xgmi-4gpu", "ncclgraph-2gpu"),
    )
)


def pairs(topology: tp.Topology) -> Counter[tuple[LinkKind, int, float]]:
    links = (topology.link(u, v) for v in range(topology.num_gpus) for u in range(v))
    return Counter((link.kind, link.lanes, link.gb_per_s) for link in links)


def test_nvswitches_join_every_pair_at_full_speed() -> None:
    topology = system_xml.parse(NVSWITCH)
    assert topology == tp.Topology.from_nccl_xml(NVSWITCH.encode())
    assert pairs(topology) == {(LinkKind.NVSWITCH, 18, 450.0): 3, (LinkKind.NVSWITCH, 14, 350.0): 3}
    assert topology.link(0, 2) == Link(LinkKind.NVSWITCH, 18, 450.0)
    assert [gpu.name for gpu in topology.gpus] == ["GPU0", "GPU1", "GPU2", "GPU3"]
    assert [gpu.bus_id for gpu in topology.gpus][2:] == ["0000:91:00.0", "0000:81:00.0"]
    assert [(gpu.numa_node, gpu.socket) for gpu in topology.gpus] == [(0, 0), (0, 0), (1, 1), (1, 1)]
    assert [gpu.cpus for gpu in topology.gpus][1:3] == ["0-7,16-23", "8-15,24-31"]
    assert [component.name for component in topology.components] == [
        *("NUMA 0", "NUMA 1", "0000:10:00.0", "0000:20:00.0", "0000:21:00.0"),
        *("NVSwitch 0000:e1:00.0", "NVSwitch 0000:e2:00.0"),
    ]


def test_a_gpu_that_is_not_on_the_switches_of_the_others_is_noted() -> None:
    links = NVSWITCH.partition('<gpu dev="3"')[2].partition(">")[2].partition("</gpu>")[0]
    (note,) = system_xml.parse(NVSWITCH.replace(links, "")).notes[:1]
    assert note == "GPU3 has no links to a switch, as others have."
    nameless = '<nvlink target="fffffff:ffff:ff" count="18" tclass="0x068000"/>'
    (note,) = system_xml.parse(NVSWITCH.replace(links, nameless)).notes[:1]
    assert note == "Links from GPU3 to fffffff:ffff:ff (18) lead to no other GPU of the file."


def test_adapters_have_paths_speeds_and_rails() -> None:
    topology = system_xml.parse(NVSWITCH)
    assert topology.nics == (
        tp.Nic("ib0", ("PIX", "PHB", "SYS", "SYS"), 50.0, 0),
        tp.Nic("0000:23:00.0", ("PHB", "PXB", "SYS", "SYS")),
        tp.Nic("eth0", ("PHB", "PHB", "SYS", "SYS"), 1.25, 1),
    )
    assert [gpu.rail for gpu in topology.gpus] == [None] * 4  # GPU2 and GPU3 have no adapter of their own
    one_switch = NVSWITCH.replace('<pci busid="0000:21:00.0" class="0x060400"', '<pci busid="0000:21:00.0"')
    assert system_xml.parse(one_switch) == topology


def test_pcie_speeds_as_written_or_assumed() -> None:
    plain = NVSWITCH.replace("nvlink", "wire")
    topology = system_xml.parse(plain, pcie_gb_per_s=10.0)
    assert topology.link(0, 1) == Link(LinkKind.HOST, 1, 15.75)  # eight lanes at 16 GT/s
    assert topology.link(2, 3) == Link(LinkKind.HOST, 1, 10.0)
    assert topology.link(0, 3) == Link(LinkKind.SYSTEM, 1, 10.0)
    assert topology.notes == (
        "Elements that were not read: 'wire', 8 times.",
        "No speed is given for 2 of 7 PCIe links: 10 GB/s is assumed.",
    )
    told = plain.replace('link_speed=""', 'link_speed="64.0 GT/s PCIe"').replace('width="0"', 'width="16"')
    told = told.replace('"Unknown speed" link_width="255"', '"2.5 GT/s" link_width="16"')
    assert system_xml.parse(told).link(2, 3) == Link(LinkKind.HOST, 1, 4.0)
    assert system_xml.parse(told).link(0, 3) == Link(LinkKind.SYSTEM, 1, 22.0)  # between the two CPUs
    assert system_xml.parse(told).notes == ("Elements that were not read: 'wire', 8 times.",)


def test_skeletons_do_not_tell_of_nvlink() -> None:
    topology = system_xml.parse(SKELETON)
    assert pairs(topology) == {(LinkKind.UNKNOWN, 1, 31.5): 1, (LinkKind.SYSTEM, 1, 7.875): 2}
    assert "PCIe path: 1; pairs across sockets, taken as SYS: 2; assume_no_nvlink=True" in topology.notes[-1]
    assert [gpu.bus_id for gpu in topology.gpus] == ["0001:00:00.0", "0002:00:00.0", "000a:00:00.0"]
    assert topology.nics == (tp.Nic("0101:00:00.0", ("PIX", "PIX", "SYS")),)
    assumed = system_xml.parse(SKELETON, assume_no_nvlink=True)
    assert pairs(assumed) == {(LinkKind.PCIE, 1, 31.5): 1, (LinkKind.SYSTEM, 1, 7.875): 2}
    assert assumed.notes == ()


def test_an_idle_switch_is_not_believed() -> None:
    idle = SKELETON.replace('"16 GT/s" link_width="16">', '"2.5 GT/s" link_width="16">')
    topology = system_xml.parse(idle, assume_no_nvlink=True)
    assert topology.link(0, 2) == system_xml.parse(SKELETON, assume_no_nvlink=True).link(0, 2)
    assert any(note.startswith("1 PCIe switches show a speed of PCIe 1") for note in topology.notes)


def test_devices_without_a_class_need_an_argument() -> None:
    bare = SKELETON.replace(' class="0x030200"', "").replace(' class="0x020700"', "")
    with pytest.raises(tp.TopologyError, match=r"line 5: pci 0002:00:00.0 has no class.*gpu_bus_ids="):
        system_xml.parse(bare)
    given = system_xml.parse(bare, gpu_bus_ids=["0001:00:00.0", "0002:00:00.0", "000A:00:00.0"])
    assert given == system_xml.parse(SKELETON)


def test_loops_are_reported_and_not_counted() -> None:
    topology = system_xml.parse(SELF_LOOPS)
    assert pairs(topology) == {(LinkKind.SYSTEM, 1, 12.0): 1}  # on two sockets
    assert topology.notes[0].startswith("Links from GPU0 to itself (12, line 5) are not counted")
    assert pairs(system_xml.parse(SELF_LOOPS, assume_no_nvlink=True)) == {(LinkKind.SYSTEM, 1, 12.0): 1}


def test_c2c_and_switches_that_do_not_tell_their_name() -> None:
    topology = system_xml.parse(C2C)
    assert pairs(topology) == {(LinkKind.NVSWITCH, 18, 450.0): 1}
    assert topology.component_links[0] == (0, 2, Link(LinkKind.C2C, 10, 450.0))
    plain = system_xml.parse("\n".join(line for line in C2C.split("\n") if "nvlink" not in line))
    assert plain.link(0, 1) == Link(LinkKind.SYSTEM, 1, 6.0)


def test_generations_follow_the_compute_capability() -> None:
    for capability, kind, gb_per_s in [
        ("80", LinkKind.NVLINK3, 25.0),
        ("100", LinkKind.NVLINK5, 50.0),
        ("103", LinkKind.NVLINK5, 50.0),
    ]:
        links = system_xml.parse(POWER9.replace('sm="70"', f'sm="{capability}"')).links
        assert links[0] == (0, 1, Link(kind, 3, 3 * gb_per_s))


def test_links_to_gpus_and_cpus() -> None:
    topology = system_xml.parse(POWER9)
    assert [entry for entry in topology.links if entry[2].kind is LinkKind.NVLINK2] == [
        (0, 1, Link(LinkKind.NVLINK2, 3, 75.0)),
        (2, 3, Link(LinkKind.NVLINK2, 3, 75.0)),
    ]
    assert topology.link(0, 2) == Link(LinkKind.SYSTEM, 1, 32.0)
    assert (0, 4, Link(LinkKind.NVLINK2, 3, 75.0)) in topology.component_links
    assert [gpu.numa_node for gpu in topology.gpus] == [0, 0, 8, 8]


def test_xgmi() -> None:
    topology = system_xml.parse(XGMI, name="hive", machine="node3")
    assert topology.link(0, 1) == Link(LinkKind.XGMI, 4, 200.0)
    assert topology.link(0, 2) == Link(LinkKind.XGMI, 1, 50.0)
    assert topology.link(1, 2) == Link(LinkKind.SYSTEM, 1, 15.75)
    assert [gpu.numa_node for gpu in topology.gpus] == [0, 0, None, None]
    assert [gpu.cpus for gpu in topology.gpus] == ["0-15,64-79", "0-15,64-79", None, None]
    assert topology.gpus[3].machine == "node3"
    assert [nic.gb_per_s for nic in topology.nics] == [25.0, None]
    assert [component.name for component in topology.components][2:] == ["0000:c5:00.0", "0000:c5:00.0#2"]
    for part in ("have the bus id 0000:c5:00.0", "to 0000:d7:00.0 (2) are not counted", "200000000 Mb/s"):
        assert any(part in note for note in topology.notes)


def test_given_speeds_win() -> None:
    assert system_xml.parse(POWER9, "V100", lane_gb_per_s=20).bandwidth(0, 1) == 60.0
    assert system_xml.parse(POWER9.replace(' sm="70"', ""), "H100").link(0, 1) == Link(
        LinkKind.NVLINK4, 3, 75.0
    )
    unknown = POWER9.replace('sm="70"', 'sm="75"')
    assert system_xml.parse(unknown, lane_gb_per_s=25).link(0, 1) == Link(LinkKind.NVLINK, 3, 75.0)
    assert system_xml.parse(XGMI, "MI300X").bandwidth(0, 1) == 256.0
    old = XGMI.replace('gcn="910"', 'gcn="803"').replace("gfx90a", "gfx803")
    assert system_xml.parse(old, lane_gb_per_s=10).link(0, 1) == Link(LinkKind.XGMI, 4, 40.0)


def test_bad_masks_and_lengths() -> None:
    other = NVSWITCH.replace("00ff00ff", "f00ff").replace("ff00ff00", "0f00ff00")
    topology = system_xml.parse(other)
    assert topology.gpus[0].cpus == "0-7,16-19"
    assert any("masks differ in length" in note for note in topology.notes)
    assert system_xml.parse(NVSWITCH.replace("00ff00ff", "00000005")).gpus[0].cpus == "0,2"
    assert system_xml.parse(NVSWITCH.replace("00ff00ff", "00000000")).gpus[0].cpus is None


def hosts(*texts: str) -> str:
    """One file with the processors of several, each of its own host."""
    bodies = [text[text.index("<cpu") : text.rindex("</system>")] for text in texts]
    marked = [body.replace("<cpu", f'<cpu host_hash="0x{i}"') for i, body in enumerate(bodies, 10)]
    return f'<system version="2">{"".join(marked)}</system>'


def test_hosts_of_one_file_share_an_nvlink_domain() -> None:
    rack = system_xml.parse(hosts(NVSWITCH, NVSWITCH))
    assert rack.machine_names == ("host0", "host1")
    assert len(rack.templates) == 1
    assert rack.link(0, 4) == rack.link(0, 1) == Link(LinkKind.NVSWITCH, 18, 450.0)
    assert {rack.link(u, v).kind for u in range(8) for v in range(u)} == {LinkKind.NVSWITCH}
    assert "taken to be in one NVLink domain" in rack.notes[0]
    one_each = NVSWITCH[: NVSWITCH.index('    <pci busid="0000:20:00.0"')] + "</cpu></system>"
    pair = system_xml.parse(hosts(one_each, one_each))
    assert pair.num_gpus == 2
    assert pair.link(0, 1) == Link(LinkKind.NVSWITCH, 18, 450.0)
    mixed = system_xml.parse(hosts(NVSWITCH, POWER9))
    assert mixed.link(0, 4).kind is LinkKind.NETWORK


BAD_TEXTS = [
    ("", "line 1: a NCCL topology is not well-formed"),
    (GRAPH, "line 1: a NCCL graph \\(the rings and trees"),
    ("<topology/>", "line 1: a NCCL topology begins with system, not 'topology'"),
    ("<system/>", "line 1: version '' is not 1 or 2"),
    ('<system version="1"/>', "no GPU: no pci has a gpu in it"),
    ('<system version="1"><pci busid="0000:11:00.0" class="0x030200"/></system>', "no GPU"),
    (NVSWITCH.replace('numaid="1"', 'numaid="0"'), "line 32: numaid '0' is that of line 3"),
    (NVSWITCH.replace('numaid="1"', 'numaid="x"'), "line 32: cpu numaid = 'x' is not an integer"),
    (NVSWITCH.replace("0000:81:00.0", "0000:91:00.0"), "line 39: pci busid 0000:91:00.0 is that of line 33"),
    (NVSWITCH.replace("0000:12:00.0", "0000:10:00.0"), "line 11: pci busid 0000:10:00.0 is that of line 4"),
    (NVSWITCH.replace('busid="0000:81:00.0"', ""), "line 33: pci busid = '' is not like"),
    (NVSWITCH.replace("0000:81:00.0", "0000"), "line 33: pci busid = '0000' is not like"),
    (NVSWITCH.replace('dev="3"', 'dev="0"'), "line 34: GPU 0 of pci 0000:81:00.0 is not the only one"),
    (NVSWITCH.replace('dev="3"', ""), "line 34: gpu dev is missing"),
    (NVSWITCH.replace('count="5"', 'count="0"'), "line 36: nvlink count = '0' is not"),
    (NVSWITCH.replace('count="5"', 'count="10"'), "line 36: 19 links, more than the 18"),
    (NVSWITCH.replace('target="0000:E1:00.0"', ""), "line 7: nvlink target = '' is not a bus id"),
    (
        NVSWITCH.replace('sm="90"', 'sm="75"'),
        "line 6: no speed is known of nvlink of sm '75'; lane_gb_per_s=",
    ),
    (NVSWITCH.replace('sm="90"', ""), "line 6: no speed is known of nvlink of sm ''"),
    (XGMI.replace("910", "803"), "line 5: no speed is known of xgmi of gcn '803'"),
    (
        NVSWITCH.replace('"8 GT/s"', '"9 GT/s"').replace('"16 GT/s"', '"9 GT/s"'),
        "line 17: link_speed = '9 GT/s'",
    ),
    (
        NVSWITCH.replace('"16 GT/s" link_width="16"', '"16 GT/s" link_width="64"'),
        "line 17: link_width = '64'",
    ),
    (NVSWITCH.replace("ff00ff00", "ff00ff0g"), "line 32: affinity = 'ff00ff0g' is not a mask"),
    (NVSWITCH.replace('speed="10000"', 'speed="fast"'), "line 29: net speed = 'fast' is not an integer"),
    (NVSWITCH.replace('name="eth0"', 'name="ib0"'), "line 29: net 'ib0' appears twice"),
    (NVSWITCH.replace('name="eth0"', ""), "line 29: net name = '' is not a non-empty string"),
    (NVSWITCH.replace('modelid="143"', ""), "line 3: cpu modelid is missing"),
    (POWER9.replace('count="2"', 'count="1"'), "line 5: 3 links from GPU0 to GPU1, but 2 back"),
    (C2C.replace('bw="45000"', 'bw="x"'), "line 5: c2c bw = 'x' is not an integer"),
    (
        '<system version="1">' + "".join(f'<cpu numaid="{i}" a="1"/>\n' for i in range(70)) + "</system>",
        "64 CPUs",
    ),
]


@pytest.mark.parametrize(
    ("text", "message"), BAD_TEXTS, ids=[f"{i}: {m}" for i, (_, m) in enumerate(BAD_TEXTS)]
)
def test_bad_text_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(tp.TopologyError, match=message):
        system_xml.parse(text)


def test_bad_arguments_are_refused_by_name() -> None:
    for arguments, message in [
        ({"gpu_model": 7}, "gpu_model = 7"),
        ({"gpu_model": "K80"}, "line 6: no speed is known of nvlink of gpu_model = 'K80'"),
        ({"lane_gb_per_s": 0}, "lane_gb_per_s = 0 is not above 0"),
        ({"pcie_gb_per_s": float("nan")}, "pcie_gb_per_s = nan"),
        ({"assume_no_nvlink": 1}, "assume_no_nvlink = 1"),
        ({"gpu_bus_ids": "0000:11:00.0"}, "gpu_bus_ids = '0000:11:00.0' is not a sequence"),
        ({"gpu_bus_ids": [7]}, "gpu_bus_ids = 7 is not like"),
    ]:
        with pytest.raises(tp.TopologyError, match=message):
            system_xml.parse(NVSWITCH, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["gpus", "nics", "devices", "deep"])
def test_large_files_are_refused_quickly(kind: str) -> None:
    entry = {
        "gpus": '<pci busid="0000:{:04x}" class="0x030200"/>',
        "nics": '<pci busid="0000:{:04x}" class="0x020000"/>',
        "devices": '<pci busid="0000:{:04x}" class="0x010000"/>',
        "deep": '<pci busid="0000:{:04x}">',
    }[kind]

    def refuse(size: int) -> None:
        bus_ids = (f"{i:04x}" for i in range(size))
        body = "".join(entry.replace("{:04x}", f"{i[:2]}:{i[2:]}.0") for i in bus_ids)
        with pytest.raises(tp.TopologyError):
            system_xml.parse(f'<system version="1"><cpu numaid="0">{body}</cpu></system>')

    assert_linear(refuse, 10_000)


def test_recognised() -> None:
    assert all(map(system_xml.recognised, (NVSWITCH, SKELETON, C2C, POWER9, SELF_LOOPS, XGMI, GRAPH)))
    assert not system_xml.recognised("<topology><object type='Machine'/></topology>")


@given(st.sampled_from([NVSWITCH, SKELETON, C2C, POWER9, SELF_LOOPS, XGMI, GRAPH]), st.data())
def test_mutated_text_is_read_or_refused(text: str, data: st.DataObject) -> None:
    lines = text.split("\n")
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(lines) - 1))
        piece = data.draw(
            st.sampled_from(["", "0", "<pci/>", "-1", '"', "<gpu/>", "99999999", "</pci>", "²"])
        )
        cut = data.draw(st.integers(0, len(lines[at])))
        lines[at] = lines[at][:cut] + piece + lines[at][cut + data.draw(st.integers(0, 20)) :]
    try:
        assert system_xml.parse("\n".join(lines)).num_gpus > 0
    except tp.TopologyError as error:
        assert str(error)  # noqa: PT017 - either outcome is right, any other exception is not
