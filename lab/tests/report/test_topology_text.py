"""The tables that describe a topology: what is left out of them if it is large, and what is said next to them."""

from __future__ import annotations

from dataclasses import replace

import pytest

import topoplace as tp
from topoplace import discovery
from topoplace.drawing import topology_text
from topoplace.topology.fabric import Fabric

MINSKY = tp.machines.get("minsky")


def shown(topology: tp.Topology, capsys: pytest.CaptureFixture[str]) -> str:
    topology_text.show(topology)
    return capsys.readouterr().out


def test_the_links_of_each_pair_are_shown_up_to_16_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    title = "GB/s between GPUs, one direction"
    assert title in shown(tp.Topology.from_links(16, [(0, 1, 25.0)], 12.0), capsys)
    assert title not in shown(tp.Topology.from_links(17, [(0, 1, 25.0)], 12.0), capsys)


def test_machines_of_a_network_are_shown_one_by_one_if_there_are_many_gpus(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for machines, title in ((4, "slurm: GB/s between GPUs"), (5, "minsky: GB/s between GPUs")):
        fabric = discovery.read(f"SwitchName=leaf Nodes=n[1-{machines}]")
        assert isinstance(fabric, Fabric)
        text = shown(tp.Topology.cluster(MINSKY, fabric=fabric, name="slurm"), capsys)
        assert f"{machines} x minsky" in text
        assert title in text


def test_only_so_many_gpus_are_counted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topology_text, "_MAX_COUNTED", 3)
    assert "only the pairs of the first 3 GPUs are counted" in shown(MINSKY, capsys)


def test_what_the_tables_leave_out(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(replace(tp.machines.get("dgx-a100"), partitions=((0, 1), (2, 3)), notes=("seen",)), capsys)
    assert "only these sets of GPUs may be given to a job: (0, 1) (2, 3)\n" in text
    assert "note: seen\n" in text


def test_guessed_speeds_are_not_called_given(capsys: pytest.CaptureFixture[str]) -> None:
    text = "\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n"
    title = "nvidia-smi: 2 GPUs of unknown model; speeds: partly assumed\n"
    assert title in shown(tp.Topology.from_nvidia_smi(text), capsys)
    known = tp.Topology.from_nvidia_smi(text, gpu_model="A100")
    assert "nvidia-smi: 2 x A100; speeds: nominal\n" in shown(known, capsys)


def test_a_gpu_alone_has_no_wiring() -> None:
    assert topology_text.wiring(tp.Topology.from_links(1, [], 12.0)) == "-"
    assert topology_text.wiring(MINSKY) == "2 NVLINK1 x2, 4 SYS"
