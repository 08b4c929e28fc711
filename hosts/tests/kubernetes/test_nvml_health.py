# ruff: noqa: N801, N802, N815, N818
"""The health of GPUs from NVML's events; a library takes NVML's place, since there are no GPUs."""

from __future__ import annotations

import sys
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("grpc", reason="the extra kubernetes is not installed")

from topoplace_hosts.kubernetes.device_plugin.nvml_health import NvmlHealth


class Nvml:
    """NVML with three GPUs, of which the last cannot report events."""

    class NVMLError(Exception):
        pass

    class NVMLError_Timeout(NVMLError):
        pass

    class NVMLError_NotSupported(NVMLError):
        pass

    nvmlEventTypeXidCriticalError = 8

    def __init__(self) -> None:
        self.events: deque[tuple[int, int]] = deque()
        self.watched: list[int] = []
        self.lost: set[int] = set()

    def nvmlInit(self) -> None:
        pass

    def nvmlEventSetCreate(self) -> str:
        return "events"

    def nvmlDeviceGetCount(self) -> int:
        return 3

    def nvmlDeviceGetHandleByIndex(self, number: int) -> int:
        return number

    def nvmlDeviceRegisterEvents(self, gpu: int, kind: int, events: str) -> None:
        if gpu == 2:
            raise self.NVMLError_NotSupported
        assert (kind, events) == (8, "events")
        self.watched.append(gpu)

    def nvmlEventSetWait_v2(self, events: str, milliseconds: int) -> Any:
        assert (events, milliseconds) == ("events", 0)
        if not self.events:
            raise self.NVMLError_Timeout
        xid, gpu = self.events.popleft()
        return SimpleNamespace(eventData=xid, device=gpu)

    def nvmlDeviceGetUUID(self, gpu: int) -> bytes | str:
        if gpu in self.lost:
            raise self.NVMLError
        return b"GPU-0" if gpu == 0 else f"GPU-{gpu}"


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Nvml:
    library = Nvml()
    monkeypatch.setitem(sys.modules, "pynvml", library)
    return library


def test_a_critical_error_makes_a_gpu_unhealthy_for_good(nvml: Nvml) -> None:
    health = NvmlHealth()
    assert nvml.watched == [0, 1]
    assert health() == set()
    nvml.events.extend([(31, 1), (79, 0)])
    assert health() == {"GPU-0"}
    assert health() == {"GPU-0"}


def test_an_error_of_a_lost_gpu_concerns_all_that_are_known(nvml: Nvml) -> None:
    health = NvmlHealth()
    nvml.lost.add(1)
    nvml.events.append((79, 1))
    assert health() == {"GPU-0", "GPU-2"}
