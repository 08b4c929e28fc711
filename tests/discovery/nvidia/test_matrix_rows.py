"""The matrix of `nvidia-smi topo -m` as people paste it: glued, commented, without its header, cut out of a report."""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from growth import assert_linear
from topoplace import discovery
from topoplace.discovery.nvidia import topo_matrix

parse = tp.Topology.from_nvidia_smi

HEADER = "\tGPU0\tGPU1\tGPU2\tmlx5_0\tmlx5_10\tCPU Affinity\tNUMA Affinity"
ROWS = """\
GPU0\t X \tNV2\tSYS\tPIX\tSYS\t0-7\t0
GPU1\tNV2\t X \tSYS\tPIX\tSYS\t0-7\t0
GPU2\tSYS\tSYS\t X \tSYS\tPHB\t8-15\t1
mlx5_0\tPIX\tPIX\tSYS\t X \tSYS
mlx5_10\tSYS\tSYS\tPHB\tSYS\t X
"""
PLAIN = f"{HEADER}\n{ROWS}"


def content(topology: tp.Topology) -> tuple[object, ...]:
    """All of a topology but its notes."""
    return topology.gpus, topology.links, topology.nics


@pytest.mark.parametrize(
    "header",
    [
        HEADER.replace("GPU2\t", "GPU2"),
        HEADER.replace("\tGPU", "GPU"),
        HEADER.replace("\t", ""),
        HEADER.replace("mlx5_0\t", "mlx5_0").replace("GPU2\t", "GPU2"),
    ],
    ids=["first adapter", "GPUs", "everything", "adapters"],
)
def test_a_header_whose_columns_touch_is_told_apart_by_the_rows(header: str) -> None:
    assert parse(f"{header}\n{ROWS}") == parse(PLAIN)
    assert topo_matrix.recognised(f"{header}\n{ROWS}")


@given(st.sets(st.sampled_from([i for i, c in enumerate(HEADER) if c == "\t" and i > 0])))
def test_any_blanks_of_the_header_may_be_lost(lost: set[int]) -> None:
    header = "".join(c for i, c in enumerate(HEADER) if i not in lost)
    assert parse(f"{header}\n{ROWS}") == parse(PLAIN)


def test_adapters_of_any_name_may_touch_if_they_have_rows() -> None:
    text = PLAIN.replace("mlx5_0", "ib0").replace("mlx5_10", "hfi1_0")
    assert parse(text.replace("GPU2\tib0\thfi1_0", "GPU2ib0hfi1_0")) == parse(text)


def test_a_remark_after_a_row_is_noted() -> None:
    text = PLAIN.replace("0-7\t0", "0-7\t0   # the old one, PIX or NV2?", 1).replace(
        "8-15\t1", "8-15\t1 <- 2nd"
    )
    topology = parse(text)
    assert content(topology) == content(parse(PLAIN))
    assert topology.notes[-2:] == (
        "Line 2: '# the old one, PIX or NV2?' after the row of GPU0 is left out.",
        "Line 4: '<- 2nd' after the row of GPU2 is left out.",
    )


def test_a_number_after_a_row_is_refused() -> None:
    with pytest.raises(
        tp.TopologyError, match=r"^line 2: 3 affinities, the header has 2; remove what is not of the row$"
    ):
        parse(PLAIN.replace("0-7\t0", "0-7\t0\t7", 1))


def test_rows_without_a_header_name_their_columns() -> None:
    topology = parse(ROWS)
    assert content(topology) == content(parse(PLAIN))
    assert topology.notes[-1] == "The text has no header: each row names the column of its X."
    assert discovery.format_of("```text\n" + ROWS + "```\n").name == "nvidia-smi topo -m"


def test_rows_of_gpus_alone_leave_the_adapters_without_names() -> None:
    topology = parse("".join(line for line in ROWS.splitlines(keepends=True) if line.startswith("GPU")))
    assert [nic.name for nic in topology.nics] == ["NIC0", "NIC1"]
    assert [nic.paths for nic in topology.nics] == [nic.paths for nic in parse(PLAIN).nics]
    assert "2 columns without a row are taken as network adapters" in topology.notes[-1]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (ROWS.replace("GPU1\tNV2\t X ", "GPU1\tNV2\tPHB"), "not each of them has one X and 5 labels"),
        ("\n".join(ROWS.split("\n")[1:]), "their X are not in the columns 1 to 2"),
        (ROWS.replace("SYS\tPHB\t8-15", "SYS\t8-15"), "not each of them has one X and 4 labels"),
    ],
    ids=["no X", "row lost", "cell lost"],
)
def test_rows_without_a_header_that_do_not_fit_are_refused(rows: str, reason: str) -> None:
    with pytest.raises(tp.TopologyError) as caught:
        parse(rows)
    assert str(caught.value).startswith("line 1: the rows have no header, and ")
    assert reason in str(caught.value)
    assert str(caught.value).endswith("give the line with GPU0, GPU1, ... above them")


def test_prose_about_gpus_is_no_header() -> None:
    found = parse("GPU0 and GPU1 have a bridge:\n\n" + PLAIN)
    assert replace(found, notes=()) == replace(parse(PLAIN), notes=())
    assert "Lines from which nothing is read: line 1: 'GPU0 and GPU1 have a bridge:'." in found.notes


def test_omitted_columns_are_refused() -> None:
    text = "GPU0 GPU1 NIC0 ... NIC5\nGPU0 X NV18 NODE ... SYS\nGPU1 NV18 X NODE ... SYS\n"
    with pytest.raises(
        tp.TopologyError, match=r"^line 2: \.\.\. marks omitted columns; give the complete text$"
    ):
        parse(text)


def test_titles_may_be_short() -> None:
    assert parse(PLAIN.replace("NUMA Affinity", "NUMA").replace("CPU Affinity", "CPU")) == parse(PLAIN)


GRACE = """\
\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV18\t0-71\t0,2-17\t\tN/A
GPU1\tNV18\t X \t72-143\t1,18-33\t\tN/A
"""


def test_numa_nodes_of_grace_are_kept_or_noted() -> None:
    topology = parse(GRACE, "GB200")
    assert [(gpu.numa_node, gpu.socket) for gpu in topology.gpus] == [(0, 0), (1, 1)]
    (note,) = topology.notes
    assert note.endswith("is kept: GPU0 0,2-17, GPU1 1,18-33.")
    own = parse(re.sub(r"N/A", "4", GRACE.replace("0,2-17", "0").replace("1,18-33", "1")), "GB200")
    assert own.notes == ("NUMA nodes of the GPUs' own memory (GPU NUMA ID), not kept: GPU0 4, GPU1 4.",)


def test_several_nodes_of_cpus_are_noted() -> None:
    topology = parse(GRACE.replace("0,2-17", "0-1"), "GB200")
    assert topology.gpus[0].numa_node is None
    assert "GPU0 0-1" in topology.notes[0]


def test_affinities_that_are_no_cpus_are_noted_and_tell_no_socket() -> None:
    topology = parse("GPU0 GPU1 CPU Affinity\nGPU0 X SOC 1-1\nGPU1 SOC X 1-1\n")
    assert [gpu.socket for gpu in topology.gpus] == [None, None]
    assert topology.notes[-1] == "CPU affinities that are no lists of CPUs, and left out: GPU0 1-1, GPU1 1-1."


def test_ranges_of_one_cpu_are_a_list_of_cpus() -> None:
    topology = parse("GPU0 GPU1 CPU Affinity\nGPU0 X SOC 0-0,8-8,16-16\nGPU1 SOC X 24-24,32-32\n")
    assert [(gpu.socket, gpu.cpus) for gpu in topology.gpus] == [(0, "0-0,8-8,16-16"), (1, "24-24,32-32")]


def test_a_second_matrix_is_noted() -> None:
    topology = parse("node1:\n" + PLAIN + "\nnode2:\n" + PLAIN.replace("SYS", "NODE"))
    assert content(topology) == content(parse(PLAIN))
    assert topology.notes[-1] == (
        "A second matrix begins in line 10 and is left out; give each machine its own text."
    )


def test_adapters_have_the_names_below_their_own_matrix() -> None:
    text = PLAIN.replace("mlx5_0", "NIC0").replace("mlx5_10", "NIC1")
    both = "\n\nNIC Legend:\n\n  NIC0: ib0\n\n".join([text, text, ""]).replace("ib0", "ib1", 1)
    assert [nic.name for nic in parse(both).nics] == ["ib1", "NIC1"]


P2P = " \tGPU0\tGPU1\tGPU2\n" + "".join(
    f" GPU{i}\t" + "\t".join("X" if i == j else "GNS" for j in range(3)) + "\n" for i in range(3)
)


@pytest.mark.parametrize("text", [PLAIN + "\n" + P2P, P2P + "\n" + PLAIN], ids=["after", "before"])
def test_a_matrix_of_peer_access_beside_it_is_noted(text: str) -> None:
    topology = tp.read(text)
    assert content(topology) == content(parse(PLAIN))
    assert topology.notes[-1] == "The text also has the output of nvidia-smi topo -p2p, which is left out."
    assert "left out" not in tp.read(PLAIN).notes[-1]


def test_uuids_of_a_list_beside_it_are_kept() -> None:
    listed = "".join(f"GPU {i}: Tesla V100-SXM2-16GB (UUID: GPU-{i}{i})\n" for i in range(3))
    gpus = tp.read(listed + "\n" + PLAIN).gpus
    assert [(gpu.model, gpu.uuid) for gpu in gpus] == [("V100", f"GPU-{i}{i}") for i in range(3)]
    two = listed + listed.replace("GPU-00", "GPU-99")
    assert [gpu.uuid for gpu in tp.read(two + PLAIN).gpus] == [None, "GPU-11", "GPU-22"]


def test_a_table_in_markdown_is_read() -> None:
    rows = [line.split("\t") for line in PLAIN.splitlines()]
    table = ["| " + " | ".join(cell or " " for cell in row) + " |" for row in rows]
    table.insert(1, "|---" * 8 + "|")
    assert content(parse("\n".join(table))) == content(parse(PLAIN))


@pytest.mark.parametrize("before", ["", PLAIN])
def test_many_lines_like_headers_take_linear_time(before: str) -> None:
    def read(size: int) -> None:
        with contextlib.suppress(tp.TopologyError):
            parse(before + "GPU0GPU1\n" * size)

    assert_linear(read, 100_000)
