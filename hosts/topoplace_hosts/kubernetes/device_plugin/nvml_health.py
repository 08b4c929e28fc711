"""The health of this node's GPUs, from the errors that NVIDIA's driver reports (Xids)."""

from __future__ import annotations

from typing import Any, Final

from topoplace.discovery.live import nvml

_OF_PROGRAMS: Final = frozenset((13, 31, 43, 45, 68, 109))
"""Xids that a program causes rather than a broken GPU: NVIDIA's manual of Xid errors."""
_MOST_EVENTS: Final = 100


class NvmlHealth:
    """A function that returns the UUIDs of the GPUs that reported a critical error since the start.

    A GPU stays unhealthy until the process ends. NotHereError if NVML cannot be used on this host.
    """

    def __init__(self) -> None:
        self._library: Any = nvml.initialised()
        self._events = self._library.nvmlEventSetCreate()
        self._unhealthy: set[str] = set()
        for number in range(self._library.nvmlDeviceGetCount()):
            gpu = self._library.nvmlDeviceGetHandleByIndex(number)
            try:
                self._library.nvmlDeviceRegisterEvents(
                    gpu, self._library.nvmlEventTypeXidCriticalError, self._events
                )
            except self._library.NVMLError_NotSupported:
                continue  # an old GPU, whose health cannot be watched

    def __call__(self) -> frozenset[str]:
        """Return the UUIDs of the unhealthy GPUs, without waiting."""
        for _ in range(_MOST_EVENTS):
            try:
                event = self._library.nvmlEventSetWait_v2(self._events, 0)
            except self._library.NVMLError_Timeout:
                break
            if event.eventData not in _OF_PROGRAMS:
                self._unhealthy.update(self._uuids(event.device))
        return frozenset(self._unhealthy)

    def _uuids(self, gpu: Any) -> list[str]:
        """Return the UUID of a GPU; those of all GPUs if the driver no longer shows it."""
        try:
            return [_text(self._library.nvmlDeviceGetUUID(gpu))]
        except self._library.NVMLError:
            return [uuid for uuid in map(self._uuid_at, range(self._library.nvmlDeviceGetCount())) if uuid]

    def _uuid_at(self, number: int) -> str:
        try:
            return _text(self._library.nvmlDeviceGetUUID(self._library.nvmlDeviceGetHandleByIndex(number)))
        except self._library.NVMLError:
            return ""


def _text(uuid: str | bytes) -> str:
    return uuid.decode() if isinstance(uuid, bytes) else uuid
