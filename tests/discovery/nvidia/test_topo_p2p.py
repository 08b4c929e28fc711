from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace.discovery.nvidia import topo_matrix, topo_p2p

MIXED = (Path(__file__).parents[2] / "data/topop2p-3gpu.txt").read_text("utf-8")


def test_statuses() -> None:
    access = topo_p2p.read(MIXED)
    assert access.gpus == ("GPU0", "GPU1", "GPU2")
    assert access.statuses == (("X", "OK", "CNS"), ("OK", "X", "TNS"), ("CNS", "TNS", "X"))
    assert access.ok(0, 1)
    assert not access.ok(0, 2)


def test_direct_pairs_have_an_unknown_kind_and_others_go_through_the_host() -> None:
    topology = topo_p2p.parse(MIXED.encode(), "L40S", pcie_gb_per_s=20.0, machine="box")
    assert topology.link(0, 1) == tp.Link(tp.LinkKind.UNKNOWN, 1, 20.0)
    assert topology.link(0, 2) == tp.Link(tp.LinkKind.HOST, 1, 20.0)
    assert topology.gpus[1] == tp.Gpu(1, "GPU1", "L40S", "box")
    assert topology.notes == (
        "Direct access is supported for 1 of 3 pairs, the first is GPU0 and GPU1.",
        "Direct access is not supported by the chipset for 1 of 3 pairs, the first is GPU0 and GPU2.",
        "Direct access is not supported in this topology for 1 of 3 pairs, the first is GPU1 and GPU2.",
        "What connects the pairs, and how fast, is not given: 20 GB/s is assumed.",
    )


@pytest.mark.parametrize(
    "other",
    [
        MIXED.split("Legend")[0],
        MIXED.replace("OK\tCNS", "OKCNS"),
        MIXED.replace("GPU1\tGPU2", "GPU1GPU2"),
        "$ nvidia-smi topo -p2p r\r\n" + MIXED.replace("\n", "\r\n"),
        MIXED.split("Legend")[0] + "$ exit\n",
    ],
    ids=["no legend", "cells touch", "columns touch", "prompt", "prompt behind"],
)
def test_other_dress_same_matrix(other: str) -> None:
    assert topo_p2p.read(other) == topo_p2p.read(MIXED)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no GPU: no line is a header"),
        (MIXED.replace("TNS", "NV4", 1), "line 3: unknown status 'NV4'"),
        (MIXED.replace("OK\tCNS", "OK"), "line 2: 2 columns, the header has 3"),
        (MIXED.replace("OK\tCNS", "OK\tCNS\tCNS"), "line 2: 4 columns, the header has 3"),
        (MIXED.replace("X\tOK", "OK\tX"), "row GPU0: GPU0 to GPU0 is OK"),
        (MIXED.replace("TNS\tX", "OK\tX"), "row GPU2: GPU2 to GPU1 is OK, but GPU1 to GPU2 is TNS"),
        (MIXED.replace("\n GPU2", "\n GPU1"), "line 4: row GPU1 appears twice"),
        (MIXED.replace("\n GPU2", "\n GPU7"), "line 4: 'GPU7' is not a column"),
        (MIXED.replace("\tGPU2", "\tGPU1"), "line 1: a GPU appears twice"),
        ("\n".join(MIXED.split("\n")[:3]), "row GPU2 is missing, column GPU2 is in line 1"),
        (" ".join(f"GPU{i}" for i in range(1000)), "line 1: more than 128 GPUs"),
        ("GPU0 GPU1\nGPU0 " + "XOK " * 250_000, "line 2: [0-9]+ columns"),
    ],
)
def test_bad_text_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(tp.TopologyError, match=message):
        topo_p2p.read(text)


def test_recognised() -> None:
    assert topo_p2p.recognised(MIXED)
    assert not topo_matrix.recognised(MIXED)
    assert not any(map(topo_p2p.recognised, ("", "GPU0 GPU1\n", "GPU0 GPU1\nGPU0 X NV1\nGPU1 NV1 X\n")))


def test_a_lone_gpu_is_told_by_the_legend() -> None:
    access = " \t\x1b[4mGPU0\t\x1b[0m\n GPU0\tX\t\n\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n"
    assert topo_p2p.recognised(access)
    assert not topo_matrix.recognised(access)
    assert tp.read(access).num_gpus == 1
    paths = "\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t0-15\t0\n"
    assert topo_matrix.recognised(paths)
    assert not topo_p2p.recognised(paths)


@given(st.text(st.sampled_from("GPU012 XOKCNST\t\n")))
def test_any_text_is_read_or_refused(text: str) -> None:
    for candidate in (text, MIXED[:30] + text + MIXED[30:]):
        try:
            assert topo_p2p.parse(candidate).num_gpus > 0
        except tp.TopologyError as error:
            assert str(error)  # noqa: PT017 - either outcome is right, any other exception is not
