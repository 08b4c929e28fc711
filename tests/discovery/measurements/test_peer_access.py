"""The access lines of p2pBandwidthLatencyTest tell GPUs and pairs with direct access."""

from __future__ import annotations

import pytest

from refusals import refusal
from topoplace import LinkKind, discovery
from topoplace.discovery.measurements import peer_access

TEXT = """\
[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]
Device: 0, NVIDIA GeForce RTX 4090, pciBusID: 2, pciDeviceID: 0, pciDomainID:0
Device: 1, NVIDIA A100-PCIE-40GB, pciBusID: d, pciDeviceID: 0, pciDomainID:0
Device: 2, NVIDIA A100-PCIE-40GB, pciBusID: 17, pciDeviceID: 0, pciDomainID:1
Device=0 CANNOT Access Peer Device=1
Device=1 CANNOT Access Peer Device=0
Device=1 CAN Access Peer Device=2
Device=2 CAN Access Peer Device=1
"""


def test_pairs_and_devices() -> None:
    read = discovery.read(TEXT)
    assert [(gpu.model, gpu.bus_id) for gpu in read.gpus] == [
        ("NVIDIA GeForce RTX 4090", "0000:02:00.0"),
        ("A100", "0000:0d:00.0"),
        ("A100", "0001:17:00.0"),
    ]
    assert [read.link(u, v).kind for u, v in ((0, 1), (0, 2), (1, 2))] == [
        LinkKind.HOST,
        LinkKind.HOST,
        LinkKind.UNKNOWN,
    ]
    assert any("1 of 3 pairs: GPU1-GPU2" in note for note in read.notes)
    assert any("Of 1 pairs the text does not state" in note for note in read.notes)


@pytest.mark.parametrize(
    "line", ["Device=1 CAN Access Peer Device=1\n", "Device=1 CAN Access Peer Device=128\n"]
)
def test_no_pair(line: str) -> None:
    assert "line 9: device 1 and peer" in refusal(discovery.read, TEXT + line)


def test_a_direction_without_access_counts() -> None:
    assert discovery.read(TEXT.replace("Device=2 CAN ", "Device=2 CANNOT ")).link(1, 2).kind is LinkKind.HOST


def test_a_text_without_pairs_or_with_too_many_devices() -> None:
    assert "no line is like" in refusal(peer_access.parse, "")
    many = TEXT.replace("Device: 2, ", "Device: 700, ")
    assert "device 700 is not in 0..127" in refusal(peer_access.parse, many)
