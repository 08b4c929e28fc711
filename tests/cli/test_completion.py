"""What shells complete: commands, options, names and files, as argcomplete answers their scripts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import topoplace as tp
from command_line import COMMAND, Call, run
from distributions import whole

pytest.importorskip("argcomplete")

# What is typed, and what the last word may become.
WORDS = {
    "topoplace pla": {"place"},
    "topoplace papers ma": {"mapa"},
    "topoplace kubernetes ": {"device-plugin", "scheduler", "extender", "label", "resource-slices"},
    "topoplace place dgx1-": {"dgx1-p100", "dgx1-v100"},
    "topoplace show to": {"topo.txt", "torus2d-16"},
    "topoplace place dgx1-v100 --polic": {"--policy"},
    "topoplace place dgx1-v100 --gpus 4 --bus": {"--busy", "--busy-from"},
    "topoplace place dgx1-v100 --policy mapa-": {"mapa-topo-aware", "mapa-greedy", "mapa-preserve"},
    "topoplace place dgx1-v100 --policy=mapa-g": {"--policy=mapa-greedy"},
    "topoplace place dgx1-v100 --pattern t": {"tree", "torus"},
    "topoplace simulate summit --policies fcfs,mapa-g": {"fcfs,mapa-greedy"},
    "topoplace capacity a b --planner s": {"search", "shares"},
    "topoplace profile show to": {"topo.txt"},
    "topoplace show summit -o fol": {"folder/"},
    "topoplace sho": {"show"},
    "topoplace show meas": {"measure"},
    "topoplace show measure dgx1-v": {"dgx1-v100"},
    "topoplace show measure --prog": {"--program"},
    "topoplace place --gpus ": set(),
    "topoplace slurm file job": {"job_submit.lua"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with a file and a directory."""
    (tmp_path / "topo.txt").touch()
    (tmp_path / "folder").mkdir()
    return tmp_path


def completed(folder: Path, line: str) -> set[str]:
    """Return what the end of `line` may become, as the script of a shell asks for it."""
    answer = folder / "answer"
    asked = {"COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n"}
    asked |= {"_ARGCOMPLETE_SUPPRESS_SPACE": "1", "_ARGCOMPLETE_STDOUT_FILENAME": str(answer)}
    subprocess.run([COMMAND], cwd=folder, env={**os.environ, **asked}, timeout=60, check=True)
    return set(answer.read_text("utf-8").split())


@whole
@pytest.mark.parametrize("line", WORDS)
def test_words(folder: Path, line: str) -> None:
    assert completed(folder, line) == WORDS[line]


def test_every_name_is_offered(folder: Path) -> None:
    assert completed(folder, "topoplace show ") >= {*tp.machines.names()}
    assert completed(folder, "topoplace place x --policy ") >= {*tp.policies.names()}


IN_SHELLS = {
    "bash": 'source ./script; COMP_LINE="topoplace pla" COMP_POINT=13; _python_argcomplete topoplace; '
    'printf "%s" "${COMPREPLY[@]}"',
    "fish": "source ./script; complete -C 'topoplace pla' | cut -f 1",
    "zsh": "compdef() { print $2 }; source ./script",  # zsh completes only at a terminal
}


@pytest.mark.parametrize(("shell", "code"), IN_SHELLS.items())
def test_shells_take_the_script(folder: Path, shell: str, code: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"this host has no {shell}")
    (folder / "script").write_text(run("completion", shell).stdout, "utf-8")
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path, "HOME": str(folder)}
    command = [shell, "-c", code]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert (done.stdout.split()[0], done.stderr) == ("topoplace" if shell == "zsh" else "place", "")


def test_argcomplete_is_needed(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "argcomplete", None)
    done = call("completion", "bash")
    assert (done.code, done.out) == (2, "")
    assert "topoplace completion needs argcomplete: pip install 'topoplace[cli]'" in done.err


def test_another_shell_is_refused(call: Call) -> None:
    done = call("completion", "bsh")
    assert (done.code, done.out) == (2, "")
    assert "not one of bash, fish, zsh; did you mean bash or zsh?" in done.err
