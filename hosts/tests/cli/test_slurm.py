"""The commands about Slurm that need no Slurm."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import Call
from topoplace import Topology, machines
from topoplace_hosts.slurm import shipped


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.json"
    path.write_text(
        Topology.cluster(machines.get("dgx1-v100"), 3, names=["n1", "n2", "n7"]).to_json(), "utf-8"
    )
    return path


def test_gres(call: Call, cluster: Path) -> None:
    done = call("slurm", "gres", cluster, "--device-file", "/dev/gpu{number}")
    assert done.code == 0
    assert "NodeName=n[1-2,7] Name=gpu Type=g6 File=/dev/gpu6\n" in done.out
    assert "# NodeName=n[1-2,7] Gres=gpu:g0:1,gpu:g1:1," in done.out


@pytest.mark.parametrize("name", shipped.NAMES)
def test_files(call: Call, name: str) -> None:
    assert call("slurm", "file", name).out == shipped.text(name)


def test_units_name_commands_that_exist(call: Call) -> None:
    """Each ExecStart is a command line that is understood."""
    for name in shipped.NAMES:
        for line in shipped.text(name).splitlines():
            if line.startswith("ExecStart="):
                words = line.partition("topoplace/bin/topoplace ")[2].split()
                assert call(*words[:2], "--help").code == 0
                assert all(flag in call(*words[:2], "--help").out for flag in words if flag.startswith("--"))


def test_run_needs_the_commands_of_slurm(
    call: Call, cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = call("slurm", "run", cluster, "--journal", tmp_path / "journal")
    message = "this host has no squeue, sinfo, scontrol: run this where Slurm's commands are"
    assert (done.code, done.out, done.err) == (2, "", f"topoplace: {message}\n")


def test_release_where_slurm_does_not_answer(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = call("slurm", "release", "--journal", tmp_path / "journal")
    assert (done.code, done.out) == (2, "")
    assert done.err == "topoplace: scontrol: there is no such command on this host\n"
