"""Discovery on this host, with programs of our own on the PATH that print what the vendors' tools print."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

import topoplace as tp
from topoplace.discovery.live import discover, programs
from topoplace.topology.links.link_kinds import LinkKind

MATRIX = """\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity
GPU0\t X \tNV12\t0-3\t0
GPU1\tNV12\t X \t4-7\t1

Legend:
  NV#  = Connection traversing a bonded set of # NVLinks
"""
QUERY = """0, NVIDIA A100-SXM4-80GB, GPU-aaaa, 00000000:07:00.0, 81920
1, NVIDIA A100-SXM4-80GB, GPU-bbbb, 00000000:0F:00.0, 81920
"""
ROCM = """============================ ROCm System Management Interface ============================
================================ Weight between two GPUs =================================
       GPU0         GPU1
GPU0   0            15
GPU1   15           0
=============================== Link Type between two GPUs ===============================
       GPU0         GPU1
GPU0   0            XGMI
GPU1   XGMI         0
================================== End of ROCm SMI Log ===================================
"""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the PATH; `program` puts one there."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "pynvml", None)
    return tmp_path


def program(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def printing(*texts: tuple[str, str]) -> str:
    """A shell script that prints the text of the first word its arguments contain."""
    cases = "\n".join(
        f"*{word}*) while IFS= read -r line; do printf '%s\\n' \"$line\"; done <<'END'\n{text}END\n;;"
        for word, text in texts
    )
    return f'case "$*" in\n{cases}\nesac'


def test_nothing_there_names_every_source(tools: Path) -> None:
    with pytest.raises(tp.TopologyError) as caught:
        discover.discover(kfd_tree=tools / "kfd")
    for source in (
        "NVML: nvidia-ml-py is not installed",
        "nvidia-smi: is not on the PATH",
        "kfd: no such directory",
    ):
        assert source in str(caught.value)
    assert "\n  rocm-smi: is not on the PATH\n  lstopo: is not on the PATH" in str(caught.value)


def test_nvidia_smi_tells_links_and_devices(tools: Path) -> None:
    program(tools, "nvidia-smi", printing(("query-gpu", QUERY), ("topo", MATRIX)))
    topo = discover.discover(kfd_tree=tools / "kfd")
    assert (topo.link(0, 1).lanes, topo.bandwidth(0, 1)) == (12, 300.0)
    assert [gpu.uuid for gpu in topo.gpus] == ["GPU-aaaa", "GPU-bbbb"]
    assert topo.gpus[1].bus_id == "00000000:0F:00.0"
    assert topo.gpus[0].model == "A100"
    assert topo.gpus[0].memory_gb == pytest.approx(85.9, abs=0.1)


def test_a_tool_that_fails_hands_over_to_the_next(tools: Path) -> None:
    program(tools, "nvidia-smi", "echo 'NVIDIA-SMI has failed' >&2; exit 9")
    program(tools, "rocm-smi", printing(("showtopo", ROCM)))
    topo = discover.discover(kfd_tree=tools / "kfd")
    assert topo.link(0, 1).kind is LinkKind.XGMI
    (tools / "rocm-smi").unlink()
    with pytest.raises(tp.TopologyError, match="nvidia-smi: exit code 9: NVIDIA-SMI has failed"):
        discover.discover(kfd_tree=tools / "kfd")


def test_a_tool_that_hangs_is_given_up(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discover, "_TIMEOUT_S", 0.2)
    program(tools, "nvidia-smi", f"exec {sys.executable} -c 'import time; time.sleep(60)'")
    with pytest.raises(tp.TopologyError, match=r"nvidia-smi: did not answer within 0\.2 s"):
        discover.discover(kfd_tree=tools / "kfd")


def test_the_driver_of_amd_is_asked_for_its_tree(tools: Path) -> None:
    for node, properties in enumerate(
        ("cpu_cores_count 8\nsimd_count 0\n", "simd_count 416\n", "simd_count 416\n")
    ):
        folder = tools / "kfd/nodes" / str(node)
        folder.mkdir(parents=True)
        (folder / "properties").write_text(properties)
    topo = discover.discover(kfd_tree=tools / "kfd")
    assert topo.num_gpus == 2


def test_a_relative_entry_of_the_path_runs_nothing(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tools, "nvidia-smi", "touch ran")
    monkeypatch.chdir(tools)
    for entries in (".", "", "bin:.", "/nowhere::."):
        monkeypatch.setenv("PATH", entries)
        with pytest.raises(tp.TopologyError, match="nvidia-smi: is not on the PATH"):
            discover.discover(kfd_tree=tools / "kfd")
    assert not (tools / "ran").exists()


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_tool_that_prints_without_end_is_cut(
    tools: Path, monkeypatch: pytest.MonkeyPatch, stream: str
) -> None:
    monkeypatch.setattr(programs, "MAX_BYTES", 1 << 20)
    endless = f"import sys\nwhile True: sys.{stream}.write('0' * 4096)"
    program(tools, "nvidia-smi", f'exec {sys.executable} -c "{endless}"')
    start = time.monotonic()
    with pytest.raises(tp.TopologyError, match="nvidia-smi: printed more than 1048576 bytes"):
        discover.discover(kfd_tree=tools / "kfd")
    assert time.monotonic() - start < 10.0
