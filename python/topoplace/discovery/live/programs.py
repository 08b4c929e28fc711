"""Run a vendor's tool and return what it prints, within a time and a number of bytes."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import IO

from topoplace.discovery.text import decode

MAX_BYTES = decode.MAX_BYTES
"""Limit on what a tool may print; the readers refuse longer texts."""

_NO_VARIABLES: Mapping[str, str] = MappingProxyType({})
_CHUNK = 1 << 16


class NotHereError(Exception):
    """A source has no information about this host; the message states the reason."""


def found(program: str) -> str | None:
    """Return the path of `program`, None if it is not installed; only absolute entries of PATH are searched.

    A relative or empty entry means the current directory, whose files are not trusted.
    """
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return shutil.which(program, path=os.pathsep.join(filter(os.path.isabs, entries)))


def output(
    program: str, arguments: Sequence[str], timeout_s: float, environment: Mapping[str, str] = _NO_VARIABLES
) -> str:
    """Return what `program` prints.

    environment: variables to set for the program, in addition to those of this process. Raise NotHereError if the
        program is not installed, fails, takes more than `timeout_s` seconds, or prints more than
    `MAX_BYTES`.
    """
    path = found(program)
    if path is None:
        raise NotHereError("is not on the PATH")
    try:
        process = subprocess.Popen(
            [path, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "LC_ALL": "C", **environment},
        )
    except OSError as error:
        raise NotHereError(str(error)) from None
    try:
        printed, said = _printed(process, timeout_s)
    finally:
        process.kill()
        process.wait()
    if process.returncode:
        last = (said or printed).decode(errors="replace").strip().split("\n")[-1]
        raise NotHereError(f"exit code {process.returncode}: {last[:200]}")
    return printed.decode(errors="replace")


def _printed(process: subprocess.Popen[bytes], timeout_s: float) -> tuple[bytes, bytes]:
    """Return what `process` writes to its output and to its error output until it ends."""
    deadline = time.monotonic() + timeout_s
    pipes = [_Pipe(process, stream) for stream in (process.stdout, process.stderr) if stream is not None]
    for pipe in pipes:
        pipe.join(max(0.0, deadline - time.monotonic()))
    if any(len(pipe.data) > MAX_BYTES for pipe in pipes):
        raise NotHereError(f"printed more than {MAX_BYTES} bytes")
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise NotHereError(f"did not answer within {timeout_s:g} s") from None
    if any(pipe.is_alive() for pipe in pipes):
        raise NotHereError(f"did not answer within {timeout_s:g} s")
    output, error = (bytes(pipe.data) for pipe in pipes)
    return output, error


class _Pipe(threading.Thread):
    """A thread that reads one pipe of a process; it ends the process if more than `MAX_BYTES` arrive."""

    def __init__(self, process: subprocess.Popen[bytes], stream: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self.data = bytearray()
        self._process = process
        self._stream = stream
        self.start()

    def run(self) -> None:
        """Read until the end of the pipe, or the limit."""
        with self._stream:
            while chunk := os.read(self._stream.fileno(), _CHUNK):
                self.data.extend(chunk)
                if len(self.data) > MAX_BYTES:
                    self._process.kill()
                    return
