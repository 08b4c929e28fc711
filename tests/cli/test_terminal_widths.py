"""On terminals of any usual width, tables are cut nowhere: every word of the piped output is there."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from distributions import whole
from thoroughness import share
from topoplace.drawing import tables

NODES = (
    "NodeName=n1 Gres=gpu:a100:2 GresUsed=gpu:a100:1(IDX:0) State=MIXED\n\n"
    "JobId=20 JobState=RUNNING NodeList=n1 NumNodes=1 TresPerNode=gres/gpu:a100:1 "
    "EndTime=2026-11-20T12:00:00\n   Nodes=n1 CPU_IDs=0 Mem=0 GRES=gpu:a100:1(IDX:0)\n\n"
    "JobId=21 JobState=PENDING NumNodes=1 TresPerNode=gres/gpu:1\n"
)
COMMANDS = (
    "place dgx1-v100 --busy 0,5",
    "place gb200-nvl72 --gpus 6 --busy 0",
    "show gb200-nvl72",
    "policies",
    "when 21 --from nodes.txt",
    "simulate dgx1-v100 --num-jobs 9",
)
WIDTHS = (60, 72, 80, 82, 100)


def words(text: str) -> set[str]:
    """The words of an output, without colours."""
    return set(re.sub(r"\x1b\[[\d;]*m", "", text).split())


def on_terminal(command: list[str], columns: int, folder: Path) -> str:
    """Run a command on a pseudo-terminal, and return what it prints."""
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, cwd=folder, env=environment):
        os.close(its)
        parts: list[bytes] = []
        while part := read(ours):
            parts.append(part)
    os.close(ours)
    return b"".join(parts).decode()


def read(terminal: int) -> bytes:
    """What is there to read; b"" after the program has ended."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # Linux says so that nobody writes any more
        return b""


@whole
@pytest.mark.parametrize("words_of_command", COMMANDS)
def test_no_word_is_cut(words_of_command: str, tmp_path: Path) -> None:
    (tmp_path / "nodes.txt").write_text(NODES, "utf-8")
    command = [sys.executable, "-m", "topoplace", *words_of_command.split()]
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    piped = subprocess.run(command, capture_output=True, encoding="utf-8", cwd=tmp_path, env=environment)
    assert piped.returncode == 0, piped.stderr
    for columns in share(WIDTHS, COMMANDS.index(words_of_command), of=5):
        shown = on_terminal(command, columns, tmp_path)
        assert words(piped.stdout) - words(shown) == set(), columns


@pytest.mark.parametrize("most", range(10, 60))
def test_widths_fill_no_more_than_there_is_and_break_no_word(most: int) -> None:
    columns = ("GPUs by task", "oversubscription", "time")
    cells = [("tray01 0–3; tray02 0–3", "1", "2.19 ms"), ("n1 0", "-", "3 s")]
    widths = tables.column_widths(columns, cells, most)
    if widths is None:
        assert most < 20 + len("oversubscription") + len("2.19 ms")
        return
    assert sum(widths) <= most
    assert widths[1:] == [16, 7]
    assert 20 <= widths[0] <= 22
