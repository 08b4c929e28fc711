"""The scheduler's side of the process that evaluates selectors: it starts on first use, and again after it exits."""

from __future__ import annotations

import atexit
import json
import os
import pickle
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from threading import Lock
from typing import Any, Final, NamedTuple

from topoplace.errors import KubernetesError
from topoplace_hosts.kubernetes.claims.device import Device, Look

_PROGRAM: Final = "topoplace_hosts.kubernetes.claims.evaluating"
_START_S: Final = 30.0
"""Seconds that the process may take to start on a busy host."""
_SILENCE_S: Final = 5.0
"""Seconds that an answer may take; the process ends an evaluation long before."""
_MOST_BYTES: Final = 1 << 20
"""Limit on the bytes of one answer."""


class Answered(NamedTuple):
    """The answer of an expression about a device."""

    value: bool | str
    """True or False; a text says why it is neither."""
    looks: tuple[Look, ...]


class EvaluationEndedError(KubernetesError):
    """An evaluation was stopped before it had an answer."""


class UnreadableError(KubernetesError):
    """A text is not a valid expression."""


class Evaluator:
    """A process that evaluates selectors; several threads may call it, and it serves one at a time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""
        self._is_ready = False

    def start(self) -> None:
        """Start the process if it does not run, without waiting until it is ready."""
        with self._lock:
            self._started()

    def answers(self, text: str, devices: Sequence[Device], allowed_s: float) -> list[Answered]:
        """Return the answers about the first devices: as many as fit into `allowed_s` seconds, at least one.

        EvaluationEndedError if it takes too much time or memory, UnreadableError if it cannot be read, KubernetesError
        if there is no process.
        """
        with self._lock:
            process = self._ready()
            try:
                assert process.stdin is not None
                process.stdin.write(pickle.dumps((text, list(devices), allowed_s)))
                process.stdin.flush()
                return list(self._read(process))
            except KubernetesError:
                raise
            except (OSError, ValueError, TypeError, LookupError) as error:
                self._stop()
                raise EvaluationEndedError(f"ends its evaluation ({error})") from None

    def wait_until_ready(self) -> None:
        """Start the process if it does not run, and wait until it can evaluate; KubernetesError if it cannot."""
        with self._lock:
            self._ready()

    def stop(self) -> None:
        """End the process."""
        with self._lock:
            self._stop()

    # ---- inside ----------------------------------------------------------------------------------------------

    def _started(self) -> subprocess.Popen[bytes]:
        """Return the process, which runs."""
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._stop()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise KubernetesError(f"the process that evaluates selectors cannot start: {error}") from None
        return self._process

    def _ready(self) -> subprocess.Popen[bytes]:
        """Return the process once it waits for a request."""
        process = self._started()
        try:
            while not self._is_ready:
                self._is_ready = "ready" in self._line(process, _START_S)
        except (OSError, ValueError) as error:
            self._stop()
            raise KubernetesError(f"the process that evaluates selectors does not start: {error}") from None
        return process

    def _read(self, process: subprocess.Popen[bytes]) -> Iterator[Answered]:
        while found := self._line(process, _SILENCE_S):
            if "ended" in found:
                self._is_ready = False  # the next one comes
                raise EvaluationEndedError(found["ended"])
            if "unreadable" in found:
                raise UnreadableError(found["unreadable"])
            yield Answered(
                found["value"], tuple([(what, domain, name) for what, domain, name in found["looks"]])
            )

    def _line(self, process: subprocess.Popen[bytes], timeout_s: float) -> dict[str, Any]:
        """Return one line of the process; OSError or ValueError if none comes."""
        assert process.stdout is not None
        end = time.monotonic() + timeout_s
        poll = select.poll()
        poll.register(process.stdout, select.POLLIN)
        while b"\n" not in self._rest:
            if not poll.poll(max(0.0, 1000 * (end - time.monotonic()))):
                raise OSError("no answer")
            part = os.read(process.stdout.fileno(), 1 << 16)
            if not part or len(self._rest) > _MOST_BYTES:
                raise OSError("the process has ended" if not part else "too long an answer")
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def _stop(self) -> None:
        process, self._process, self._rest, self._is_ready = self._process, None, b"", False
        if process is None:
            return
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)  # its child, too
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


EVALUATOR: Final = Evaluator()
"""The evaluator of this program."""
atexit.register(EVALUATOR.stop)
