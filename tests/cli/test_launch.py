"""`topoplace place --launch` writes the files of a launcher and prints its command; it overwrites no other file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import topoplace as tp
from command_line import Call
from topoplace.cli import command_parser
from topoplace.launch.launchers import LAUNCHERS

PLACE = ("place", "gb200-nvl72", "--gpus", 6)


@pytest.mark.parametrize("launcher", ["torchrun", "mpirun", "srun", "hostfile"])
def test_files_are_those_of_the_placement(call: Call, tmp_path: Path, launcher: str) -> None:
    done = call(*PLACE, "--launch", launcher, "-o", tmp_path / "start")
    topology = tp.machines.get("gb200-nvl72")
    launch = tp.Placement((0, 1, 2, 3, 4, 5), topology=topology).launch(launcher)
    assert done.code == 0
    assert done.out.endswith(f"start it there: {launch.command}\n")
    assert {path.name: path.read_text("utf-8") for path in (tmp_path / "start").iterdir()} == launch.files


def test_roles_start_from_folders_of_their_own(call: Call, tmp_path: Path) -> None:
    roles = ("--role", "trainer=2", "--role", "rollout=4:allreduce", "--between", "trainer+rollout=3")
    done = call("place", "gb200-nvl72", *roles, "--launch", "torchrun", "-o", tmp_path / "start")
    lines = ["(cd trainer && sh torchrun.sh python trainer.py)"]
    lines += ["(cd rollout && MASTER_PORT=29501 sh torchrun.sh python rollout.py)"]
    assert (done.code, done.out.splitlines()[-2:]) == (0, [f"start it there: {lines[0]}", lines[1]])
    files = {str(path.relative_to(tmp_path / "start")) for path in (tmp_path / "start").rglob("*.sh")}
    assert files >= {"trainer/torchrun.sh", "rollout/torchrun.sh"}
    for words, message in (
        (("--gpus", "4"), "--gpus is not for a job of roles; say it in --role"),
        (("--parallel", "tensor=2"), "--parallel is not for a job of roles; say it in --role"),
    ):
        refused = call("place", "gb200-nvl72", *roles, *words)
        assert (refused.code, message in refused.err) == (2, True)
    assert "--between needs --role" in call("place", "gb200-nvl72", "--between", "a+b=1").err


def test_json_stays_alone_on_standard_output(call: Call, tmp_path: Path) -> None:
    done = call(*PLACE, "--launch", "srun", "-o", tmp_path, "--json")
    assert json.loads(done.out)["candidates"]
    assert "start it there: SLURM_HOSTFILE=hosts.txt srun " in done.err


def test_another_file_is_kept(call: Call, tmp_path: Path) -> None:
    assert call(*PLACE, "--launch", "mpirun", "-o", tmp_path).code == 0
    assert call(*PLACE, "--launch", "mpirun", "-o", tmp_path).code == 0
    before = (tmp_path / "rank.sh").read_bytes()
    done = call(*PLACE, "--launch", "srun", "-o", tmp_path)
    assert (done.code, done.err) == (
        2,
        f"topoplace: {tmp_path / 'rank.sh'}: exists, and is another; use an empty directory\n",
    )
    assert (tmp_path / "rank.sh").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--launch", "srun"], "--launch needs -o, the directory into which its files are written"),
        (["--launch", "rankfile", "-o", "x"], "CPUs near the GPU of task 0 are unknown"),
        (["--launch", "srun", "-o", "x.png"], "-o x.png: several files are written; name a directory"),
    ],
)
def test_what_cannot_be_written_is_named(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = call(*PLACE, *arguments)
    assert done.code == 2
    assert message in done.err


def test_the_command_knows_all_launchers() -> None:
    for launcher in LAUNCHERS:
        assert command_parser().parse_args(["place", "minsky", "--launch", launcher]).launch == launcher
