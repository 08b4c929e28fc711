"""The bar with the time left: after a second, on a terminal, for whatever may take longer; else nothing."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import threading
import time
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from command_line import COMMAND, Call
from topoplace import _progress
from topoplace._progress import Progress
from topoplace_lab.commands import job_files


class Terminal(io.StringIO):
    """A standard error that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setattr(_progress, "_DELAY_S", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    return Terminal()


def wait_for(terminal: Terminal, pattern: str) -> None:
    end = time.monotonic() + 20
    while not re.search(pattern, terminal.getvalue()):
        assert time.monotonic() < end, terminal.getvalue()
        time.sleep(0.01)


def test_a_limit_of_time_is_the_time_left(terminal: Terminal) -> None:
    with redirect_stderr(terminal), Progress("searching", limit_s=90):
        wait_for(terminal, r"searching, at most 90 s.*0:00:\d\d.*0:01:\d\d")


def test_a_fraction_tells_the_time_left(terminal: Terminal, tmp_path: Path) -> None:
    path = tmp_path / "jobs"
    path.write_bytes(b"x" * 1000)
    with (
        redirect_stderr(terminal),
        path.open("rb", buffering=0) as file,
        Progress("reading", fraction=job_files._share_read(file)),
    ):
        for position in (100, 200, 300):
            file.seek(position)
            time.sleep(0.3)
        wait_for(terminal, r"reading.*0:00:\d\d.*0:00:\d\d")


def test_without_a_measure_only_the_time_is_shown(terminal: Terminal) -> None:
    with redirect_stderr(terminal), Progress("searching"):
        wait_for(terminal, r"searching.*0:00:\d\d")
    assert job_files._share_read(io.BytesIO(b"x")) is None


def test_the_bar_goes_with_the_work_and_with_its_error(terminal: Terminal) -> None:

    def work() -> None:
        with redirect_stderr(terminal), Progress("searching"):
            wait_for(terminal, "searching")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert terminal.getvalue().endswith("\x1b[2K")  # the line is cleared


def test_quick_work_shows_nothing(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_progress, "_DELAY_S", 30.0)
    with redirect_stderr(terminal), Progress("searching"):
        pass
    assert terminal.getvalue() == ""


def test_nothing_is_shown_or_started_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_progress, "_DELAY_S", 0.0)
    before = threading.active_count()
    for output in (io.StringIO(), None):
        with redirect_stderr(output), Progress("searching"):
            assert threading.active_count() == before
        assert output is None or output.getvalue() == ""


def test_what_was_finished_before_is_no_speed(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a restart, the time left follows from what is done since, so the bar begins there."""
    bars = pytest.importorskip("rich.progress")
    begun: list[float] = []
    update = bars.Progress.update
    monkeypatch.setattr(
        bars.Progress,
        "update",
        lambda bar, task, completed: (begun.append(completed), update(bar, task, completed=completed)),
    )
    with redirect_stderr(terminal), Progress("simulating", fraction=lambda: 0.9):
        wait_for(terminal, r"simulating.*-:--:--")
    assert begun[0] == 0.9


def test_it_is_shown_elsewhere_only_if_enabled(terminal: Terminal) -> None:
    with redirect_stderr(terminal), Progress("simulating", enabled=False) as hidden:
        assert hidden._thread is None
    with redirect_stderr(io.StringIO()), Progress("simulating", enabled=True) as shown:
        assert shown._thread is not None


def test_without_rich_nothing_is_shown(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with redirect_stderr(terminal), Progress("searching"):
        time.sleep(0.2)
    assert terminal.getvalue() == ""


FILES = {
    "jobs.csv": "job_id,due,weight\nvgg,3,0.5\n",
    "times.csv": "job_id,vm_type,gpus,hours\nvgg,NC6,1,4\n",
    "running.csv": "job_id,gpus\na,0-2\n",
    "trace.csv": "job_id,submit_s,num_gpus,duration_s\na,0,2,5\n",
}


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("place summit --gpus 2", "searching"),
        ("show summit --collective 4", "rating sets of GPUs"),
        ("make-room summit --running running.csv --gpus 2", "searching, at most 10 s"),
        ("make-room summit --running running.csv --gpus 2 --moves 8", "searching, at most 10 s"),
        ("capacity jobs.csv times.csv", "planning"),
        ("trace trace.csv", "reading trace.csv"),
        ("simulate summit --jobs trace.csv", "reading trace.csv"),
    ],
)
def test_commands_that_may_take_long_say_what_they_do(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch, command: str, what: str
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    monkeypatch.setattr(Progress, "__enter__", lambda self: said.append(self.what))
    assert call(*command.split()).code in (0, 1)
    assert said[0] == what


def test_piped_commands_are_quiet() -> None:
    command = [COMMAND, "simulate", "summit", "--num-jobs", "5000", "--policy", "fcfs"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
