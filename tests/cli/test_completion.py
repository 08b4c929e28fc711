"""The scripts for shells, in the shells: commands, options, names and files are completed."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import topoplace as tp
from command_line import Call, run

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
    "topoplace place dgx1-v100 --pattern t": {"tree", "torus"},
    "topoplace compare summit --policies fcfs,mapa-g": {"fcfs,mapa-greedy"},
    "topoplace capacity a b --planner s": {"search", "shares"},
    "topoplace profile show to": {"topo.txt"},
    "topoplace show summit -o fol": {"folder/"},
    "topoplace collective dgx1-v": {"dgx1-v100"},
    "topoplace collective measure --prog": {"--program"},
    "topoplace place --gpus ": set(),
    "topoplace slurm file job": {"job_submit.lua"},
}


def needs(shell: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"this host has no {shell}")


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the three scripts, a file and a directory."""
    folder = tmp_path_factory.mktemp("shells")
    for shell in ("bash", "zsh", "fish"):
        (folder / shell).write_text(run("completion", shell).stdout, "utf-8")
    (folder / "topo.txt").touch()
    (folder / "folder").mkdir()
    return folder


def printed(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    return done.stdout


def in_bash(folder: Path, words: list[str]) -> set[str]:
    typed = " ".join(f"'{word}'" for word in words)
    script = (
        f"source ./bash; COMP_WORDS=({typed}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _topoplace; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    return set(printed(folder, "bash", "--norc", "-c", script).split())


@needs("bash")
@pytest.mark.parametrize("line", WORDS)
def test_bash(scripts: Path, line: str) -> None:
    assert in_bash(scripts, line.split(" ")) == {word.rstrip("/") for word in WORDS[line]}


@needs("bash")
def test_bash_splits_words_at_the_sign_of_equality(scripts: Path) -> None:
    for typed in (["--policy", "=", "mapa-g"], ["--policy", "mapa-g"]):
        assert in_bash(scripts, ["topoplace", "place", "x", *typed]) == {"mapa-greedy"}
    assert "baseline" in in_bash(scripts, ["topoplace", "place", "x", "--policy", "="])


@needs("fish")
@pytest.mark.parametrize("line", WORDS)
def test_fish(scripts: Path, line: str) -> None:
    shown = printed(scripts, "fish", "--no-config", "-c", f"source ./fish; complete -C '{line}'")
    assert {row.partition("\t")[0] for row in shown.splitlines()} == WORDS[line]


SETUP = (
    "autoload -U compinit; compinit -u -D; zstyle ':completion:*' insert-tab false; source ./zsh",
    """show() { print -r -- "<$BUFFER>"; BUFFER=""; zle redisplay }; zle -N show; bindkey '^X' show""",
    "unsetopt beep; PS1='re''ady> '",
)
"""What makes zsh complete, and show its line on Ctrl-X."""


class Zsh:
    """A zsh on a terminal of its own, as zsh completes only what is typed."""

    def __init__(self, folder: Path) -> None:
        self._process, self._terminal = pty.fork()
        if not self._process:  # pragma: no cover
            os.chdir(folder)
            os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, "TERM": "dumb", "PS1": "> "})
        self._ask("\n".join((*SETUP, "")), "ready>")

    def _ask(self, typed: str, end: str) -> str:
        """Type, and return what is shown until `end`."""
        os.write(self._terminal, typed.encode())
        shown, until = "", time.monotonic() + 30
        while not re.search(end, shown):
            assert time.monotonic() < until, shown
            if select.select([self._terminal], [], [], 0.1)[0]:
                shown += os.read(self._terminal, 65536).decode()
        return shown

    def completed(self, line: str) -> str:
        """Return the line after a tab; then clear it."""
        shown = self._ask(f"{line}\t\x18", "<[^>]*>")
        return re.findall("<([^>]*)>", shown)[-1].removeprefix("topoplace ")

    def end(self) -> None:
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        os.close(self._terminal)


@pytest.fixture
def zsh(scripts: Path) -> Iterator[Zsh]:
    running = Zsh(scripts)
    yield running
    running.end()


@needs("zsh")
def test_zsh(zsh: Zsh) -> None:
    single = {line: words for line, words in WORDS.items() if len(words) == 1}
    assert len(single) > 6
    for line, (word,) in single.items():
        typed = line.removeprefix("topoplace ").rpartition(" ")[0]
        assert zsh.completed(line).rstrip(", =") == f"{typed} {word}".strip(), line
    assert zsh.completed("topoplace place dgx1-").strip() == "place dgx1-"  # there are several


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_name_is_in_the_script(scripts: Path, shell: str) -> None:
    script = (scripts / shell).read_text("utf-8")
    for name in (*tp.policies.names(), *tp.machines.names(), "torus", "device-plugin"):
        assert re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", script.replace("\\", "")), name


def test_another_shell_is_refused(call: Call) -> None:
    done = call("completion", "bsh")
    assert (done.code, done.out) == (2, "")
    assert "not one of bash, fish, zsh; did you mean bash or zsh?" in done.err
