"""Locks of files: held by one process, and free when it ends, however it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from topoplace._file_lock import FileLock

HOLDER = """
import sys, time
from pathlib import Path
from topoplace._file_lock import FileLock
lock = FileLock(Path(sys.argv[1]))
print("locked", flush=True)
time.sleep(600)
"""


def test_the_holder_is_named_and_a_killed_one_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "locked\n"
            with pytest.raises(BlockingIOError) as refusal:
                FileLock(path)
            assert refusal.value.strerror.startswith(f"process {process.pid} on ")
            assert refusal.value.filename == str(path)
        finally:
            process.send_signal(signal.SIGKILL)
    FileLock(path).close()


@pytest.mark.parametrize("text", [b"", b"\xff\xfe", b"process 1; rm -rf / on x", b"x" * 10_000])
def test_a_holder_that_says_nothing_useful_is_another_process(tmp_path: Path, text: bytes) -> None:
    lock = FileLock(tmp_path / "lock")
    (tmp_path / "lock").write_bytes(text)
    with pytest.raises(BlockingIOError) as refusal:
        FileLock(tmp_path / "lock")
    assert refusal.value.strerror == "another process"
    lock.close()


def test_a_forked_process_does_not_keep_the_lock(tmp_path: Path) -> None:
    program = f"""
import os
from pathlib import Path
from topoplace._file_lock import FileLock
path = Path({str(tmp_path / "lock")!r})
lock = FileLock(path)
forked, says = os.pipe()
child = os.fork()
if child == 0:
    os.write(says, b"x")
    os.read(0, 1)
    os._exit(0)
os.read(forked, 1)
lock.close()
FileLock(path).close()  # while the child lives
"""
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE) as process:
        assert process.wait(60) == 0
