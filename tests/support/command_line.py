"""The command `topoplace` in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple, Protocol

COMMAND = str(Path(sys.executable).with_name("topoplace"))


def run(
    *arguments: str | Path, stdin: str | bytes = "", cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command with `stdin` as its standard input."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        [COMMAND, *map(str, arguments)], input=data, capture_output=True, cwd=cwd, timeout=120
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def hear_interrupts() -> None:
    """Undo what a shell does to commands in the background: their children ignore interrupts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def assert_command_refuses(
    *arguments: str | Path, message: str, stdin: str | bytes = "", cwd: Path | None = None
) -> None:
    """Check that the command refuses its input with `message` in a single line."""
    done = run(*arguments, stdin=stdin, cwd=cwd)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == done.stderr.count("\n") == 1


class Called(NamedTuple):
    """What a command did in the process of the test: its exit code, standard output and standard error."""

    code: int
    out: str
    err: str


class Call(Protocol):
    """The fixture `call`: run the command in the process of the test, which may change what it imports and calls."""

    def __call__(self, *arguments: object) -> Called: ...
