"""NCCL's debug log: the graph of the system and NVLink cliques become machines; what is cut costs that part."""

from __future__ import annotations

from pathlib import Path

import pytest

from refusals import refusal
from topoplace import LinkKind, Topology, discovery
from topoplace.discovery.nccl import debug_log

FABRIC = (
    "{host}:{pid}:9 [{gpu}] NCCL INFO MNNVL busId 0x{bus} fabric UUID a1.b2 cliqueId 0x7ffe state {state} "
    "healthMask 0x0\n"
)


@pytest.fixture(scope="module")
def text(repository: Path) -> str:
    return (repository / "tests/data/nccllog-2hosts.txt").read_text("utf-8")


def of_host(text: str, host: str) -> Topology:
    return debug_log.parse("".join(line for line in text.splitlines(True) if line.startswith(host)))


def noted(topology: Topology, words: str) -> bool:
    return any(words in note for note in topology.notes)


def test_graph_behind_a_switch(text: str) -> None:
    one = of_host(text, "n1")
    assert [(gpu.name, gpu.bus_id, gpu.numa_node, gpu.cpus) for gpu in one.gpus] == [
        ("GPU4", "0000:1b:00.0", 0, None),
        ("GPU5", "0000:1c:00.0", 0, "32-39"),
    ]
    assert (one.link(0, 1).kind, one.bandwidth(0, 1)) == (LinkKind.NVSWITCH, 240.0)
    assert [(nic.name, nic.paths, nic.gb_per_s) for nic in one.nics] == [
        ("mlx5_3", ("PIX", "PIX"), 25.0),
        ("mlx5_0", ("SYS", "SYS"), 25.0),
    ]
    assert [one.cpu for one in one.components if one.cpu] == ["socket-amd"] * 2
    assert noted(one, "1 PCIe switches show 0.2 GB/s")
    assert noted(one, "JobGraph.from_nccl_log")


def test_direct_links_and_a_graph_without_end(text: str) -> None:
    two = of_host(text, "n2")
    assert [gpu.name for gpu in two.gpus] == ["GPU0", "GPU1"]
    assert (two.link(0, 1).kind, two.link(0, 1).lanes, two.bandwidth(0, 1)) == (
        LinkKind.NVLINK,
        1,
        36.0,
    )
    assert noted(two, "has no end")
    assert noted(two, "numbered by bus id")
    lanes = debug_log.parse(text.replace("36.0", "54.0"), gpu_model="P100").link(2, 3).lanes
    assert lanes == 3


def test_hosts_become_machines(text: str) -> None:
    both = discovery.read(text)
    assert both.machine_names == ("n1", "n2")
    assert noted(both, "network of its hosts")


@pytest.mark.parametrize("lines", range(1, 30))
def test_every_cut_costs_only_what_it_cuts(text: str, lines: int) -> None:
    cut = "".join(text.splitlines(True)[:lines])
    if not debug_log.recognised(cut):
        return
    if lines < 10:
        assert "no GPU below it" in refusal(debug_log.parse, cut)
        return
    read = debug_log.parse(cut)
    assert read.gpus[0].bus_id == "0000:1b:00.0"
    assert lines >= 21 or noted(read, "has no end")


def test_a_damaged_line_is_noted(text: str) -> None:
    damaged = text.replace("              + PCI[24.0] - NIC/0-1d000", "     + PCI[24.0] - NIC/0-1d000")
    assert any("lines of NCCL's graph are not read" in note for note in of_host(damaged, "n1").notes)
    other = text.replace(
        "CPU/0-1 (1/2/-1)\n", "CPU/0-1 (1/2/-1)\nn1:100:200 [0] NCCL INFO + GIN[9.0] - GIN/0-1\n"
    )
    assert noted(of_host(other, "n1"), "1 lines of NCCL's graph are not read")


def test_a_graph_of_several_hosts_is_one_domain(text: str) -> None:
    lines = [line for line in text.splitlines(True)[4:21] if line.startswith("n1:100")]
    second = [line.replace("/0-", "/1-") for line in lines[1:-1]]
    read = debug_log.parse("".join([*lines[:-1], *second, lines[-1]]))
    assert (read.num_gpus, read.num_machines) == (4, 2)
    assert read.link(0, 2).kind is LinkKind.NVSWITCH


@pytest.mark.parametrize(("model", "speed", "assumed"), [(None, 450.0, 1), ("GB200", 900.0, 0)])
def test_cliques_of_two_hosts(model: str | None, speed: float, assumed: int) -> None:
    text = "".join(
        FABRIC.format(host=host, pid=gpu, gpu=gpu, bus=f"{8 + gpu:x}01000", state=3)
        for host in ("a", "b")
        for gpu in range(2)
    )
    read = debug_log.parse(
        text + "a:0:9 [0] NCCL INFO MNNVL 1 cliqueId 7ffe cliqueSize 8 cliqueRank 0\n", model
    )
    assert (read.num_gpus, read.machine_names, len(read.assumed)) == (4, ("a", "b"), assumed)
    assert {(read.link(u, v).kind, read.bandwidth(u, v)) for u, v in ((0, 1), (0, 2))} == {
        (LinkKind.NVSWITCH, speed)
    }
    assert noted(read, "In the NVLink domain a1.b2.32766 (fabric UUID and clique): 4 GPUs")
    assert noted(read, "has 8 ranks")


def test_a_gpu_outside_its_fabric() -> None:
    text = FABRIC.format(host="a", pid=0, gpu=0, bus="1000", state=3)
    text += FABRIC.format(host="a", pid=1, gpu=1, bus="2000", state=1)
    read = debug_log.parse(text)
    assert read.link(0, 1).kind is LinkKind.UNKNOWN
    assert noted(read, "not joined an NVLink fabric: a/0000:02:00.0")


OLD = """\
n1:8:9 [0] NCCL INFO === System : maxWidth 252.0 totalWidth 252.0 ===
n1:8:9 [0] NCCL INFO CPU/0 (1/2/-1)
n1:8:9 [0] NCCL INFO + PCI[24.0] - GPU/E000 (0)
n1:8:9 [0] NCCL INFO               + NVL[252.0] - NVS/0
n1:8:9 [0] NCCL INFO + PCI[24.0] - GPU/13000 (1)
n1:8:9 [0] NCCL INFO               + NVL[252.0] - NVS/0
n1:8:9 [0] NCCL INFO ==========================================
"""


def test_the_head_of_old_versions() -> None:
    found = debug_log.parse(OLD)
    assert (found.num_gpus, found.link(0, 1).kind.name, found.link(0, 1).gb_per_s) == (2, "NVSWITCH", 252.0)
