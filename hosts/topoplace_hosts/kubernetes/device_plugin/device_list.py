"""The devices of a node and their health, which the kubelet watches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from threading import Condition
from typing import TYPE_CHECKING, Any

from topoplace_hosts.kubernetes.device_plugin import messages
from topoplace_hosts.kubernetes.device_plugin.preferred import numa_node_of

if TYPE_CHECKING:
    from topoplace.topology.devices import Gpu


class DeviceList:
    """The devices, each with its health and NUMA node; threads may wait for changes.

    gpus: the GPU of each device, by the device's name.
    """

    def __init__(self, gpus: dict[str, Gpu]) -> None:
        self._gpus = gpus
        self._unhealthy: frozenset[str] = frozenset()
        self._changed = Condition()
        self._num_changes = 0
        self._closed = False

    def set_unhealthy(self, device_ids: Collection[str]) -> None:
        """Declare exactly these devices unhealthy; names that are not in the list are ignored."""
        unhealthy = frozenset(device_ids).intersection(self._gpus)
        with self._changed:
            if unhealthy != self._unhealthy:
                self._unhealthy = unhealthy
                self._num_changes += 1
                self._changed.notify_all()

    def close(self) -> None:
        """End all iterations of `watch`."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def wake(self) -> None:
        """Make iterations of `watch` check whether their listener is still there."""
        with self._changed:
            self._changed.notify_all()

    def watch(self, is_heard: Callable[[], bool]) -> Iterator[Any]:
        """Yield the list as a ListAndWatchResponse, at once and after each change.

        The iteration ends when the list is closed, or when `is_heard` returns False after a change or `wake`.
        """
        seen = -1
        while True:
            with self._changed:
                while self._num_changes == seen and is_heard() and not self._closed:
                    self._changed.wait()
                if self._closed or not is_heard():
                    return
                seen, unhealthy = self._num_changes, self._unhealthy
            yield self._response(unhealthy)

    def _response(self, unhealthy: frozenset[str]) -> Any:
        devices: list[Any] = []
        for device_id, gpu in self._gpus.items():
            healthy = gpu.healthy and device_id not in unhealthy
            device = messages.Device(ID=device_id, health=messages.HEALTHY if healthy else messages.UNHEALTHY)
            node = numa_node_of(gpu)
            if node is not None:
                device.topology.nodes.add(ID=node)
            devices.append(device)
        return messages.ListAndWatchResponse(devices=devices)
