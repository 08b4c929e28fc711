from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping

import pytest

import topoplace as tp
from refusals import assert_refused
from topoplace.discovery.amd import kfd

PCIE, XGMI, PROCESSORS = 2, 11, 1


def properties(**values: int) -> str:
    return "".join(f"{key} {value}\n" for key, value in values.items())


def links_of(node: int, *links: tuple[int, int, int, int, int]) -> dict[str, str]:
    """The files of the links of one node: target, type, weight, least and most MB/s of each."""
    return {
        f"nodes/{node}/io_links/{i}/properties": properties(
            type=kind, node_from=node, node_to=target, weight=weight, min_bandwidth=least, max_bandwidth=most
        )
        for i, (target, kind, weight, least, most) in enumerate(links)
    }


def gpu(location: int, unique: int = 0, device: int = 0x740F) -> str:
    return properties(simd_count=416, location_id=location, domain=1, unique_id=unique, device_id=device)


# Two sockets, the first one of two NUMA nodes; two GPUs joined by xGMI on node 0, one on node 2.
TREE: dict[str, str] = {
    "nodes/0/properties": properties(cpu_cores_count=8, simd_count=0),
    "nodes/1/properties": properties(cpu_cores_count=8, simd_count=0),
    "nodes/2/properties": properties(cpu_cores_count=8, simd_count=0),
    "nodes/3/properties": gpu(0x6300, 0x19),
    "nodes/4/properties": gpu(0x4308, 0x1A),
    "nodes/5/properties": gpu(0xA300, 0x1B),
    "nodes/3/mem_banks/0/properties": properties(heap_type=1, size_in_bytes=64 * 10**9),
    "nodes/4/name": "anything at all",
    **links_of(
        0,
        (1, PROCESSORS, 12, 0, 0),
        (2, PROCESSORS, 32, 0, 0),
        (3, PCIE, 20, 312, 32000),
        (4, PCIE, 20, 312, 32000),
    ),
    **links_of(1, (0, PROCESSORS, 12, 0, 0), (2, PROCESSORS, 32, 0, 0)),
    **links_of(2, (0, PROCESSORS, 32, 0, 0), (1, PROCESSORS, 32, 0, 0), (5, PCIE, 20, 0, 0)),
    **links_of(3, (0, PCIE, 20, 312, 32000), (4, XGMI, 15, 50000, 100000)),
    **links_of(4, (0, PCIE, 20, 312, 32000), (3, XGMI, 15, 50000, 100000)),
    **links_of(5, (2, PCIE, 20, 0, 0)),
    "nodes/3/p2p_links/0/properties": properties(type=PCIE, node_from=3, node_to=5, weight=72),
}


def archive(files: Mapping[str, str], prefix: str = "", format: int = tarfile.GNU_FORMAT) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=format) as tar:
        for path, text in files.items():
            member = tarfile.TarInfo(prefix + path)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return data.getvalue()


def test_gpus_with_what_the_driver_knows_of_them() -> None:
    topology = kfd.parse(TREE)
    assert [(g.model, g.bus_id, g.uuid, g.numa_node, g.socket) for g in topology.gpus] == [
        ("MI210", "0001:63:00.0", "GPU-0000000000000019", 0, 0),
        ("MI210", "0001:43:01.0", "GPU-000000000000001a", 0, 0),
        ("MI210", "0001:a3:00.0", "GPU-000000000000001b", 2, 1),
    ]
    assert [g.memory_gb for g in topology.gpus] == [64.0, None, None]
    assert [part.name for part in topology.components] == ["NUMA0", "NUMA1", "NUMA2"]


def test_a_way_over_another_gpu_is_xgmi() -> None:
    files = TREE | links_of(
        4, (0, PCIE, 20, 312, 32000), (3, XGMI, 15, 50000, 100000), (5, XGMI, 15, 50000, 50000)
    )
    files |= links_of(5, (2, PCIE, 20, 0, 0), (4, XGMI, 15, 50000, 50000))
    topology = kfd.parse(files)
    assert topology.link(0, 2) == tp.Link(tp.LinkKind.XGMI_RELAYED, 1, 50.0)
    assert any(note.startswith("1 of 3 pairs have no direct link") for note in topology.notes)


def test_links_over_xgmi_pcie_and_processors() -> None:
    topology = kfd.parse(TREE, pcie_gb_per_s=10.0)
    assert topology.links == ((0, 1, tp.Link(tp.LinkKind.XGMI, 2, 100.0)),)
    assert topology.link(0, 2) == tp.Link(tp.LinkKind.SYSTEM, 1, 10.0)
    kinds = {(a, b): (link.kind, link.gb_per_s) for a, b, link in topology.component_links}
    assert kinds == {
        (0, 3): (tp.LinkKind.PCIE, 32.0),
        (1, 3): (tp.LinkKind.PCIE, 32.0),
        (2, 5): (tp.LinkKind.PCIE, 10.0),
        (3, 4): (tp.LinkKind.HOST_BRIDGES, 16.0),
        (3, 5): (tp.LinkKind.SYSTEM, 16.0),
        (4, 5): (tp.LinkKind.SYSTEM, 16.0),
    }
    assert topology.notes == (
        "1 links of kind host_bridges have no speed: 16 GB/s is assumed.",
        "1 links of kind pcie have no speed: 10 GB/s is assumed.",
        "2 links of kind system have no speed: 16 GB/s is assumed.",
    )
    assert kfd.parse(TREE, socket_gb_per_s=5.0).bandwidth(0, 2) == 5.0


@pytest.mark.parametrize("device", [0x740F, 0x74A1, 1])
def test_xgmi_without_a_bandwidth_has_that_of_the_model(device: int) -> None:
    files = {
        "nodes/0/properties": gpu(0x100, device=device),
        "nodes/1/properties": gpu(0x200, device=device),
        **links_of(0, (1, XGMI, 15, 0, 0)),
    }
    assert kfd.parse(files).bandwidth(0, 1) == {0x740F: 50.0, 0x74A1: 64.0, 1: 46.0}[device]


@pytest.mark.parametrize("prefix", ["", "./", "a/sysfs/"])
@pytest.mark.parametrize("format", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT])
def test_a_tar_archive_reads_like_its_files(prefix: str, format: int) -> None:
    assert kfd.parse(archive(TREE, prefix, format)) == kfd.parse(TREE)


@pytest.mark.parametrize("format", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT])
def test_long_names_in_an_archive(format: int) -> None:
    prefix = "d/" * 60 if format == tarfile.USTAR_FORMAT else "a-long-directory/" * 20
    assert kfd.parse(archive(TREE, prefix, format)) == kfd.parse(TREE)


def test_addresses_that_are_there_twice_are_of_none() -> None:
    files = TREE | {"nodes/4/properties": gpu(0x6300, 0x19)}
    topology = kfd.parse(files)
    assert [(g.bus_id, g.uuid) for g in topology.gpus[:2]] == [(None, None), (None, None)]
    assert topology.notes[-1] == "2 GPUs share PCI addresses, as parts of one GPU do: they have none."


def test_a_link_in_the_directory_of_another_node_is_not_used() -> None:
    path = "nodes/5/io_links/0/properties"
    files = {name: text for name, text in TREE.items() if not name.startswith("nodes/2/io_links/2")}
    topology = kfd.parse(files | {path: files[path].replace("node_from 5", "node_from 4")})
    assert topology.gpus[2].numa_node is None
    assert topology.notes[0] == f"{path} is a link of node 4, not of node 5: it is not used."


def test_links_to_nodes_that_a_container_does_not_see_are_not_used() -> None:
    topology = kfd.parse({path: text for path, text in TREE.items() if not path.startswith("nodes/4/")})
    assert topology.num_gpus == 2
    assert topology.notes[:2] == (
        "nodes/3/io_links/1/properties leads to node 4, which is not there: it is not used.",
        "nodes/0/io_links/3/properties leads to node 4, which is not there: it is not used.",
    )


LINK = "nodes/3/io_links/1/properties"


@pytest.mark.parametrize(
    ("path", "old", "new", "message"),
    [
        (
            LINK,
            "type 11",
            "type eleven",
            f"'{LINK}' line 1: 'type eleven' is not a property, or appears twice",
        ),
        (
            LINK,
            "type 11\n",
            "weight 1\n",
            f"'{LINK}' line 4: 'weight 15' is not a property, or appears twice",
        ),
        (LINK, "weight 15\n", "", f"{LINK}: weight is missing"),
        (
            LINK,
            "max_bandwidth 100000",
            "max_bandwidth 9999999999999",
            f"{LINK}: max_bandwidth = 9999999999999 is too large",
        ),
        (LINK, "node_to 4", "node_to 3", f"{LINK}: node_to = 3 must be another node"),
        (
            LINK,
            "max_bandwidth 100000",
            "max_bandwidth 50000",
            "nodes/4/io_links/1/properties: node 3 describes another link to node 4",
        ),
        ("nodes/3/properties", TREE["nodes/3/properties"], "\n", "'nodes/3/properties' is empty"),
    ],
)
def test_damaged_files_are_refused_by_name(path: str, old: str, new: str, message: str) -> None:
    assert_refused(lambda text: kfd.parse(TREE | {path: text}), TREE[path], old, new, message)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "there is no file nodes/0/properties"),
        (
            {"nodes/0/properties": "cpu_cores_count 8\n"},
            "no GPU: none of the 1 nodes has a simd_count above 0",
        ),
        (links_of(0, (1, 2, 3, 4, 5)), "there is no file nodes/0/properties"),
        (
            {"a/nodes/0/properties": "a 1", "b/nodes/0/properties": "a 1"},
            "'b/nodes/0/properties': the trees of two machines",
        ),
        ({"nodes/0/properties": 3}, "data['nodes/0/properties'] is not a path with the text of a file"),
        ({"nodes/0/properties": "a" * 70000}, "'nodes/0/properties' has more than 65536 bytes"),
        ("text", "data = 'text' is neither a tar archive nor files by path"),
        (b"\x1f\x8b compressed", "data is not an uncompressed tar archive"),
    ],
)
def test_what_is_no_tree_is_refused(data: object, message: str) -> None:
    with pytest.raises(tp.TopologyError) as caught:
        kfd.parse(data)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_damaged_archives_are_refused() -> None:
    data = archive(TREE)
    for cut in (300, 600, 1000):
        with pytest.raises(tp.TopologyError, match="the archive ends inside"):
            kfd.parse(data[:cut])
    with pytest.raises(tp.TopologyError, match="byte 0: the archive has a header with a wrong checksum"):
        kfd.parse(b"x" + data[1:])
    with pytest.raises(tp.TopologyError, match="'nodes/0/properties' appears twice"):
        kfd.parse(
            archive({"nodes/0/properties": TREE["nodes/0/properties"]}).rstrip(b"\0").ljust(1024, b"\0") * 2
        )


def test_recognised() -> None:
    assert kfd.recognised(archive(TREE))
    assert not kfd.recognised("nodes/0/properties")
