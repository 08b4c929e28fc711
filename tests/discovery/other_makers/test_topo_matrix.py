"""Matrices of other makers keep the classes of paths; links of their own have no speed that is told."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

from refusals import refusal
from topoplace import LinkKind, Topology, discovery
from topoplace.discovery.other_makers import topo_matrix

TILES = """\
$ xpu-smi topology -m
        GPU 0/0|GPU 0/1|GPU 1/0|GPU 1/1|CPU Affinity
GPU 0/0|S      |MDF    |XL*    |XL16   |0-23
GPU 0/1|MDF    |S      |XL16   |XL*    |0-23
GPU 1/0|XL*    |XL16   |S      |MDF    |24-47
GPU 1/1|XL16   |XL*    |MDF    |S      |24-47
"""
TABLE = """\
| MAKER    | Device 0 | Device 1 | Device 2 | CPU Affinity | NUMA Affinity |
|----------|----------|----------|----------|--------------|---------------|
| Device 0 | X        | NODE     | SYS      | 0-3          | 0             |
| Device 1 | NODE     | X        | SYS      | 0-3          | 0             |
| Device 2 | SYS      | SYS      | X        | 4-7          | 1             |
"""
ADAPTERS = """\
        GPU0    GPU1    NIC0    Node Affinity   CPU Affinity
GPU0    X       MX      PIX     1               0-31
GPU1    MX      X       SYS     0               32-63
NIC0    PIX     SYS
"""


def kinds(topology: Topology) -> Counter[LinkKind]:
    return Counter(topology.link(u, v).kind for u, v in combinations(range(topology.num_gpus), 2))


def test_npus_have_two_sockets_and_unknown_links(repository: Path) -> None:
    read = discovery.read((repository / "tests/data/othertopo-npu-4.txt").read_text("utf-8"))
    assert [(gpu.name, gpu.socket, gpu.cpus) for gpu in read.gpus[1:3]] == [
        ("NPU1", 0, "0-23"),
        ("NPU2", 1, "24-47"),
    ]
    assert kinds(read) == {LinkKind.UNKNOWN: 2, LinkKind.HOST: 2, LinkKind.SYSTEM: 2}
    assert any("2 pairs have HCCS, whose speed is not given" in note for note in read.notes)
    assert read.bandwidth(0, 1) > read.bandwidth(0, 2) > read.bandwidth(0, 3)


def test_tiles_of_a_gpu() -> None:
    read = discovery.read(TILES)
    assert [gpu.name for gpu in read.gpus] == ["GPU0/0", "GPU0/1", "GPU1/0", "GPU1/1"]
    assert [gpu.socket for gpu in read.gpus] == [0, 0, 1, 1]
    assert sum("2 pairs have" in note for note in read.notes) == 3


def test_a_table_with_numa_nodes() -> None:
    read = discovery.read(TABLE, gpu_model="S4000")
    assert [(gpu.name, gpu.model, gpu.numa_node) for gpu in read.gpus][2] == ("GPU2", "S4000", 1)
    assert kinds(read) == {LinkKind.HOST_BRIDGES: 1, LinkKind.SYSTEM: 2}


def test_adapters_and_a_cut_row_of_one() -> None:
    read = discovery.read(ADAPTERS)
    assert [(nic.name, nic.paths) for nic in read.nics] == [("NIC0", ("PIX", "SYS"))]
    assert [(gpu.numa_node, gpu.cpus) for gpu in read.gpus] == [(1, "0-31"), (0, "32-63")]
    assert any("nothing is read: line 4" in note for note in read.notes)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (
            "| Device 1 | NODE ",
            "| Device 1 | PIX  ",
            "line 4: Device1 to Device0 is PIX, but line 3: Device0 to Dev",
        ),
        ("NODE", "WARP", "'WARP' is no known label, and no legend explains it"),
        (
            "| Device 2 | SYS      | SYS      | X        | 4-7          | 1             |\n",
            "",
            "row Device2 is missing",
        ),
        (
            "| Device 2 | SYS      | SYS      | X        | 4-7          | 1             |\n",
            "| Device 2 | SYS",
            "line 5: 1 c",
        ),
        ("| X        | 4-7 ", "| SYS      | 4-7 ", "line 5: Device2 has no X or S in its own column"),
    ],
)
def test_a_damaged_matrix_is_refused(old: str, new: str, why: str) -> None:
    assert why in refusal(topo_matrix.parse, TABLE.replace(old, new))


def test_a_label_of_the_legend_is_kept() -> None:
    read = topo_matrix.parse(TABLE.replace("NODE", "WARP") + "\nLegend:\n  WARP = a link of the maker\n")
    assert kinds(read) == {LinkKind.UNKNOWN: 1, LinkKind.SYSTEM: 2}


def test_matrices_of_nvidia_are_not_taken() -> None:
    assert not topo_matrix.recognised("\tGPU0\tGPU1\nGPU0\tX\tNV4\nGPU1\tNV4\tX\n")
