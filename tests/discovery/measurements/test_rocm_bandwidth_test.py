from __future__ import annotations

from pathlib import Path

import pytest

import topoplace as tp
from refusals import refusal
from topoplace.discovery.measurements import rocm_bandwidth_test


@pytest.fixture
def text(repository: Path) -> str:
    return (repository / "tests/data/rocm-bandwidth-test-2gpu.txt").read_text("utf-8")


def test_the_slower_direction_of_a_one_way_copy_counts(text: str) -> None:
    topology = rocm_bandwidth_test.parse(text)
    assert [(gpu.name, gpu.model, gpu.bus_id) for gpu in topology.gpus] == [
        ("GPU0", "First GPU", "0000:0d:00.0"),
        ("GPU1", "Second GPU [Model (2)]", "0000:a0:00.1"),
    ]
    assert topology.link(0, 1) == tp.Link(tp.LinkKind.UNKNOWN, 1, 47.080)
    assert topology.notes == ()


def test_a_device_without_an_address_is_a_gpu_where_it_copies_to_itself(text: str) -> None:
    bare = text.replace(",  GPU-0123456789abcdef,  0d:0.0", "")
    assert [gpu.model for gpu in rocm_bandwidth_test.parse(bare).gpus] == [
        "First GPU",
        "Second GPU [Model (2)]",
    ]
    assert rocm_bandwidth_test.parse(text.replace("594.097", "N/A    ")) == rocm_bandwidth_test.parse(text)
    with pytest.raises(tp.TopologyError, match="no GPU: none of the devices"):
        rocm_bandwidth_test.parse(
            text[text.index("          Unidirectional") :]
            .replace("594.097", "N/A")
            .replace("1302.073", "N/A")
        )


def test_pairs_without_peer_access_have_the_default(text: str) -> None:
    topology = rocm_bandwidth_test.parse(text.replace("47.080", "N/A   "), default_gb_per_s=9.0)
    assert topology.link(0, 1) == tp.Link(tp.LinkKind.HOST, 1, 9.0)
    assert topology.notes == ("1 of 1 pairs were not measured: 9 GB/s is assumed.",)


def test_copies_of_processors_tell_nothing_about_gpus(repository: Path) -> None:
    data = (repository / "tests/data/rocm-bandwidth-test-processors.txt").read_bytes()
    assert (
        refusal(rocm_bandwidth_test.parse, data)
        == "line 3: no copy from GPU to GPU was measured: the columns are 'cpu0, cpu1'"
    )


def test_two_way_copies_alone_are_refused(text: str) -> None:
    start, end = text.index("          Unidirectional"), text.index("          Bidirectional")
    with pytest.raises(tp.TopologyError, match="only both directions at once were measured"):
        rocm_bandwidth_test.parse(text[:start] + text[end:])
    with pytest.raises(tp.TopologyError, match=r"^the text has no matrix of copies"):
        rocm_bandwidth_test.parse(text[:start])


def test_recognised(text: str) -> None:
    assert rocm_bandwidth_test.recognised(text)
    assert not rocm_bandwidth_test.recognised("GB/s")
