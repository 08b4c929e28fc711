"""Simulations in several processes: their results, what they raise, and what is left after Ctrl-C."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from topoplace.papers.runs import Runner


def test_results_are_in_the_order_of_the_calls_in_any_number_of_processes() -> None:
    calls = [(base, 2) for base in range(6)]
    assert Runner(2).results(pow, calls) == Runner().results(pow, calls) == [0, 1, 4, 9, 16, 25]


def test_an_error_in_a_worker_ends_all_of_them() -> None:
    with pytest.raises(ZeroDivisionError):
        Runner(2).results(divmod, [(1, 0), *((1, 1),) * 20])
    assert multiprocessing.active_children() == []


def has_ended(group: int) -> bool:
    """Whether all processes of a group end within ten seconds; the one that tracks shared resources is the last."""
    for _ in range(500):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


def hear_interrupts() -> None:
    """Undo what a shell does to commands in the background: their children ignore interrupts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for child processes in /proc")
@pytest.mark.parametrize("seconds", [0.0, 0.2, 1.0])
def test_an_interrupt_ends_all_processes_without_a_traceback(seconds: float) -> None:
    """seconds: how long workers have been there when the terminal interrupts all processes."""
    process = subprocess.Popen(
        [sys.executable, "-m", "topoplace", "papers", "drmaestro", "--quick", "--jobs", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=hear_interrupts,
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while len(children.read_text(encoding="utf-8").split()) < 2:  # one of them is not a worker
        time.sleep(0.01)
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert "Traceback" not in errors
    assert process.returncode == 130
    assert has_ended(process.pid)
