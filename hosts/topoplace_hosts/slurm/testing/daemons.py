"""Start daemons that stop with this process, and kill every process that belongs to a toy cluster."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


def started(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a daemon in the foreground, in its own session; it is killed if this process dies."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=dict(environment),
        start_new_session=True,
        preexec_fn=_die_with_parent,
    )


def _die_with_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def free_ports(count: int) -> list[int]:
    """Return ports of 127.0.0.1 at which nothing listens."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


def processes_with(variable: str, value: str) -> Iterator[int]:
    """Yield the ids of other processes in whose environment `variable` is `value`."""
    wanted = f"{variable}={value}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0") and int(folder.name) != os.getpid():
                yield int(folder.name)
        except OSError:
            continue  # it has ended, or belongs to another user


def end_all(variable: str, value: str, timeout_s: float = 10.0) -> None:
    """Kill all other processes in whose environment `variable` is `value`, even those that they start meanwhile."""
    end = time.monotonic() + timeout_s
    while (found := list(processes_with(variable, value))) and time.monotonic() < end:
        for process in found:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.02)
