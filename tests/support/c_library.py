"""The C interface, called with ctypes: in the process of the tests, whose Python it uses."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_bool, c_char_p, c_double, c_int32, c_size_t, c_void_p
from enum import IntEnum
from pathlib import Path
from typing import Any

Argument = Any


class Status(IntEnum):
    """`topoplace_status`; test_c_interface compares the numbers with the header."""

    OK = 0
    BAD_ARGUMENT = 1
    BAD_TOPOLOGY = 2
    BAD_JOB = 3
    NOT_ALLOCATED = 4
    BAD_SNAPSHOT = 5
    BUFFER_TOO_SMALL = 6
    TIMEOUT = 7
    MISSING_PACKAGE = 8
    NO_PYTHON = 9
    OUT_OF_MEMORY = 10
    FAILED = 11


class CError(Exception):
    """A call that failed."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status


class CLibrary:
    """Calls functions by name without their prefix; the last argument, `error`, is added."""

    def __init__(self, path: Path) -> None:
        self.native = ctypes.CDLL(str(path))
        self._function("topology_num_gpus").restype = c_int32
        self._function("version").restype = c_char_p
        self._function("decision_reason").restype = c_char_p
        self._function("decision_gpus").restype = POINTER(c_int32)
        self._function("decision_is_optimal").restype = c_bool
        self._function("decision_score").restype = c_bool
        self._function("free_text").argtypes = [c_void_p]

    def __call__(self, name: str, *arguments: Argument) -> None:
        """Call a function that returns a status; CError if it is not OK."""
        error = c_void_p(1)
        status = Status(self._function(name)(*map(_converted, arguments), byref(error)))
        message = self._taken(error)
        assert (message is None) == (status is Status.OK)
        if message is not None:
            raise CError(status, message)

    def given(self, name: str, *arguments: Argument) -> c_void_p:
        """Call a function whose last argument but `error` is a place for a handle, and return the handle."""
        out = c_void_p(1)
        try:
            self(name, *arguments, byref(out))
        except CError:
            assert out.value is None
            raise
        return out

    def text(self, name: str, *arguments: Argument) -> str:
        """Call a function that gives a text, and return it."""
        found = self._taken(self.given(name, *arguments))
        assert found is not None
        return found

    def returned(self, name: str, *arguments: Argument) -> Any:
        """Return what a function without `error` returns."""
        return self._function(name)(*map(_converted, arguments))

    # ---- the functions that tests often call -----------------------------------------------------------------

    def topology(self, json: str) -> c_void_p:
        """Read a topology."""
        data = json.encode()
        return self.given("topology_from_text", data, c_size_t(len(data)), None, None)

    def cluster(self, *topologies: c_void_p, options: str | None = None) -> c_void_p:
        """Return a cluster of topologies."""
        array = (c_void_p * len(topologies))(*topologies)
        return self.given("cluster_new", array, c_size_t(len(topologies)), options)

    def numbers(self, name: str, *arguments: Argument, capacity: int = 64) -> tuple[int, ...]:
        """Return what a function writes to an array."""
        array, count = (c_int32 * capacity)(), c_size_t(99)
        self(name, *arguments, array, c_size_t(capacity), byref(count))
        return tuple(array[: count.value])

    def snapshot(self, cluster: c_void_p) -> bytes:
        """Return the snapshot of a cluster."""
        out, length = c_void_p(), c_size_t()
        self("cluster_snapshot", cluster, byref(out), byref(length))
        found = ctypes.string_at(out, length.value)
        self.native.topoplace_free_text(out)
        return found

    def decided(self, decision: c_void_p) -> tuple[int, str, tuple[int, ...], bool]:
        """Return outcome, reason, GPUs and proof of a decision."""
        count = c_size_t(99)
        gpus = self.returned("decision_gpus", decision, byref(count))
        return (
            self.returned("decision_outcome", decision),
            self.returned("decision_reason", decision).decode(),
            tuple(gpus[: count.value]) if gpus else (),
            self.returned("decision_is_optimal", decision),
        )

    def score(self, decision: c_void_p, name: str) -> float | None:
        """Return a score of a decision."""
        value = c_double()
        found = self.returned("decision_score", decision, name, byref(value))
        return value.value if found else None

    def _function(self, name: str) -> Any:
        return getattr(self.native, f"topoplace_{name}")

    def _taken(self, text: c_void_p) -> str | None:
        if text.value is None:
            return None
        found = ctypes.string_at(text).decode()
        self.native.topoplace_free_text(text)
        return found


def _converted(argument: Argument) -> Argument:
    if isinstance(argument, str):
        return argument.encode()
    return c_int32(argument) if type(argument) is int else argument
