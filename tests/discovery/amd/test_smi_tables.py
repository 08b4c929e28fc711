from __future__ import annotations

import json
import re
from itertools import combinations, permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace.discovery.amd import smi_tables

XGMI, HOST, SYSTEM = tp.LinkKind.XGMI, tp.LinkKind.HOST, tp.LinkKind.SYSTEM
RELAYED = tp.LinkKind.XGMI_RELAYED

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


def test_weights_decide_what_is_direct_and_what_is_relayed(text: str) -> None:
    topology = smi_tables.parse(text, "MI250X", pcie_gb_per_s=24.0)
    assert pairs(topology) == {
        (0, 1): (XGMI, 1, 50.0),
        (1, 2): (XGMI, 1, 50.0),
        (0, 2): (RELAYED, 1, 50.0),  # weight 30: by way of GPU 1, whatever the NUMA nodes
        (0, 3): (SYSTEM, 1, 12.0),
        (1, 3): (SYSTEM, 1, 12.0),
        (2, 3): (HOST, 1, 20.0),
    }
    assert [(gpu.name, gpu.numa_node, gpu.socket, gpu.model) for gpu in topology.gpus][1:3] == [
        ("GPU1", 0, 0, "MI250X"),
        ("GPU2", 1, 1, "MI250X"),
    ]
    assert topology.notes == (
        "1 of 6 pairs have no direct link: xGMI by way of other GPUs, at the speed of its slowest link, "
        "which other pairs share.",
        "The speed of PCIe is not given: 20 (PHB) and 12 (SYS) GB/s are assumed.",
    )
    assert topology.assumed == ()


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
    # By way of another GPU; of the two ways the fastest: 200 and 50, or 50 and 200; 200 and 100, or 50 and 200.
    assert found[0, 3] == found[1, 2] == (RELAYED, 1, 100.0)


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
    assert topology.notes == ("Types alone do not state direct links: every XGMI pair is taken as one link.",)


def test_numa_nodes_alone_tell_no_kind_of_link() -> None:
    topology = smi_tables.parse(NUMA, pcie_gb_per_s=20.0)
    assert pairs(topology) == {(0, 1): (SYSTEM, 1, 10.0)}
    assert [(gpu.numa_node, gpu.socket) for gpu in topology.gpus] == [(0, 0), (1, 1)]
    near = smi_tables.parse(NUMA.replace("Affinity: 1", "Affinity: 0"), pcie_gb_per_s=20.0)
    assert pairs(near) == {(0, 1): (tp.LinkKind.UNKNOWN, 1, 20.0)}
    assert "xGMI is not given" in topology.notes[0]


def table(title: str, *rows: str) -> str:
    names = [f"GPU{i}" for i in range(len(rows))]
    return "\n".join(
        [title, " ".join(names), *(f"{name} {row}" for name, row in zip(names, rows, strict=True)), ""]
    )


STATES = st.sampled_from(("ENABLED", "DISABLED", "N/A"))


@pytest.mark.parametrize("is_json", [False, True])
@given(st.lists(STATES, min_size=12, max_size=12))
def test_a_disabled_xgmi_link_is_none(is_json: bool, states: list[str]) -> None:
    """Every pair of four GPUs has xGMI; each direction of a pair has its own state."""
    given_of = dict(zip(permutations(range(4), 2), states, strict=True))
    topology = smi_tables.parse((hive_json if is_json else hive_tables)(given_of), "MI300X")
    both = {(u, v): {given_of[u, v], given_of[v, u]} for u, v in combinations(range(4), 2)}
    is_told = any(found == {"ENABLED"} for found in both.values())
    for (u, v), found in both.items():
        closed = "DISABLED" in found or ("N/A" in found and is_told)
        assert topology.link(u, v).kind is (HOST if closed else XGMI)
        by_name = f"{topology.gpus[u].name} and {topology.gpus[v].name}"
        assert any(by_name in note for note in topology.notes) == (found != {"ENABLED"})


def hive_tables(state_of: dict[tuple[int, int], str]) -> str:
    """Return the tables of amd-smi for four GPUs, each joined to each."""
    access = (" ".join(state_of.get((u, v), "ENABLED") for v in range(4)) for u in range(4))
    types = (" ".join("SELF" if u == v else "XGMI" for v in range(4)) for u in range(4))
    weights = (" ".join("0" if u == v else "15" for v in range(4)) for u in range(4))
    return (
        table("ACCESS TABLE:", *access) + table("LINK TYPE TABLE:", *types) + table("WEIGHT TABLE:", *weights)
    )


def hive_json(state_of: dict[tuple[int, int], str]) -> str:
    """Return the same as `hive_tables`, as JSON."""
    rows = [
        [
            {
                "bdf": f"0000:{v:02x}:00.0",
                "weight": 0 if u == v else 15,
                "link_status": state_of.get((u, v), "ENABLED"),
                "link_type": "SELF" if u == v else "XGMI",
            }
            for v in range(4)
        ]
        for u in range(4)
    ]
    return json.dumps([{"gpu": u, "bdf": f"0000:{u:02x}:00.0", "links": row} for u, row in enumerate(rows)])


NEAR_AND_FAR = table("== Link Type between two GPUs ==", "0 PCIE PCIE", "PCIE 0 PCIE", "PCIE PCIE 0")


@pytest.mark.parametrize(
    ("weights", "hops", "nodes"),
    [
        (("0 40 60", "40 0 60", "60 60 0"), (), ()),
        (("0 40 52", "40 0 52", "52 52 0"), ("0 2 3", "2 0 3", "3 3 0"), ()),
        ((), ("0 2 3", "2 0 3", "3 3 0"), (0, 0, 0)),
        (("0 40 40", "40 0 40", "40 40 0"), ("0 2 2", "2 0 2", "2 2 0"), (0, 0, 1)),
        (("0 40 72", "40 0 72", "72 72 0"), (), (0, 0, 0)),
    ],
    ids=["weights", "weights and hops", "hops", "nodes", "weights against nodes"],
)
def test_weights_hops_and_nodes_tell_what_is_far(
    weights: tuple[str, ...], hops: tuple[str, ...], nodes: tuple[int, ...]
) -> None:
    text = NEAR_AND_FAR
    text += table("== Weight between two GPUs ==", *weights) if weights else ""
    text += table("HOPS TABLE:", *hops) if hops else ""
    text += "".join(f"GPU[{i}] : (Topology) Numa Node: {node}\n" for i, node in enumerate(nodes))
    topology = smi_tables.parse(text)
    assert pairs(topology) == {(0, 1): (HOST, 1, 10.0), (0, 2): (SYSTEM, 1, 6.0), (1, 2): (SYSTEM, 1, 6.0)}
    assert [topology.distance(0, gpu) for gpu in (1, 2)] == [1.0, 20.0]


@pytest.mark.parametrize("weight", [30, 45])
def test_a_multiple_of_a_links_weight_is_a_way_over_others(weight: int) -> None:
    weights = table("== Weight between two GPUs ==", f"0 15 {weight}", "15 0 15", f"{weight} 15 0")
    assert pairs(smi_tables.parse(weights, "MI250"))[0, 2] == (RELAYED, 1, 50.0)
    apart = table("== Weight between two GPUs ==", f"0 15 {weight + 15}", "15 0 60", f"{weight + 15} 60 0")
    assert pairs(smi_tables.parse(apart, "MI250"))[0, 2][0] is SYSTEM


def test_hops_alone() -> None:
    topology = smi_tables.parse(table("HOPS TABLE:", "0 1 3", "1 0 3", "3 3 0"), "MI100")
    assert pairs(topology) == {(0, 1): (XGMI, 1, 46.0), (0, 2): (SYSTEM, 1, 6.0), (1, 2): (SYSTEM, 1, 6.0)}
    assert any("Hops alone do not state direct links" in note for note in topology.notes)


@pytest.mark.parametrize(
    "rows", [("0 1 1==", "1 0 1", "1 1 0"), ("0 1 1", "1 0 1"), ("0 x 1", "1 0 1", "1 1 0")]
)
def test_damaged_hops_cost_only_the_hops(rows: tuple[str, ...]) -> None:
    weights = table("== Weight between two GPUs ==", "0 15 60", "15 0 60", "60 60 0")
    hops = "== Hops between two GPUs ==\n GPU0 GPU1 GPU2\n" + "".join(
        f"GPU{i} {row}\n" for i, row in enumerate(rows)
    )
    topology = smi_tables.parse(weights + hops, "MI210")
    whole = smi_tables.parse(weights, "MI210")
    assert pairs(topology) == pairs(whole)
    assert any(note.startswith("The table of hops is left out:") for note in topology.notes)


FACTS = {
    "Card series": "AMD Instinct MI250X",
    "VRAM Total Memory (B)": "68702699520",
    "Unique ID": "0x77a1b2c3d4e5f607",
    "PCI Bus": "0000:C1:00.0",
}


def test_model_memory_and_address_are_kept_from_lines_and_json() -> None:
    lines = "".join(f"GPU[{i}]\t\t: {name}: {value}\n" for i in range(2) for name, value in FACTS.items())
    lines = lines.replace("GPU[1]\t\t: Unique ID: 0x77", "GPU[1]\t\t: Unique ID: 0x78")
    lines = lines.replace("GPU[1]\t\t: PCI Bus: 0000:C1", "GPU[1]\t\t: PCI Bus: 0000:C6")
    cards = {
        f"card{i}": {**FACTS, "Unique ID": f"0x7{7 + i}a1b2c3d4e5f607", "PCI Bus": f"0000:C{1 + 5 * i}:00.0"}
        for i in range(2)
    }
    pair = "between DRM devices 0 and 1"
    system = {f"(Topology) Weight {pair}": "15", f"(Topology) Link type {pair}": "XGMI"}
    for text in (
        TYPES + table("WEIGHT TABLE:", "0 15", "15 0") + lines,
        json.dumps({**cards, "system": system}),
    ):
        topology = smi_tables.parse(text)
        assert [(gpu.model, gpu.uuid, gpu.bus_id) for gpu in topology.gpus] == [
            ("AMD Instinct MI250X", "GPU-77a1b2c3d4e5f607", "0000:C1:00.0"),
            ("AMD Instinct MI250X", "GPU-78a1b2c3d4e5f607", "0000:C6:00.0"),
        ]
        assert topology.gpus[0].memory_gb == 68.70269952
        assert (topology.link(0, 1), topology.assumed) == (tp.Link(XGMI, 1, 50.0), ())
        assert not any("nothing is read" in note for note in topology.notes)


def test_an_unknown_numa_node_leaves_all_sockets_unknown() -> None:
    topology = smi_tables.parse(
        TYPES + "GPU[0] : (Topology) Numa Node: 1\nGPU[1] : (Topology) Numa Node: 4294967295\n"
    )
    assert [(gpu.numa_node, gpu.socket) for gpu in topology.gpus] == [(1, None), (None, None)]


@pytest.mark.parametrize(
    "text",
    ["", "nothing", "=== Link accessibility ===\n"],
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
    assert topology.notes == (
        "2 of 3 pairs have no peer access.",
        "The speed of PCIe is not given: 6 (SYS) GB/s is assumed.",
    )


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
