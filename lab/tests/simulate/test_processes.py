"""Simulations in several processes: their results, what they raise, and what is left when they are stopped."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from command_line import hear_interrupts
from topoplace_lab.simulate.processes import Runner


def test_results_are_in_the_order_of_the_calls_in_any_number_of_processes() -> None:
    calls = [(base, 2) for base in range(6)]
    assert Runner(2).results(pow, calls) == Runner().results(pow, calls) == [0, 1, 4, 9, 16, 25]


def test_an_error_in_a_worker_ends_all_of_them() -> None:
    with pytest.raises(ZeroDivisionError):
        Runner(2).results(divmod, [(1, 0), *((1, 1),) * 20])
    assert multiprocessing.active_children() == []


def test_an_end_before_the_last_call_leaves_no_worker_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Workers end, and Python's thread that waits for them notices, before the pool is shut down."""
    shutdown = ProcessPoolExecutor.shutdown

    def late(pool: ProcessPoolExecutor, *arguments: bool, **options: bool) -> None:
        while multiprocessing.active_children():
            time.sleep(0.01)
        shutdown(pool, *arguments, **options)

    monkeypatch.setattr(ProcessPoolExecutor, "shutdown", late)
    failed: list[object] = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    completed = Runner(2).completed(time.sleep, [(0.0,), *[(60.0,)] * 20])
    assert next(completed) == (0, None)
    completed.close()
    assert multiprocessing.active_children() == []
    assert failed == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="lets a call wait at a pipe")
def test_results_come_as_they_are_there(tmp_path: Path) -> None:
    """The first call reads what is only written once the others are there."""
    pipe, file = tmp_path / "pipe", tmp_path / "file"
    os.mkfifo(pipe)
    file.write_text("", encoding="utf-8")
    order: list[int] = []
    for call, _ in Runner(2).completed(Path.read_text, [(pipe, "utf-8"), (file, "utf-8"), (file, "utf-8")]):
        order.append(call)
        if len(order) == 2:
            pipe.write_text("", encoding="utf-8")
    assert sorted(order[:2]) == [1, 2]
    assert order[2] == 0


def has_ended(group: int) -> bool:
    """Whether all processes of a group end within ten seconds; the one that tracks shared resources is the last."""
    for _ in range(500):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


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
        assert process.poll() is None, "it ended before it was interrupted"
        time.sleep(0.01)
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert "Traceback" not in errors
    assert process.returncode == 130
    assert has_ended(process.pid)


TWO_WORKERS = """
import os, time
from topoplace_lab.simulate.processes import Runner

if __name__ == "__main__":
    for _ in Runner(2).completed(time.sleep, [(0.0,), *[(600.0,)] * 4]):
        print("one", flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="looks for the processes of a group")
def test_workers_end_with_a_process_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "two_workers.py"
    script.write_text(TWO_WORKERS, encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "one\n"
        process.kill()
    assert has_ended(process.pid)
