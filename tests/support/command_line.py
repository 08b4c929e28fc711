"""The command `topoplace`, in the process of the test or in its own."""

from __future__ import annotations

import contextlib
import io
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple, Protocol
from unittest import mock

from topoplace import cli

COMMAND = str(Path(sys.executable).with_name("topoplace"))


def run(
    *arguments: str | Path, stdin: str | bytes = "", cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command with `stdin` as its standard input, in this process, which has imported the library."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
    data = io.BytesIO(stdin.encode() if isinstance(stdin, str) else stdin)
    words = [str(argument) for argument in arguments]
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        contextlib.chdir(cwd or "."),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(data, "utf-8")),
        mock.patch.object(cli, "_discard_output"),
    ):
        code = exit_code_of(words)
    printed = (stream.detach().getvalue().decode() for stream in (out, err))
    return subprocess.CompletedProcess(words, code, *printed)


def run_process(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command in its own process."""
    command = [COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, encoding="utf-8", cwd=cwd, timeout=120)


def exit_code_of(words: list[str]) -> int:
    """Run the command in this process and return its exit code."""
    try:
        return cli.main(words)
    except SystemExit as stop:
        return int(stop.code or 0)


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
