from __future__ import annotations

import re
from pathlib import Path

import pytest

import topoplace as tp
from topoplace.discovery.amd import smi_tables

XGMI, HOST, SYSTEM = tp.LinkKind.XGMI, tp.LinkKind.HOST, tp.LinkKind.SYSTEM

TYPES = """\
====== Link Type between two GPUs ======
       GPU0   GPU1
GPU0   0      XGMI
GPU1   XGMI   0
"""
NUMA = "GPU[0] : (Topology) Numa Node: 0\nGPU[1] : (Topology) Numa Node: -1\nGPU[1] : (Topology) Numa Affinity: 1\n"


@pytest.fixture
def text(repository: Path) -> str:
    """A whole `rocm-smi --showtopo`: a chain of three GPUs by xGMI, and a fourth on PCIe."""
    return (repository / "tests/data/rocm-showtopo-4gpu.txt").read_text("utf-8")


def pairs(topology: tp.Topology) -> dict[tuple[int, int], tuple[tp.LinkKind, int, float]]:
    n = topology.num_gpus
    links = {(u, v): topology.link(u, v) for v in range(n) for u in range(v)}
    return {pair: (link.kind, link.lanes, link.gb_per_s) for pair, link in links.items()}


def test_old_versions_print_gpus_with_a_blank(text: str) -> None:
    old = re.sub(r"GPU\[([0-9])\]", r"GPU \1 ", text)
    assert "GPU 0 " in old
    assert smi_tables.parse(old) == smi_tables.parse(text)
    assert smi_tables.recognised(re.sub(r"GPU\[([0-9])\]", r"GPU \1 ", NUMA))


def test_numa_nodes_of_some_gpus_are_those_of_these_gpus() -> None:
    topology = smi_tables.parse(NUMA.replace("GPU[1]", "GPU[10]"))
    assert [(gpu.name, gpu.numa_node) for gpu in topology.gpus] == [("GPU0", 0), ("GPU10", 1)]


def test_weights_decide_and_hops_do_not(text: str) -> None:
    topology = smi_tables.parse(text, "MI250X", pcie_gb_per_s=24.0)
    assert pairs(topology) == {
        (0, 1): (XGMI, 1, 50.0),
        (1, 2): (XGMI, 1, 50.0),
        (0, 2): (SYSTEM, 1, 24.0),  # weight 30 and another NUMA node: xGMI by way of GPU 1
        (0, 3): (SYSTEM, 1, 24.0),
        (1, 3): (SYSTEM, 1, 24.0),
        (2, 3): (HOST, 1, 24.0),
    }
    assert [(gpu.name, gpu.numa_node, gpu.socket, gpu.model) for gpu in topology.gpus][1:3] == [
        ("GPU1", 0, 0, "MI250X"),
        ("GPU2", 1, 1, "MI250X"),
    ]
    assert topology.notes == ("1 of 6 pairs have no direct link: xGMI by way of other GPUs is not counted.",)


def test_weights_tell_sockets_where_no_numa_node_is_told(text: str) -> None:
    topology = smi_tables.parse(text[: text.index("==== Numa Nodes")], pcie_gb_per_s=24.0)
    assert {pair: kind for pair, (kind, _, _) in pairs(topology).items() if pair[1] == 3} == {
        (0, 3): SYSTEM,
        (1, 3): SYSTEM,
        (2, 3): HOST,
    }
    assert {gpu.socket for gpu in topology.gpus} == {None}
    assert topology.notes[0].startswith("2 of 2 xGMI links have no speed: 46 GB/s")


def test_bandwidths_tell_direct_links_and_their_lanes(repository: Path) -> None:
    topology = smi_tables.parse((repository / "tests/data/rocm-bandwidth-4gcd.txt").read_bytes())
    found = pairs(topology)
    assert {pair: link for pair, link in found.items() if link[0] is XGMI} == {
        (0, 1): (XGMI, 4, 200.0),
        (2, 3): (XGMI, 4, 200.0),
        (0, 2): (XGMI, 1, 50.0),
        (1, 3): (XGMI, 2, 100.0),
    }
    assert found[0, 3] == found[1, 2] == (HOST, 1, 12.0)


def test_all_tables_of_amd_smi(repository: Path) -> None:
    topology = smi_tables.parse((repository / "tests/data/amd-smi-topology-2gpu.txt").read_text("utf-8"))
    assert pairs(topology) == {(0, 1): (XGMI, 1, 50.0)}
    assert [(gpu.name, gpu.bus_id) for gpu in topology.gpus] == [
        ("0000:0c:00.0", "0000:0c:00.0"),
        ("0000:22:00.0", "0000:22:00.0"),
    ]
    assert topology.notes == ("A topology has no place for cache coherency of links: left out.",)


def test_drivers_that_tell_no_bandwidth_do_not_hide_links(repository: Path) -> None:
    text = (repository / "tests/data/amd-smi-topology-2gpu.txt").read_text("utf-8")
    topology = smi_tables.parse(text.replace("50000-50000", "0-0"), "MI300X")
    assert pairs(topology) == {(0, 1): (XGMI, 1, 64.0)}


def test_no_peer_access_is_noted(repository: Path) -> None:
    text = (repository / "tests/data/amd-smi-topology-2gpu.txt").read_text("utf-8")
    closed = text.replace("ENABLED      ENABLED\n", "ENABLED      DISABLED\n", 1).replace(
        "0000:22:00.0 ENABLED      ENABLED", "0000:22:00.0 DISABLED     ENABLED"
    )
    assert "1 of 1 pairs have no peer access." in smi_tables.parse(closed).notes


def test_types_alone_are_taken_as_direct_links_with_a_note() -> None:
    topology = smi_tables.parse(TYPES, "Instinct MI100")
    assert pairs(topology) == {(0, 1): (XGMI, 1, 46.0)}
    assert topology.notes == ("Types alone do not tell direct links: every XGMI pair is taken as one link.",)


def test_numa_nodes_alone_tell_no_kind_of_link() -> None:
    topology = smi_tables.parse(NUMA, pcie_gb_per_s=20.0)
    assert pairs(topology) == {(0, 1): (tp.LinkKind.UNKNOWN, 1, 20.0)}
    assert [(gpu.numa_node, gpu.socket) for gpu in topology.gpus] == [(0, 0), (1, 1)]
    assert "xGMI is not told" in topology.notes[0]


def test_an_unknown_numa_node_leaves_all_sockets_unknown() -> None:
    topology = smi_tables.parse(
        TYPES + "GPU[0] : (Topology) Numa Node: 1\nGPU[1] : (Topology) Numa Node: 4294967295\n"
    )
    assert [(gpu.numa_node, gpu.socket) for gpu in topology.gpus] == [(1, None), (None, None)]


@pytest.mark.parametrize(
    "text",
    ["", "nothing", "=== Hops between two GPUs ===\n  GPU0 GPU1\nGPU0 0 1\nGPU1 1 0\n"],
)
def test_text_without_a_table_is_refused(text: str) -> None:
    with pytest.raises(tp.TopologyError, match=r"^no GPU: the text has neither a table of weights"):
        smi_tables.parse(text)


def test_tables_of_different_gpus_are_refused() -> None:
    with pytest.raises(
        tp.TopologyError, match=r"^line 6: the weight table has other GPUs than the first table"
    ):
        smi_tables.parse(TYPES + "== Weight between two GPUs ==\n  GPU0\nGPU0 0\n")


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(tp.TopologyError, match=r"^gpu_model = 'A100' is not an AMD Instinct"):
        smi_tables.parse(TYPES, "A100")


def test_recognised(text: str) -> None:
    assert smi_tables.recognised(text)
    assert smi_tables.recognised(NUMA)
    assert not smi_tables.recognised("\tGPU0\tGPU1\nGPU0\t X \tNV4\n")


@pytest.fixture
def listed(repository: Path) -> str:
    """`amd-smi topology --json`: two GPUs with two xGMI links, and one across the sockets."""
    return (repository / "tests/data/amd-smi-topology-3gpu.json").read_text("utf-8")


def test_json_of_amd_smi(listed: str) -> None:
    topology = smi_tables.parse(listed)
    assert topology == tp.discovery.read(listed)
    assert [gpu.bus_id for gpu in topology.gpus] == ["0000:11:00.0", "0000:21:00.0", "0000:31:00.0"]
    assert topology.link(0, 1) == tp.Link(tp.LinkKind.XGMI, 2, 64.0)
    assert topology.link(0, 2).kind is topology.link(1, 2).kind is tp.LinkKind.SYSTEM
    assert topology.notes == ("2 of 3 pairs have no peer access.",)


def test_json_of_older_versions() -> None:
    rows = (f'{{"gpu": {i}, "weight": {{"gpu_0": {40 * i}, "gpu_1": {40 - 40 * i}}}}}' for i in range(2))
    topology = smi_tables.parse(f"[{', '.join(rows)}]")
    assert [gpu.name for gpu in topology.gpus] == ["GPU0", "GPU1"]
    assert topology.link(0, 1).kind is tp.LinkKind.HOST


def test_json_of_rocm_smi() -> None:
    between = '"(Topology) {} between DRM devices {} and {}": "{}"'.format
    pairs = [
        between("Weight", 0, 1, 15), between("Weight", 0, 2, 72), between("Weight", 1, 2, 72),
        between("Link type", 0, 1, "XGMI"), between("Link type", 0, 2, "PCIE"), between("Link type", 1, 2, "PCIE"),
        between("Hops", 0, 1, 1),
    ]  # fmt: skip
    cards = [
        f'"card{i}": {{"(Topology) Numa Node": "{i // 2}", "(Topology) Numa Affinity": "-1"}}'
        for i in range(3)
    ]
    topology = smi_tables.parse(f'{{"system": {{{", ".join(pairs)}}}, {", ".join(cards)}}}', "MI210")
    assert [(gpu.name, gpu.numa_node) for gpu in topology.gpus] == [("GPU0", 0), ("GPU1", 0), ("GPU2", 1)]
    kinds = [topology.link(u, v).kind for u, v in ((0, 1), (0, 2), (1, 2))]
    assert kinds == [tp.LinkKind.XGMI, tp.LinkKind.SYSTEM, tp.LinkKind.SYSTEM]


def test_fields_of_json_without_a_place_are_noted(repository: Path) -> None:
    text = (repository / "tests/data/amd-smi-topology-3gpu.json").read_text("utf-8")
    more = text.replace('"num_hops"', '"coherent": "NC", "atomics": "64,32", "num_hops"')
    note = "A topology has no place for cache coherency, atomics of links: left out."
    assert smi_tables.parse(more).notes == (*smi_tables.parse(text).notes, note)
