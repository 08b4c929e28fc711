from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace import discovery
from topoplace.discovery.measurements import p2p_and_nccl_tests
from topoplace.topology.speed_overrides import with_link_speeds

DATA = Path(__file__).parents[2] / "data"
P2P = (DATA / "measured-p2p-2gpu.txt").read_text("utf-8")
TESTS = (DATA / "measured-nccltests-3gpu.txt").read_text("utf-8")


def test_copies_one_way_at_the_slower_of_both() -> None:
    assert p2p_and_nccl_tests.parse(P2P).tolist() == [[0.0, 255.5], [255.5, 0.0]]
    assert p2p_and_nccl_tests.parse(P2P.encode(), peer_access=False).tolist() == [[0.0, 25.0], [25.0, 0.0]]
    reads = P2P.replace("(P2P Writes) Matrix (GB/s)", "(P2P Reads) Matrix (GB/s)")
    assert (p2p_and_nccl_tests.parse(reads) == p2p_and_nccl_tests.parse(P2P)).all()


def test_half_of_what_both_ways_carry_if_no_matrix_of_one_way_is_left() -> None:
    both = "Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n   D\\D     0      1\n"
    both += "     0 900.00  50.50\n     1  50.00 900.00\nP2P=Disabled Latency Matrix (us)\n"
    assert discovery.read(both).tolist() == [[0.0, 25.0], [25.0, 0.0]]
    assert "half of each" in p2p_and_nccl_tests.notes(both)[0]
    assert p2p_and_nccl_tests.notes(P2P + both) == p2p_and_nccl_tests.notes(TESTS) == ()
    assert (discovery.read(P2P + both) == discovery.read(P2P)).all()
    with pytest.raises(tp.TopologyError, match="no matrix with P2P=Disabled"):
        discovery.read(both, peer_access=False)


def test_runs_of_a_pair_count_more_than_those_of_many() -> None:
    expected = [[0.0, 93.21, 80.5], [93.21, 0.0, 93.21], [80.5, 93.21, 0.0]]
    assert p2p_and_nccl_tests.parse(TESTS).tolist() == expected
    tagged = "\n".join(f"[1,0]<stdout>:{line}" for line in TESTS.split("\n"))
    assert p2p_and_nccl_tests.parse(tagged).tolist() == expected


def test_one_run_has_its_highest_bus_bandwidth() -> None:
    first = TESTS[: TESTS.index("# Avg bus bandwidth")]
    assert p2p_and_nccl_tests.bus_bandwidth(first) == (3, 93.21)
    assert p2p_and_nccl_tests.bus_bandwidth(first.encode()) == (3, 93.21)
    for text, message in (
        (TESTS, "has 2 runs of NCCL's tests"),
        (P2P, "has 0 runs"),
        (first[: first.index("     1048576")], "has no bus bandwidth"),
    ):
        with pytest.raises(tp.TopologyError, match=message):
            p2p_and_nccl_tests.bus_bandwidth(text)


def test_a_measured_matrix_replaces_the_speeds_of_a_topology() -> None:
    topology = tp.Topology.from_links(2, [(0, 1, 300.0, tp.LinkKind.NVLINK4, 12)])
    faster = with_link_speeds(topology, p2p_and_nccl_tests.parse(P2P))
    assert faster.link(0, 1) == tp.Link(tp.LinkKind.NVLINK4, 12, 255.5)
    assert isinstance(p2p_and_nccl_tests.parse(P2P), np.ndarray)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the measurement is neither of"),
        (
            P2P.replace("Unidirectional P2P=Enabled", "Other"),
            "the measurement has no matrix with P2P=Enabled",
        ),
        (P2P.replace("P2P=Disabled", "P2P=Enabled"), "line 15: a second matrix of the same kind"),
        (P2P.replace("   D\\D     0      1", "D 0 1"), "line 11: must be followed by a header of columns"),
        (P2P.replace("D\\D     0      1", "D\\D     1      0"), "line 12: the columns are not 0, 1"),
        (P2P.replace(" 255.50", ""), "line 17: '     0 1620.00 ' is not row 0 of 2 columns"),
        (P2P.replace("255.50", "fast"), "line 17: 'fast' is not a speed"),
        (P2P.replace("255.50", "0.00"), "from GPU 0 to GPU 1, or back, the measurement has 0 GB/s"),
        ("\n".join(P2P.split("\n")[:17]), "line 15: 1 rows follow, the header has 2"),
        (TESTS.replace("box4 device  2", "box5 device  2"), "line 6: a second host"),
        (TESTS.replace("device  1", "device  0"), "line 5: device 0 has two ranks"),
        (TESTS.replace("box4 device  1", "box5 device  0"), "line 5: a second host"),
        (TESTS.replace("device  1", "device  999"), r"line 5: device 999 is not in 0\.\.127"),
        (TESTS.replace("93.21      0", "93.21"), "line 12: 12 columns, the header has 13"),
        (TESTS.replace("93.21", "nan"), "line 12: 'nan' is not a speed"),
        (TESTS.split("#  Rank  2")[0] + TESTS[TESTS.index("# nThread 1 nGpus 2") :], "GPUs 0 and 1 were not"),
    ],
)
def test_bad_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(tp.TopologyError, match=message):
        p2p_and_nccl_tests.parse(text)


def test_recognised() -> None:
    assert p2p_and_nccl_tests.recognised(P2P)
    assert p2p_and_nccl_tests.recognised(TESTS)
    assert not any(map(p2p_and_nccl_tests.recognised, ("", "# Using devices\n", "D\\D 0 1\n")))


@given(st.sampled_from([P2P, TESTS]), st.data())
def test_mutated_text_is_read_or_refused(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        piece = data.draw(st.sampled_from(["", "\n", "9", " ", "²", "# Using devices\n", "D\\D 0"]))
        text = text[:at] + piece + text[at + data.draw(st.integers(0, 30)) :]
    try:
        assert (np.diagonal(p2p_and_nccl_tests.parse(text)) == 0).all()
    except tp.TopologyError as error:
        assert str(error)  # noqa: PT017 - either outcome is right, any other exception is not
